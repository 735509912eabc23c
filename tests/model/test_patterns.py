"""Patterns find what Python's engine finds, in linear time, and refuse what they cannot do."""

from __future__ import annotations

import re
import time
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.model.patterns import PROGRAM_MAX_STEPS, TEXT_MAX_CHARACTERS, BadPattern, Pattern


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("t1:([0-9]+),", "t0:1,t1:123,t2:5,", "123"),
        ("a*", "baaa", ""),
        ("a+", "baaa", "aaa"),
        ("a+?", "baaa", "a"),
        ("a|ab", "xab", "a"),
        ("(x|y|)z{2,3}?", "yzzzz", "y"),
        ("^a.c$", "abc", "abc"),
        ("^a.c$", "xabc", None),
        ("a.c", "a\nc", None),
        ("[^a-c]+", "abcdefabc", "def"),
        (r"[\d.]+", "v1.25!", "1.25"),
        (r"(\d+):(\d+)", "12:34", "12"),
        ("x{3}", "xxxx", "xxx"),
        ("(?:ab)*c", "ababc", "ababc"),
        ("é.", "cafés", "és"),
        ("(foo)?bar", "bar", None),
        ("", "abc", ""),
    ],
)
def test_what_is_found(pattern: str, text: str, found: str | None) -> None:
    assert Pattern(pattern).find(text) == found


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a{2,1}",
        "*",
        r"(a)\1",
        "(?=a)",
        "(?<!a)b",
        "a++",
        "(?i:a)",
        "x" * PROGRAM_MAX_STEPS,
        "(x{100}){100}",
        "(" * 5000,
    ],
)
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(BadPattern):
        Pattern(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "(?:a?){50}a{50}b"])
def test_patterns_that_make_others_hang(pattern: str) -> None:
    began = time.monotonic()
    assert Pattern(pattern).find("a" * 2_000) is None
    assert time.monotonic() - began < 5


def test_nothing_repeated_is_nothing() -> None:
    assert Pattern("(?:(?:(?:){900}){900}){900}x").find("ax") == "x"


def test_only_the_beginning_of_a_long_text_is_searched() -> None:
    assert Pattern("b").find("a" * (TEXT_MAX_CHARACTERS - 1) + "b") == "b"
    assert Pattern("b").find("a" * TEXT_MAX_CHARACTERS + "b") is None


@settings(max_examples=150, deadline=None)
@given(st.text("ab()|*+?.[]^$x", max_size=7), st.text("abx", max_size=8))
def test_as_python_does(source: str, text: str) -> None:
    """But for a group that matches nothing inside a repeat, of which Python keeps the last empty round."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = re.compile(source)
            pattern = Pattern(source)
        except (re.error, BadPattern):
            return
    match = expected.search(text)
    assert (pattern.find(text) is None) or match is not None
    if match is not None and not expected.groups:
        assert pattern.find(text) == match.group()
