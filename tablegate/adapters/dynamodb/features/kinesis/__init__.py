"""Delivery of changes to Kinesis data streams."""
