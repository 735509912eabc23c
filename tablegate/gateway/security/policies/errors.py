"""The error of an invalid policy."""

from __future__ import annotations


class BadPolicy(ValueError):
    """A policy that is malformed or has an unsupported part. It is refused as a whole."""
