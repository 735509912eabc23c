"""Capacity units: the charge of a request, and their metrics."""
