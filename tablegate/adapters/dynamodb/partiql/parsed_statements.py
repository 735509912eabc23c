"""Cache of parsed statements."""

from __future__ import annotations

from functools import lru_cache

from tablegate.adapters.dynamodb.partiql.nodes import Parsed
from tablegate.adapters.dynamodb.partiql.parsing import parse

# In characters. Longer texts are rare, and caching them would let a hostile client fill the memory.
_CACHED_MAX_CHARACTERS = 1024


def parsed(text: str) -> Parsed:
    """Return the tree of a statement, and the names of its parameters. Raises ServiceError."""
    return (_parse_cached if len(text) <= _CACHED_MAX_CHARACTERS else parse)(text)


_parse_cached = lru_cache(maxsize=512)(parse)
