"""Entities: parsed, written, read and rendered."""
