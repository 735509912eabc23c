"""The numbers of slots are even under Citus' hash, which is PostgreSQL's hash function of the type (hashint2)."""

from __future__ import annotations

from collections import Counter

import pytest

from tablegate.gateway.model.values.keys import SLOTS
from tablegate.gateway.store.opening import open_database
from tests.support.databases import PostgresServer


@pytest.fixture(scope="module")
def hashes(postgres: PostgresServer) -> dict[int, int]:
    """The hashes of all numbers that could be slots, from 0 to 2^32 - 1 in the order of Citus' shards."""
    database = open_database(postgres.empty_database())
    with database.engine.connect() as connection:
        found = connection.exec_driver_sql(
            "SELECT n, hashint2(n::smallint)::bigint + 2147483648 FROM generate_series(0, 32767) n"
        ).all()
    database.close()
    return dict(map(tuple, found))


def fullness(slots: range | tuple[int, ...], hashes: dict[int, int], shards: int) -> float:
    """Return the number of slots in the fullest shard, divided by the mean. Citus' shards are equal ranges of hashes."""
    counts = Counter(hashes[slot] * shards >> 32 for slot in slots)
    return max(counts.values()) * shards / len(slots)


def test_each_1024th_of_the_hashes_has_its_smallest_number(hashes: dict[int, int]) -> None:
    smallest: dict[int, int] = {}
    for number in range(32_768):
        smallest.setdefault(hashes[number] >> 22, number)
    assert len(SLOTS) == 1024
    assert sorted(smallest.values()) == [*SLOTS]


@pytest.mark.parametrize("shards", [1 << power for power in range(11)])
def test_shards_have_equal_numbers_of_slots(shards: int, hashes: dict[int, int]) -> None:
    assert fullness(SLOTS, hashes, shards) == 1.0


def test_consecutive_numbers_would_be_uneven(hashes: dict[int, int]) -> None:
    assert {shards: fullness(range(1024), hashes, shards) for shards in (16, 32, 64)} == {
        16: 1.140625,
        32: 1.25,
        64: 1.625,
    }
