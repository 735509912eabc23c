"""The escape `_xHHHH_` for characters that a service forbids.

The scheme is that of Azure's property names (adapters/azuretable/values/names.py, after .NET's
XmlConvert.EncodeName), with other forbidden characters. Both directions are total and inverse to each other, so that
different texts stay different. A text without forbidden characters that does not look like an escape stays
unchanged.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"_x([0-9A-F]{4}|[0-9A-F]{8})_")
# The start of a text that would look like an escape if an escape followed.
_BEGINNING = re.compile(r"_x(?=[0-9A-F]{4})")
_EMPTY = "_x_"


class EscapeRules:
    """The escapes of one service's texts."""

    def __init__(self, forbidden: str, takes_empty: bool) -> None:
        """Set up the escapes. `forbidden` is a regular expression that matches each forbidden character."""
        self._forbidden = re.compile(forbidden)
        self._takes_empty = takes_empty

    def spelled(self, text: str) -> str:
        """Return the escaped text."""
        if not self._is_plain(text):
            return self._escaped(text)
        if "_x" in text:
            inner = self._unescaped(text)
            if (
                inner != text and self.spelled(inner) == text
            ):  # it would be read as the escape of another text
                return self._escaped(text)
        return text

    def unspelled(self, text: str) -> str:
        """Return the original of an escaped text."""
        if "_x" not in text:
            return text
        inner = self._unescaped(text)
        return inner if inner != text and self.spelled(inner) == text else text

    def _is_plain(self, text: str) -> bool:
        return (self._takes_empty or text != "") and self._forbidden.search(text) is None

    def _escaped(self, text: str) -> str:
        if not text:
            return _EMPTY
        forbidden = {match.start() for match in self._forbidden.finditer(text)}
        forbidden |= {match.start() for match in _BEGINNING.finditer(text)}
        if not forbidden:
            forbidden = {0}
        return "".join(
            [_code_of(character) if at in forbidden else character for at, character in enumerate(text)]
        )

    def _unescaped(self, text: str) -> str:
        if text == _EMPTY and not self._takes_empty:
            return ""
        return _ESCAPE.sub(_character, text)


def _code_of(character: str) -> str:
    code = ord(character)
    return f"_x{code:04X}_" if code <= 0xFFFF else f"_x{code:08X}_"


def _character(match: re.Match[str]) -> str:
    code = int(match.group(1), 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else match.group(0)
