"""Alibaba Cloud Table Store, or a server with its API, by tablestore."""
