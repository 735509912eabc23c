"""Searches as data: paths as texts, and operators as predicates and key ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.commands.row_search import KEY_OPERATORS, Operator, parse_path, path_text

NAMES = st.text(min_size=1, max_size=12)
PATHS = st.tuples(NAMES, st.lists(st.one_of(NAMES, st.integers(0, 999_999)), max_size=4)).map(
    lambda parts: (parts[0], *parts[1])
)


@given(PATHS)
def test_a_path_is_read_as_it_is_shown(path: tuple[str | int, ...]) -> None:
    assert parse_path(path_text(path)) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", ("a",)),
        ("a.b[0]", ("a", "b", 0)),
        ('"a.b"[1].c', ("a.b", 1, "c")),
        ('a."say ""hi"""', ("a", 'say "hi"')),
        ("a b", ("a b",)),
    ],
)
def test_texts_of_paths(text: str, path: tuple[str | int, ...]) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".a", "a..b", "[0]", "a[x]", "a[0", "a.[0]", 'a"b"', '"a', "a[1]b"]
)
def test_texts_that_are_no_paths(text: str) -> None:
    assert parse_path(text) is None


def test_each_comparison_has_a_form_for_sizes() -> None:
    compared = [each for each in Operator if each.comparison is not None]
    sizes = {each.comparison for each in compared if each.is_of_size}
    assert sizes == {each.comparison for each in compared if not each.is_of_size}
    assert {each.value for each in compared if each.is_of_size} == {
        f"size {each.value}" for each in compared if not each.is_of_size
    }
    assert not any(each.is_of_size for each in KEY_OPERATORS)
