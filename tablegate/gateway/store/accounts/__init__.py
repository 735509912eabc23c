"""SQL for credentials, grants, quotas and audit lines."""
