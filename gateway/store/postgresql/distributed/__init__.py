"""PostgreSQL whose tables Citus distributes over several nodes."""
