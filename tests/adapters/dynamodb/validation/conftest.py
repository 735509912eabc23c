"""Parsed requests."""

from __future__ import annotations

import orjson
import pytest


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the texts that orjson has parsed."""
    lengths: list[int] = []
    real = orjson.loads
    monkeypatch.setattr(orjson, "loads", lambda text: lengths.append(len(text)) or real(text))
    return lengths
