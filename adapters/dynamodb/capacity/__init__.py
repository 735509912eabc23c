"""Capacity units: what a request consumes, how the answer tells it, and throughput that is enforced."""
