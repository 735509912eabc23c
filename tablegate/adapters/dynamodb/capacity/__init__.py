"""Capacity units: consumption of requests, its blocks in answers, and enforced throughput."""
