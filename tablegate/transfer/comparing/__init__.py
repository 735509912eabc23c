"""Comparisons of tables: canonical rows, checksums and differences."""
