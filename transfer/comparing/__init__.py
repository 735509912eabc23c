"""Comparisons: rows in a form that both ends understand, their checksums, and what differs."""
