"""Rows: read, written, ranged, batched, in local transactions."""
