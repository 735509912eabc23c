"""Azure Table storage, or a server that speaks its API, by azure-data-tables."""
