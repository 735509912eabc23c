"""Statements that were parsed lately. The parser is loaded when the first comes (docs/architecture.md section 11)."""

from __future__ import annotations

from functools import lru_cache

from tablegate.adapters.dynamodb.partiql.nodes import Parsed

# In characters. Longer texts are rare, and would let a hostile client fill memory with their trees.
_LONGEST_KEPT = 1024


def parsed(text: str) -> Parsed:
    """The tree of a statement, and the names of its parameters. Raises ServiceError."""
    return (_kept if len(text) <= _LONGEST_KEPT else _parse)(text)


def _parse(text: str) -> Parsed:
    from tablegate.adapters.dynamodb.partiql.parsing import parse

    return parse(text)


_kept = lru_cache(maxsize=512)(_parse)
