"""Keys of maximal legal length, incompressible, in tables and indexes. Also keys that are equal after truncation.

PostgreSQL rejects an index tuple over 2,704 bytes. SQLite or compressible keys would hide such an error.
"""

from __future__ import annotations

import random

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.commands.row_commands import Get
from tablegate.gateway.model.commands.table_commands import NewIndex
from tablegate.gateway.model.commands.writes import Remove, Replace, Write
from tablegate.gateway.model.expressions.ranges import EVERYTHING, KeyRange, within
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.values.keys import KeySchema, Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tests.gateway.engine.conftest import Client, column, make_table

BYTES_PAIR = KeySchema((column("p", Kind.BYTES),), (column("s", Kind.BYTES),))


def noise(seed: object, length: int) -> bytes:
    return random.Random(str(seed)).randbytes(length)


def put(client: Client, **values: bytes) -> Write:
    attributes = {name: Value(Kind.BYTES, data) for name, data in values.items()}
    return Write(
        client.table, client.table.key_schema.key(attributes), Replace(Contents.of_values(attributes))
    )


def every_position(client: Client, reverse: bool, **options: object) -> list[Position]:
    """All pages of three rows."""
    bounds, seen = EVERYTHING, []
    while True:
        page = client.page(bounds, limits=PageLimits(scanned=3), reverse=reverse, **options)
        seen += [row.position for row in page.rows]
        if page.last is None:
            return seen
        bounds = bounds.before(page.last.position) if reverse else bounds.after(page.last.position)


@pytest.mark.parametrize(
    ("partition_bytes", "sort_bytes"),
    [(2_048, 1_024), (1_024, 3_072), (1_536, 1_536)],
    ids=["dynamodb", "tablestore", "azure"],
)
def test_maximal_incompressible_keys(engine: Engine, partition_bytes: int, sort_bytes: int) -> None:
    client = Client(engine, make_table(engine, schema=BYTES_PAIR))
    writes = [put(client, p=noise(n % 3, partition_bytes), s=noise(n, sort_bytes)) for n in range(9)]
    client.write(*writes)
    positions = sorted(write.key.position for write in writes)
    assert every_position(client, reverse=False) == positions
    found = engine.run([Get(client.table, position) for position in positions])
    assert [row.position for row in found] == positions
    client.write(*(Write(client.table, write.key, Remove()) for write in writes[:4]))
    assert len(client.rows()) == 5


def test_maximal_index_keys(engine: Engine) -> None:
    """The index's own key and the table's, together over 6 KB."""
    index = NewIndex(
        "wide", KeySchema((column("i", Kind.BYTES),), (column("j", Kind.BYTES),)), IndexProjection.ALL
    )
    client = Client(engine, make_table(engine, schema=BYTES_PAIR, indexes=(index,)))
    writes = [
        put(client, p=noise(n, 2_048), s=noise(-n, 1_024), i=noise("i", 2_048), j=noise(f"j{n % 2}", 1_024))
        for n in range(8)
    ]
    client.write(*writes)
    made = client.table.index("wide")
    rows: list[Row] = client.rows(index=made)
    keys = [
        (row.latest["i"].data, row.latest["j"].data, row.latest["p"].data, row.latest["s"].data)
        for row in rows
    ]
    assert keys == sorted(keys)
    assert len(keys) == 8
    client.write(*(put(client, p=noise(n, 2_048), s=noise(-n, 1_024)) for n in range(8)))
    assert client.rows(index=made) == []


@pytest.mark.parametrize("reverse", [False, True])
def test_keys_that_tie_are_in_full_order(engine: Engine, reverse: bool) -> None:
    client = Client(engine, make_table(engine, schema=BYTES_PAIR))
    head = b"h" * 1_260
    partitions = [b"a", head[:1_247], head[:1_250], *(head + noise(n, 90) for n in range(4)), b"z"]
    sorts = [b"", b"m", head[:1_247], head[:1_255], *(head + noise(n, 90) for n in range(5)), b"x"]
    writes = [put(client, p=p, s=s) for p in partitions for s in sorts]
    random.Random(1).shuffle(writes)
    client.write(*writes)
    expected = sorted((write.key.position for write in writes), reverse=reverse)
    assert every_position(client, reverse) == expected


def test_ranges_begin_and_end_among_ties(engine: Engine) -> None:
    client = Client(engine, make_table(engine, schema=BYTES_PAIR))
    head = b"h" * 1_300
    writes = [put(client, p=b"p", s=head + bytes((65 + n,)) * 3) for n in range(20)]
    client.write(*writes)
    positions = sorted(write.key.position for write in writes)
    whole = within(positions[0].partition)
    for start in range(0, 20, 3):
        for end in range(start + 1, 21, 4):
            bounds = KeyRange(positions[start], positions[end] if end < 20 else whole.upper)
            for reverse in (False, True):
                found = [row.position for row in client.rows(bounds=bounds, reverse=reverse)]
                assert found == sorted(positions[start:end], reverse=reverse)
