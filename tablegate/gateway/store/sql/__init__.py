"""The schema, sessions, positions and checksums that all SQL of the store shares."""
