"""SQLite: its sessions and its SQL."""
