"""Parsers' tables in files: those of the grammars as they are, and of no others."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from adapters.azuretable.queries import filter_grammar
from adapters.dynamodb.partiql import parsing
from gateway.parser_tables import Grammar
from tests.support.parser_tables import GRAMMARS

FROM_TABLES, FROM_GRAMMAR = "<deserialized>", "<string>"


@pytest.mark.parametrize("known", GRAMMARS)
def test_tables_are_of_the_grammar_as_it_is(known: Grammar) -> None:
    """If they are not: `make parsers`."""
    assert known.parser().source_path == FROM_TABLES


def test_tables_of_another_grammar_or_none_at_all_are_not_used(tmp_path: Path) -> None:
    kept = Grammar('start: "a"+', tmp_path / "tables.json")
    assert kept.parser().source_path == FROM_GRAMMAR
    kept.keep()
    assert kept.parser().source_path == FROM_TABLES
    assert kept.parser().parse("aa") == kept.parser().parse("aa")
    for other in (
        dataclasses.replace(kept, text='start: "b"+'),
        dataclasses.replace(kept, options={"lexer": "basic"}),
    ):
        assert other.parser().source_path == FROM_GRAMMAR
    for damaged in (b"", b"{}", b"[]", kept.tables.read_bytes()[:-20]):
        kept.tables.write_bytes(damaged)
        assert kept.parser().source_path == FROM_GRAMMAR


@pytest.mark.parametrize(
    ("known", "callbacks", "texts"),
    [
        (
            parsing.GRAMMAR,
            parsing._callbacks,
            ["SELECT * FROM t WHERE a = 1", "INSERT INTO t VALUE {'a': 1}"],
        ),
        (filter_grammar.GRAMMAR, {}, ["a eq 'b' and not (c gt 3)", "a ne datetime'2020-01-01T00:00:00Z'"]),
    ],
)
def test_both_parse_alike(known: Grammar, callbacks: Any, texts: list[str], tmp_path: Path) -> None:
    made = dataclasses.replace(known, tables=tmp_path / "none")
    for text in texts:
        one, other = (each.parser(lexer_callbacks=callbacks).parse(text) for each in (known, made))
        assert one == other
