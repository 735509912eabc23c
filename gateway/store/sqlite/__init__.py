"""SQLite: sessions and SQL."""
