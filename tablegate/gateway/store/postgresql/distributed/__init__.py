"""PostgreSQL with tables that Citus distributes over several nodes."""
