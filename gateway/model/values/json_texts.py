"""The size of JSON texts, counted before they are parsed."""

from __future__ import annotations


def has_at_most(max_nodes: int, text: bytes) -> bool:
    """Return True if JSON has at most `max_nodes` objects, arrays and members, by a count of `{`, `[` and `,` outside strings.

    It takes a few nanoseconds for each byte and creates no objects, so it can be called before a text is parsed.
    """
    if len(text) <= max_nodes or _nodes(text) <= max_nodes:
        return True
    if b"\\" in text:  # no remaining backslash precedes a quotation mark
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    if text.count(b'"') > 4 * (max_nodes + 1):  # a member has at most two strings: its name and its value
        return False
    return _nodes(b"".join(text.split(b'"')[::2])) <= max_nodes


def _nodes(text: bytes) -> int:
    return text.count(b"{") + text.count(b"[") + text.count(b",")
