"""The two styles of error texts.

`2026`: the texts of us-east-1 and most other regions in autumn 2026. `classic`: the texts of the service's first
decade, which dynalite's tests assert. Code raises a text in both styles. The style is chosen when the text is
rendered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

LATEST = "2026"
CLASSIC = "classic"


class StyledText(str):
    """A text in today's style. `classic`: the same in the classic style."""

    __slots__ = ("classic",)
    classic: str

    def __new__(cls, today: str, classic: str) -> StyledText:
        text = super().__new__(cls, today)
        text.classic = classic
        return text


def classic_of(text: str) -> str:
    """Return the text in the classic style."""
    return text.classic if isinstance(text, StyledText) else text


def edited(text: str, edit: Callable[[str], str]) -> str:
    """Apply a function to a text in both styles."""
    return StyledText(edit(text), edit(text.classic)) if isinstance(text, StyledText) else edit(text)


def json_encoder(style: str) -> Callable[[Any], bytes]:
    """Return the JSON encoder for a style of texts. It raises TypeError for lone surrogates."""
    return _classic_json if style == CLASSIC else orjson.dumps


def _classic_json(document: Any) -> bytes:
    return orjson.dumps(document, _classic, orjson.OPT_PASSTHROUGH_SUBCLASS)


def _classic(text: Any) -> str:
    if isinstance(text, StyledText):
        return text.classic
    raise TypeError(f"{type(text)} is not JSON")
