"""Vector indexes and SearchVectors."""
