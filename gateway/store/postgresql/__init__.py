"""PostgreSQL: its sessions, their pipelines, and its SQL."""
