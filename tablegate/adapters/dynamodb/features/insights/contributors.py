"""Counts of contributor insights: the most accessed and the most throttled keys of tables and indexes.

Keys are counted only where insights are switched on (properties.INSIGHTS). Elsewhere a handler only looks into a dict.
Memory is bounded: each list has a fixed number of counters, and the number of lists is limited. The counters are a
space-saving sketch: Metwally, Agrawal and El Abbadi, "Efficient computation of frequent and top-k elements in data
streams", ICDT 2005. Each server process counts for itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from tablegate.adapters.dynamodb.tables.properties import INSIGHTS
from tablegate.adapters.dynamodb.values.values import render_values, view
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import Get, Read, ReadAll, WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeySchema, decode_column
from tablegate.gateway.model.values.values import Value
from tablegate.gateway.observability.metrics import ContributorSample, contributor_sources

ACCESSED, THROTTLED = "ACCESSED_AND_THROTTLED_KEYS", "THROTTLED_KEYS"
"""The modes."""

COUNTERS = 100
SHOWN = 10
_LISTS = 1_000


class SpaceSaving:
    """A sketch of the most frequent keys with a fixed number of counters.

    A key that replaces another continues from its count. So no count is too low, and none exceeds the true count by
    more than the number of accesses divided by the number of counters.
    """

    def __init__(self, counters: int = COUNTERS) -> None:
        self._counters = counters
        self._counts: dict[tuple[str, ...], int] = {}

    def add(self, key: tuple[str, ...]) -> None:
        counts = self._counts
        if key in counts:
            counts[key] += 1
        elif len(counts) < self._counters:
            counts[key] = 1
        else:
            rarest = min(counts, key=counts.__getitem__)
            counts[key] = counts.pop(rarest) + 1

    def top(self, number: int = SHOWN) -> list[tuple[tuple[str, ...], int]]:
        return sorted(self._counts.items(), key=lambda pair: (-pair[1], pair[0]))[:number]


# (table, index, kind of rule) -> sketch. The sketch updated least recently is evicted first.
_sketches: OrderedDict[tuple[str, str, str], SpaceSaving] = OrderedDict()


def _count(table: Table, index: str, kind: str, values: Iterable[Value]) -> None:
    """Count the values of a key in the lists of partition keys and of whole keys.

    Partition key values alone are allowed.
    """
    texts = tuple(_text(value) for value in values)
    schema = table.key_schema if not index else _index_of(table, index).key_schema
    split = len(schema.partition)
    for rule, key in ((f"PK{kind}", texts[:split]), (f"SK{kind}", texts)):
        if rule.startswith("SK") and (not schema.sort or len(texts) < split + 1):
            continue
        place = (table.name, index, rule)
        sketch = _sketches.get(place)
        if sketch is None:
            if len(_sketches) >= _LISTS:
                _sketches.popitem(last=False)
            sketch = _sketches[place] = SpaceSaving()
        else:
            _sketches.move_to_end(place)
        sketch.add(key)


def _index_of(table: Table, name: str) -> Index:
    index = table.index(name)
    assert index is not None
    return index


def _text(value: Value) -> str:
    [rendered] = render_values({"": view(value)}).values()
    [text] = rendered.values()
    return str(text)


def count_read(get: Get) -> None:
    """Count the read of an item, if its table has insights."""
    if get.table.properties[INSIGHTS].get("") == ACCESSED:
        _count(get.table, "", "C", get.table.key_schema.decode(get.position).values)


def count_write(write: Write, outcome: WriteOutcome) -> None:
    """Count the write of an item, for its table and those of its indexes that have insights and an entry for it."""
    table = write.table
    row = outcome.new or outcome.old
    for name, mode in table.properties[INSIGHTS].items():
        if mode != ACCESSED:
            continue
        if not name:
            _count(table, "", "C", write.key.values)
        elif row is not None and (index := table.index(name)) is not None and index.entry(row) is not None:
            _count(table, name, "C", [row.latest[column.name] for column in index.key_schema.columns])


def count_query(read: Read) -> None:
    """Count the Query of a partition, if the table or index has insights."""
    table, index = read.table, read.index
    name = "" if index is None else index.name
    if table.properties[INSIGHTS].get(name) == ACCESSED and _is_query(read):
        schema = table.key_schema if index is None else index.key_schema
        _count(table, name, "C", _partition_values(schema, read.range.lower.partition))


def _is_query(read: Read) -> bool:
    return not read.range.is_empty and read.range.lower.partition == read.range.upper.partition


def _partition_values(schema: KeySchema, partition: bytes) -> list[Value]:
    values: list[Value] = []
    start = 0
    for column in schema.partition:
        value, start = decode_column(partition, start, column.kind)
        values.append(value)
    return values


def count_throttled(command: Command[Any]) -> None:
    """Count the keys of a throttled command."""
    for table, index, values in _keys_of(command):
        if index in table.properties.get(INSIGHTS, ()):
            _count(table, index, "T", values)


def _keys_of(command: Command[Any]) -> Iterator[tuple[Table, str, Iterable[Value]]]:
    match command:
        case Get(table, position):
            yield table, "", table.key_schema.decode(position).values
        case ReadAll(gets):
            for get in gets:
                yield from _keys_of(get)
        case Read():
            schema = command.table.key_schema if command.index is None else command.index.key_schema
            name = "" if command.index is None else command.index.name
            if _is_query(command):
                yield command.table, name, _partition_values(schema, command.range.lower.partition)
        case WriteGroup(writes):
            for write in writes:
                yield write.table, "", write.key.values


def forget(table: Table, index: str) -> None:
    """Delete the counts of a table or an index after its insights are switched off."""
    for rule in ("PKC", "SKC", "PKT", "SKT"):
        _sketches.pop((table.name, index, rule), None)


def _samples() -> Iterator[ContributorSample]:
    for (table, index, rule), sketch in list(_sketches.items()):
        for key, count in sketch.top():
            yield ContributorSample(table, index, rule, key, count)


contributor_sources.append(_samples)
