"""Values and keys: the wire forms and the gateway's, both ways."""
