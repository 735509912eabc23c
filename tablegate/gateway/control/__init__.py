"""The control API under /_tablegate/, by which tests and operators control a running server, and its health."""
