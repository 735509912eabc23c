"""Histories of tables, backups, restores, and copies of whole tables."""
