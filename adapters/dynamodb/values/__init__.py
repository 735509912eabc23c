"""Attribute values, keys and items: the wire forms and the gateway's, both ways."""
