"""DynamoDB Streams."""
