"""A new field disables each fast path that does not consider it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.commands.row_commands import ReadAll, WriteGroup
from tablegate.gateway.model.tables.tables import Rules, State, Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tests.gateway.engine.conftest import PAIR


def test_an_unknown_rule_is_a_feature() -> None:
    """A fast path lists the features that it covers, so a new side effect of writes keeps it off."""

    @dataclass(frozen=True)
    class RulesOfTomorrow(Rules):
        audits: bool = False

    def table(rules: Rules) -> Table:
        return Table(1, "", "t", "t", PAIR, (), rules, {}, State.ACTIVE, 0, 1, 0)

    assert table(RulesOfTomorrow()).features == frozenset()
    assert table(RulesOfTomorrow(audits=True)).features == {"audits"}
    drawn = KeySchema((KeyColumn("p", Kind.TEXT),), (KeyColumn("s", Kind.INT64, auto_increment=True),))
    assert replace(table(Rules()), key_schema=drawn).features == {"auto_increment"}


def test_an_unknown_field_disables_fast_paths() -> None:
    assert fast_paths.covers(WriteGroup, "writes token transaction")
    assert not fast_paths.covers(WriteGroup, "writes token")
    assert fast_paths.covers(ReadAll, "gets max_bytes")
    assert not fast_paths.covers(ReadAll, "gets")


def test_a_field_that_does_not_exist_is_reported() -> None:
    with pytest.raises(ValueError, match="ReadAll has no fields \\['max_rows'\\]"):
        fast_paths.covers(ReadAll, "gets max_bytes max_rows")
