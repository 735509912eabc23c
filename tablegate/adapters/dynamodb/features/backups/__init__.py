"""Backups, continuous backups and restores."""
