"""Permissions, grants, quotas, and what a request did."""
