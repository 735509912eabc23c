"""Credentials, grants, quotas and the audit as SQL."""
