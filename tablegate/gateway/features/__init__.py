"""Capabilities that a table or a server can do without. Each is a folder, which plugs into the core by its `install`."""
