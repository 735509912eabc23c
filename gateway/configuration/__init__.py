"""Settings of a server, and addresses of databases."""
