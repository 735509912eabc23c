"""DynamoDB, or a server that speaks its API, by boto3."""
