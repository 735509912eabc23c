"""SQL for rows and index entries."""
