"""Tables that have the same rows as others."""
