"""The two styles of error texts, and texts that differ between them.

`2026` is what us-east-1 and most other regions said in the autumn of 2026. `classic` is what the service said for its first
decade, and what dynalite's tests assert. Code raises a text in both styles. The style is chosen where the text is rendered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

LATEST = "2026"
CLASSIC = "classic"


class StyledText(str):
    """A text of today. `classic`: the same in the classic style."""

    __slots__ = ("classic",)
    classic: str

    def __new__(cls, today: str, classic: str) -> StyledText:
        """A text in both styles."""
        text = super().__new__(cls, today)
        text.classic = classic
        return text


def classic_of(text: str) -> str:
    """The text in the classic style."""
    return text.classic if isinstance(text, StyledText) else text


def edited(text: str, edit: Callable[[str], str]) -> str:
    """A text that was changed in both styles."""
    return StyledText(edit(text), edit(text.classic)) if isinstance(text, StyledText) else edit(text)


def json_encoder(style: str) -> Callable[[Any], bytes]:
    """The function that makes JSON with the texts of a style. It raises TypeError for lone surrogates."""
    return _classic_json if style == CLASSIC else orjson.dumps


def _classic_json(document: Any) -> bytes:
    return orjson.dumps(document, _classic, orjson.OPT_PASSTHROUGH_SUBCLASS)


def _classic(text: Any) -> str:
    if isinstance(text, StyledText):
        return text.classic
    raise TypeError(f"{type(text)} is not JSON")
