"""The control plane: tables, indexes, expiry and row counts."""
