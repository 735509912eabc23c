"""PostgreSQL: sessions, pipelines and SQL."""
