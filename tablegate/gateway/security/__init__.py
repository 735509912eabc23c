"""Credentials, their storage with encrypted secrets, grants, quotas, and the gate in front of the engine."""
