"""Patterns find what Python's engine finds, in linear time and bounded memory, and refuse what they cannot do."""

from __future__ import annotations

import re
import resource
import time
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.expressions.predicates import TEXT_MAX_BYTES, BadPattern, Pattern, reach_bytes
from tests.support.examples import examples
from tests.support.tables import each_row


@each_row(
    "pattern, text, found",
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
def test_patterns_find_their_matches(pattern: str, text: str, found: str | None) -> None:
    assert Pattern(pattern).find(text) == found


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"\d", "\u0663", None),  # an Arabic digit
        (r"\w+", "naïve", "na"),
        (r"(?i)É", "é", "é"),
        (r"[à-ü]+", "xéàx", "éà"),
        (r"\pL+", "1épée1", "épée"),
        (".", "\U0001f600!", "\U0001f600"),
        ("b$", "b\n", None),
        (r"(\C)", "é", "\ufffd"),  # half of a character is no text
        ("a\x00b", "a\x00b", "a\x00b"),
    ],
)
def test_characters_and_bytes(pattern: str, text: str, found: str | None) -> None:
    """Characters are Unicode's, classes ASCII's (Perl's, of single bytes: developer reference, ValueTransferRule)."""
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
        "(x{100}){100}",
        r"\pL{40}",
        "(" * 5000,
    ],
)
def test_invalid_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(BadPattern) as told:
        Pattern(pattern)
    assert str(told.value)


def test_the_size_of_a_program_on_both_sides() -> None:
    assert 43_000 < Pattern("x{100}" * 436).steps < 44_000
    with pytest.raises(BadPattern, match="too large"):
        Pattern("x{100}" * 437)


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "(?:a?){50}a{50}b", "(a|b|c)*" * 20, "((a|b|c){1,30}){1,8}d"]
)
def test_patterns_that_make_others_hang(pattern: str) -> None:
    """The fifth took 11.5 s with an engine of Python's making, and the last is hard for RE2 too."""
    compiled = Pattern(pattern)
    began = time.process_time()
    compiled.find("abc" * 30_000, reach_bytes(compiled.steps))
    assert time.process_time() - began < 2


def test_the_memory_of_patterns_is_bounded() -> None:
    """Whatever clients send, the memory of the process grows by no more than 64 MiB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(150):
        Pattern(f"((a|b|c){{1,30}}){{1,7}}{number}").find("abc" * 100)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_only_the_beginning_of_a_long_text_is_searched() -> None:
    assert Pattern("b").find("a" * (TEXT_MAX_BYTES - 1) + "b") == "b"
    assert Pattern("b").find("a" * TEXT_MAX_BYTES + "b") is None
    assert Pattern("b").find("aab", 3) == "b"
    assert Pattern("b").find("aab", 2) is None
    assert Pattern(".*").find("aéb", 2) == "a"
    assert Pattern(".*").find("aéb", 3) == "aé"


def test_a_pattern_of_many_steps_searches_a_shorter_text() -> None:
    assert reach_bytes(0) == reach_bytes(256) == TEXT_MAX_BYTES
    assert reach_bytes(257) < TEXT_MAX_BYTES
    assert reach_bytes(1024) == 16_384


@examples(150)
@given(st.text("ab()|*+?.[]^$x", max_size=7), st.text("abx", max_size=8))
def test_patterns_match_as_in_python(source: str, text: str) -> None:
    """Python's `$` also matches before a final line end. That case and groups inside repeats are excluded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = re.compile(source)
            pattern = Pattern(source)
        except (re.error, BadPattern):
            return
    match = expected.search(text)
    if not expected.groups:
        assert pattern.find(text) == (match and match.group())
    elif match is None:
        assert pattern.find(text) is None
