"""Values, keys and property names: the wire forms and the gateway's, both ways."""
