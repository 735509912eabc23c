"""DynamoDB, or a server with its API, by boto3."""
