"""The control API under /_tablegate/: tests and operators control a running server with it, and read its health."""
