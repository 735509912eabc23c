"""Metrics, traces, the log and the audit log."""
