"""Alibaba Cloud Table Store, or a server that speaks its API, by tablestore."""
