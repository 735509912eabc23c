"""The Alibaba Cloud Table Store API: protobuf requests, PlainBuffer rows."""

DIALECT = "tablestore"
"""The name of this dialect in settings, metrics, and properties of tables and indexes."""
