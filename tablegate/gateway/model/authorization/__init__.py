"""Permissions, grants, quotas, and descriptions of requests."""
