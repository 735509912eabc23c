"""Values, keys and rows, and their encodings."""
