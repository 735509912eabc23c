"""Tables as files (docs/migrate/file-formats.md): JSON Lines of tablegate, DynamoDB exports, typed CSV of Storage
Explorer, Parquet."""
