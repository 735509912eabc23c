"""Definitions of tables, their copies and backups as SQL."""
