"""SQL for change streams and their followers."""
