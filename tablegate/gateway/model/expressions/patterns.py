"""Regular expressions of clients, searched in linear time.

RE2 runs them: an engine for untrusted patterns that never backtracks. Its syntax is Perl's without back references,
look-around and possessive quantifiers. Characters are Unicode code points. The classes (digits, spaces, word
characters) are ASCII, as in Perl's bytes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

TEXT_MAX_BYTES = 65_536
"""Maximum searched length of a text."""
_SEARCH_MAX_STEPS = 16 * 1024 * 1024
# Per pattern: its program of at most about 40,000 steps, and the caches of the engine.
_MEMORY_MAX_BYTES = 512 * 1024
_KEPT_PATTERNS = 64


def reach_bytes(steps: int) -> int:
    """Return the searched length of each text, given the total number of steps of all patterns.

    In the worst case all searches then take 0.2 s (10 ns per byte and step, measured). Up to 256 steps, texts are
    searched up to TEXT_MAX_BYTES.
    """
    return min(TEXT_MAX_BYTES, _SEARCH_MAX_STEPS // max(steps, 1))


class BadPattern(ValueError):
    """The pattern is not a regular expression that RE2 supports. The text says why."""


class Pattern:
    """A valid pattern. Raises BadPattern. Immutable, and equal to others with the same source.

    `steps`: size of the compiled program. A search takes at most this number of steps for each byte.
    """

    __slots__ = ("source", "steps")

    def __init__(self, source: str) -> None:
        self.source = source
        self.steps: int = _compile(source).programsize

    def find(self, text: str, most_bytes: int = TEXT_MAX_BYTES) -> str | None:
        """Return the leftmost match's first group, or the whole match if the pattern has no group. None without a
        match.

        Only the first `most_bytes` of the text are searched, in whole characters.
        """
        data = text[:most_bytes].encode("utf-8", "surrogatepass")
        if len(data) > most_bytes:
            data = data[:most_bytes].decode("utf-8", "ignore").encode()
        match = _compile(self.source).search(data)
        if match is None:
            return None
        group: bytes | None = match.group(min(match.re.groups, 1))
        return None if group is None else group.decode("utf-8", "replace")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.source == self.source

    def __hash__(self) -> int:
        return hash(self.source)

    def __repr__(self) -> str:
        return f"Pattern({self.source!r})"


@lru_cache(maxsize=_KEPT_PATTERNS)
def _compile(source: str) -> Any:
    import re2  # imported with the first pattern of a client

    options = re2.Options()
    options.max_mem = _MEMORY_MAX_BYTES
    options.log_errors = False
    try:
        return re2.compile(source.encode("utf-8", "surrogatepass"), options)
    except re2.error as error:
        raise BadPattern(_reason(error)) from None


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
