"""The matrix of entries, operations and callers: its requests, its servers and its tests."""
