"""Values, keys and rows: what is stored, and its bytes."""
