"""The cache of table descriptors: its order and its bound."""

from __future__ import annotations

import dataclasses
import tracemalloc

import orjson

from tablegate.gateway.model.tables.tables import Rules, State, Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tablegate.gateway.store.tables.descriptors import Cache, memory_bytes


def table(number: int, **properties: object) -> Table:
    schema = KeySchema((KeyColumn("p", Kind.TEXT),), ())
    name = f"t{number}"
    return Table(number, "", name, name.upper(), schema, (), Rules(), properties, State.ACTIVE, 0, 1, 0)


def test_the_least_recently_used_is_evicted() -> None:
    tables = [table(number) for number in range(4)]
    cache = Cache(3 * memory_bytes(tables[0]))
    for each in tables[:3]:
        cache.keep(each)
    assert cache.get("", "t0") is tables[0]
    assert cache.get("", "T1", by_azure_name=True) is tables[1]
    cache.keep(tables[3])
    assert [cache.get("", each.name) for each in tables] == [tables[0], tables[1], None, tables[3]]
    assert cache.get("", "T2", by_azure_name=True) is None
    assert cache.by_id(2) is None


def test_a_large_descriptor_evicts_several_and_fits_alone() -> None:
    tables = [table(number) for number in range(3)]
    cache = Cache(3 * memory_bytes(tables[0]))
    large = table(9, policy="x" * 3 * memory_bytes(tables[0]))
    for each in (*tables, large):
        cache.keep(each)
    assert [cache.get("", each.name) for each in (*tables, large)] == [None, None, None, large]
    cache.keep(tables[0])
    assert cache.get("", "t9") is None


def test_replaced_and_forgotten_descriptors_leave_their_space() -> None:
    tables = [table(number) for number in range(3)]
    cache = Cache(3 * memory_bytes(tables[0]))
    for version in range(10):
        cache.keep(dataclasses.replace(tables[0], version=version))
    cache.forget(0)
    for each in tables:
        cache.keep(each)
    assert [cache.get("", each.name) for each in tables] == tables


def test_the_memory_of_descriptors_is_about_as_estimated() -> None:
    """With properties as DynamoDB's: many members, few of them long."""
    json = orjson.dumps({f"member_{number}": {"read": 0, "write": None, "at": ""} for number in range(16)})
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        cache = Cache(64 << 20)
        for number in range(500):
            cache.keep(table(number, **orjson.loads(json)))
        used = (tracemalloc.get_traced_memory()[0] - before) / 500
    finally:
        tracemalloc.stop()
    estimate = memory_bytes(table(0, **orjson.loads(json)))
    assert 0.5 * used < estimate < 2 * used, (used, estimate)
