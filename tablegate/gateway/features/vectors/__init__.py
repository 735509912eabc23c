"""Vector indexes: exact and approximate search of the nearest vectors."""
