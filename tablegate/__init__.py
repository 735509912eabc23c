"""tablegate: one self-hosted server that speaks the DynamoDB, Azure Table and Alibaba Table Store APIs over one SQL schema.

This package is all that an installation puts into site-packages. The server's own packages (gateway, adapters, migrations) lie
inside it, so that they neither shadow nor are shadowed by packages of those names in somebody's project; `tablegate.__main__`
makes them importable in the server's own process and nowhere else.
"""
