"""The control plane: tables, indexes, expiry, and copies of tables."""
