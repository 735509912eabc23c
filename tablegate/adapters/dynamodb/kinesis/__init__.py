"""Changes of tables on their way to Kinesis data streams."""
