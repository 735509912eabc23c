"""Entities: parsing, writes, reads and rendering."""
