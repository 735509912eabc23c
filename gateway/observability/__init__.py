"""What operators see of a server: metrics, traces, the log and the audit."""
