"""Authentication and grants: Shared Key, shared access signatures, bearer tokens."""
