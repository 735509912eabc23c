"""The control API under /_tablegate/: what a test or an operator does to a running server from outside."""
