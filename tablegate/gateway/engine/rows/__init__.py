"""Reads and writes of rows."""
