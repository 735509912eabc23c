"""Permissions, grants, quotas, and the facts of requests."""
