"""Backups, restores and histories."""
