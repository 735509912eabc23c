"""Azure Table storage, or a server with its API, by azure-data-tables."""
