"""Patterns with `*` and `?`, against a matcher that is plainly right, and on long texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.authorization.conditions import ANY_ONE, MANY, Glob

TEXTS = st.text("ab/", max_size=8)
PARTS = st.lists(st.tuples(st.text("ab/*?", max_size=4), st.booleans()), min_size=1, max_size=4)


def matches(steps: tuple[tuple[str, bool], ...], stops_at: str, text: str) -> bool:
    """True if a pattern matches all of a text, by a regular expression."""
    one = f"[^{stops_at}]" if stops_at else "."
    meant = {(MANY, True): f"{one}*", (ANY_ONE, True): one}
    source = "".join(meant.get(step, re.escape(step[0])) for step in steps)
    return re.fullmatch(source, text, re.DOTALL) is not None


@pytest.mark.parametrize("stops_at", ["", "/"])
@given(parts=PARTS, text=TEXTS | st.text("ab/*?", max_size=8))
def test_a_pattern_matches_as_a_regular_expression_does(
    stops_at: str, parts: list[tuple[str, bool]], text: str
) -> None:
    """Patterns that are put together of texts with wildcards and of literal texts."""
    made = Glob((), stops_at)
    for part, is_literal in parts:
        made += Glob.literal(part) if is_literal else Glob.of(part)
    assert made.stops_at == stops_at
    assert made.matches(text) is matches(made.steps, stops_at, text)


@pytest.mark.parametrize("pattern", ["T*", "T*/index/*", "*T"])
def test_a_pattern_that_stops_is_matched_without_a_look_at_each_character(
    monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    def after(glob: Glob, text: str) -> None:
        raise AssertionError("a look at each character")

    monkeypatch.setattr(Glob, "_positions_after", after)
    glob = Glob.of(pattern, "/")
    assert glob.matches("TTT") is (pattern != "T*/index/*")
    assert glob.matches("TTT/index/TTT") is (pattern == "T*/index/*")
