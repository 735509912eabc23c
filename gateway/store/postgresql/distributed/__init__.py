"""PostgreSQL whose tables Citus spreads over several nodes: what is different there."""
