"""The steps from one SQL schema to the next (Alembic), packaged so that an installed gateway can migrate.

A step is a file of `versions/`, named `NNNN_what.py`; NNNN is its revision. They are run by gateway/store/opening/migrating.py,
and `tests/gateway/store/test_migrations.py` compares where they lead with gateway/store/sql/schema.py.
"""
