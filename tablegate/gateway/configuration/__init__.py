"""Settings of a server, and database URLs."""
