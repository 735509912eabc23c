"""Patterns of LIKE and REGEXP. They run in RE2, in linear time."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tablegate.adapters.tablestore.sql.sql_types import sql_error


@lru_cache(maxsize=256)
def like_pattern(pattern: str) -> Any:
    """Return a compiled pattern of LIKE: % is any text, _ any character, and a backslash quotes one."""
    import re2

    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            parts.append(re2.escape(next(characters, "\\")))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re2.escape(character))
    return _compiled(r"(?s)\A(?:" + "".join(parts) + r")\z")


@lru_cache(maxsize=256)
def search_pattern(pattern: str) -> Any:
    """Return a compiled regular expression. Raises ServiceError."""
    return _compiled(pattern)


def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.max_mem = 1 << 20
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        raise sql_error("Invalid pattern.") from None
