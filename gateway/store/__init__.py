"""Rows, entries and changes as SQL; the only place that knows SQLAlchemy."""
