"""Capacity units: what a request is charged, and what /metrics counts."""
