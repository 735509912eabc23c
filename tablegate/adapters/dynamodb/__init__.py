"""Amazon DynamoDB, API version 2012-08-10: JSON 1.0 over one POST endpoint."""

DIALECT = "dynamodb"
"""The name of this dialect in settings, properties of tables and indexes, and metrics."""
