"""The Alibaba Cloud Table Store API: protobuf requests, PlainBuffer rows."""

DIALECT = "tablestore"
"""What settings, properties of tables, indexes and metrics call this dialect."""
