"""A server is killed while clients write to a table with a search index. The index then equals a new one.

`make soak` kills the server 50 times.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.store.opening import open_database
from tests.adapters.tablestore.search_messages import field, schema
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import Begin, processes
from tests.support.waiting import wait_until

pytestmark = pytest.mark.extended

KILLS = 50 if "TABLEGATE_TEST_SOAK_SECONDS" in os.environ else 1
WRITES, KEYS = 40, 30
SCHEMA = schema(
    ("k", messages.KEYWORD),
    ("l", messages.LONG),
    ("t", messages.TEXT),
    field("n", messages.NESTED, field_schemas=[field("a", messages.LONG)]),
)


@pytest.fixture
def begin(tmp_path: Path, database_url: str) -> Iterator[Begin]:
    """Start a server process. Those that still run are killed at the end."""
    with processes(tmp_path, "--dialects", "tablestore") as begin:
        yield partial(begin, database_url)


def write(live: LiveTableStore, chance: random.Random) -> None:
    for number in range(WRITES):
        key = {"pk": chance.randrange(KEYS)}
        if chance.random() < 0.25:
            live.delete(key)
        else:
            nested = json.dumps([{"a": chance.randrange(4)}])
            cells = {"k": f"k{number}", "l": number, "t": f"one of {number}", "n": nested}
            live.put(key, dict(chance.sample([*cells.items()], 3)))


def wait_for(live: LiveTableStore, name: str) -> None:
    """Wait until all changes so far are in an index."""
    written_ns = live.clock.ms * 1_000_000

    def is_current() -> bool:
        stat = live.call("DescribeSearchIndex", table_name="t", index_name=name).sync_stat
        return bool(stat.sync_phase == messages.INCR and stat.current_sync_timestamp >= written_ns)

    wait_until(is_current)


def contents(database_url: str) -> dict[str, list[Any]]:
    """Return the documents and terms of each index, without the numbers of documents."""
    database = open_database(database_url)
    try:
        with database.read() as session:
            return {
                name: [
                    sorted(
                        (bytes(partition), json.loads(body))
                        for partition, body in session.query(
                            "SELECT partition, body FROM search_documents WHERE index_id = ?", (index_id,)
                        )
                    ),
                    sorted(
                        session.query(
                            "SELECT t.field, t.term, d.partition FROM search_terms t JOIN search_documents d"
                            " ON d.index_id = t.index_id AND d.document = t.document WHERE t.index_id = ?",
                            (index_id,),
                        )
                    ),
                    session.query("SELECT count(*) FROM search_terms WHERE index_id = ?", (index_id,)),
                ]
                for index_id, name in session.query("SELECT id, name FROM search_indexes")
            }
    finally:
        database.close()


@pytest.mark.soak
def test_an_index_equals_a_new_one_after_kills(begin: Begin, database_url: str) -> None:
    chance = random.Random(3)
    server = begin()
    live = LiveTableStore(server.url)
    live.create("t")
    write(live, chance)
    live.call("CreateSearchIndex", table_name="t", index_name="i", schema=SCHEMA)
    for _ in range(KILLS):
        write(live, chance)
        server.kill()
        server = begin()
        live = LiveTableStore(server.url)
    write(live, chance)
    live.call("CreateSearchIndex", table_name="t", index_name="j", schema=SCHEMA)
    for name in "ij":
        wait_for(live, name)
    server.kill()
    found = contents(database_url)
    assert found["i"][0]
    assert found["i"] == found["j"]
