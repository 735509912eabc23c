"""Tables as files: our JSON Lines, exports of DynamoDB, typed CSV of Storage Explorer, Parquet (docs/migrate/file-formats.md)."""
