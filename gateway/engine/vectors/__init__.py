"""Vector searches."""
