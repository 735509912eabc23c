"""Copies: resumable jobs, parallel segments, following of changes."""
