"""Patterns of LIKE and REGEXP. They run in RE2, in linear time."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tablegate.adapters.tablestore.sql.sql_types import sql_error
from tablegate.adapters.tablestore.wire import limits

_KEPT_PATTERNS = 32  # of each kind. Each may have a megabyte, for its program and the caches of the engine.


def is_match(pattern: Any, text: str) -> bool:
    """Return True if a compiled pattern is found in a text. Raises ServiceError."""
    if pattern.programsize * len(text) > limits.SQL_PATTERN_STEPS_MAX:
        raise sql_error("A pattern is too complex for a text of this length.")
    return pattern.search(text) is not None


@lru_cache(maxsize=_KEPT_PATTERNS)
def like_pattern(pattern: str, escape: str) -> Any:
    """Return a compiled pattern of LIKE: % is any text, _ any character, and `escape` quotes one. Raises ServiceError."""
    import re2

    _check_length(pattern)
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            parts.append(re2.escape(next(characters, escape)))
        else:
            parts.append({"%": ".*", "_": "."}.get(character) or re2.escape(character))
    return _compiled(r"(?s)\A(?:" + "".join(parts) + r")\z")


@lru_cache(maxsize=_KEPT_PATTERNS)
def search_pattern(pattern: str) -> Any:
    """Return a compiled regular expression. Raises ServiceError."""
    _check_length(pattern)
    return _compiled(pattern)


def _check_length(pattern: str) -> None:
    if len(pattern) > limits.SQL_PATTERN_MAX:
        raise sql_error(f"The length of a pattern exceeds the limit: {limits.SQL_PATTERN_MAX}.")


def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.max_mem = 1 << 20
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        raise sql_error("Invalid pattern.") from None
