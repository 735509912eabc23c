"""Regular expressions that clients may send: searched in time linear in the text, whatever the pattern.

Knows bounds on what a pattern may cost, and who searches: RE2, an engine made for patterns of strangers, which never
backtracks. Its syntax is Perl's without what cannot be searched that way (back references, look-around, possessive repeats).
Characters are those of Unicode; the classes (digits, spaces, letters of words) are those of ASCII, as in Perl's bytes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

TEXT_MAX_BYTES = 65_536
"""Only so much of a text is searched."""
_SEARCH_MAX_STEPS = 16 * 1024 * 1024
# Of one pattern: its program, some 40,000 steps at most, and what the engine remembers while it searches.
_MEMORY_MAX_BYTES = 512 * 1024
_KEPT_PATTERNS = 64


def reach_bytes(steps: int) -> int:
    """How much of each text is searched for patterns that have so many steps together: at the very worst all searches then
    take a fifth of a second (10 ns a byte and step, measured), and up to 256 steps nothing is left out."""
    return min(TEXT_MAX_BYTES, _SEARCH_MAX_STEPS // max(steps, 1))


class BadPattern(ValueError):
    """Not a regular expression, or none of the kind this engine runs. Its text says why."""


class Pattern:
    """A pattern that has been checked. Raises BadPattern. Immutable, and equal to another of the same source.

    `steps`: what it is compiled to; no text takes longer than its bytes times these.
    """

    __slots__ = ("source", "steps")

    def __init__(self, source: str) -> None:
        self.source = source
        self.steps: int = _compiled(source).programsize

    def find(self, text: str, most_bytes: int = TEXT_MAX_BYTES) -> str | None:
        """The leftmost match's first group, or the whole match where there is no group; None without a match. Of the text only
        its first bytes are searched, whole characters."""
        data = text[:most_bytes].encode("utf-8", "surrogatepass")
        if len(data) > most_bytes:
            data = data[:most_bytes].decode("utf-8", "ignore").encode()
        match = _compiled(self.source).search(data)
        if match is None:
            return None
        found: bytes | None = match.group(min(match.re.groups, 1))
        return None if found is None else found.decode("utf-8", "replace")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.source == self.source

    def __hash__(self) -> int:
        return hash(self.source)

    def __repr__(self) -> str:
        return f"Pattern({self.source!r})"


@lru_cache(maxsize=_KEPT_PATTERNS)
def _compiled(source: str) -> Any:
    import re2  # loaded by the first pattern of a client

    options = re2.Options()
    options.max_mem = _MEMORY_MAX_BYTES
    options.log_errors = False
    try:
        return re2.compile(source.encode("utf-8", "surrogatepass"), options)
    except re2.error as error:
        raise BadPattern(_told(error)) from None


def _told(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
