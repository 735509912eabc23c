"""The Alibaba Cloud Table Store API: protobuf requests, PlainBuffer rows."""
