"""The control plane: tables, access policies, service properties and statistics."""
