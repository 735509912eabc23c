"""The example of docs/contribute/add-a-capability.md."""

from __future__ import annotations

from docs.examples.partition_counts import CountPartition, install
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.model.authorization.accesses import Access
from tablegate.gateway.model.authorization.conditions import ConditionKey
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tests.gateway.engine.conftest import Client


def count_of(things: Client, p: str) -> CountPartition:
    return CountPartition(things.table, things.key(p).position.partition)


def test_the_example_counts_the_rows_of_a_partition(engine: Engine, things: Client) -> None:
    install(engine, EngineOptions())
    things.write(things.put("a", 1), things.put("a", 2), things.put("b", 1), things.put("ä" * 1_000, 1))
    assert engine.run([count_of(things, p) for p in ("a", "b", "c", "ä" * 1_000)]) == [2, 1, 0, 1]


def test_the_example_declares_its_accesses(things: Client) -> None:
    command = count_of(things, "a")
    [access] = command.accesses(Purpose((Permission.QUERY,)))
    assert isinstance(access, Access)
    assert (access.permission, command.fact(ConditionKey.LEADING_KEYS)) == (Permission.QUERY, ("a",))
