"""SQL for the definitions of tables and indexes."""
