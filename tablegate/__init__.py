"""One self-hosted server for the DynamoDB, Azure Table and Alibaba Table Store APIs over one SQL schema.

An installation puts only this package into site-packages. `gateway`, `adapters`, `migrations` and `transfer` are
packages inside it. At the top of the repository are links to their folders.
"""
