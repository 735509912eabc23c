"""The control plane: tables, indexes, billing, tags, expiry, and what is described of the account."""
