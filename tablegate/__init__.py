"""tablegate: one self-hosted server that speaks the DynamoDB, Azure Table and Alibaba Table Store APIs over one SQL schema.

This package is all that an installation puts into site-packages. `gateway`, `adapters`, `migrations` and `transfer` are packages
inside it. In the repository their folders stand at the top, and here are links to them.
"""
