"""Alembic revisions of the SQL schema, packaged so that an installed gateway can migrate.

A revision is a file of `versions/` named `NNNN_what.py`, where NNNN is its number. gateway/store/migrating.py
runs them. `tests/gateway/store/test_migrations.py` compares the result with schema.py.
"""
