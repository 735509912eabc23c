"""What can be wrong with a written grant."""

from __future__ import annotations


class BadPolicy(ValueError):
    """A policy that cannot be read, or says something that this server could not keep to. Nothing of it counts."""
