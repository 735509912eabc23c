"""Amazon DynamoDB, API version 2012-08-10, JSON 1.0 over one POST endpoint."""

DIALECT = "dynamodb"
"""What settings, properties of tables, indexes and metrics call this dialect."""
