"""What all SQL of the store shares: the schema, sessions, positions and checksums."""
