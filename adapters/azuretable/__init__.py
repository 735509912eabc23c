"""The Azure Table dialect: REST and OData JSON."""

DIALECT = "azuretable"
"""What settings, properties of tables, indexes and metrics call this dialect."""
