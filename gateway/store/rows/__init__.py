"""Rows and index entries as SQL."""
