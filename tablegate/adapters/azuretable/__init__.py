"""The Azure Table dialect: REST and OData JSON."""

DIALECT = "azuretable"
"""The name of this dialect in settings, properties of tables and indexes, and metrics."""
