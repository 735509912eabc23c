"""Conversion of values and keys between the wire format and the gateway."""
