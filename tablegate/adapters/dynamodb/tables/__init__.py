"""The control plane: tables, indexes, billing, tags, expiry, and descriptions of the account."""
