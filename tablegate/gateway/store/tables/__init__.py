"""SQL for tables, copies and backups."""
