"""A search of a vector index equals an exhaustive search with numpy, after any sequence of writes."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.features.history.backup_commands import (
    CopyTables,
    DescribeTables,
    ImportDefinition,
    ImportRows,
    KeepHistory,
    ResetTables,
    RestoreTable,
)
from tablegate.gateway.features.vectors.install import install
from tablegate.gateway.features.vectors.vectors import (
    Metric,
    SearchVectors,
    VectorIndex,
    VectorMatch,
    pack,
    vector_index,
)
from tablegate.gateway.model.commands import table_commands
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.table_commands import CreateTable
from tablegate.gateway.model.errors import IndexMissing, TableBusy
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Kind, Value, decimal, number_set, text
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import PAIR, Client, column, do_background_work, make_table
from tests.support.clock import Clock
from tests.support.examples import examples

FLOAT32 = np.finfo(np.float32)


def list_of(numbers: Any) -> Value:
    return Value(Kind.LIST, tuple(Value(Kind.DECIMAL, Decimal(repr(float(number)))) for number in numbers))


def by_meaning(
    metric: Metric = Metric.COSINE, name: str = "by_meaning", dimensions: int = 3, **more: Any
) -> VectorIndex:
    return VectorIndex(0, name, "v", dimensions, metric, IndexProjection.ALL, **more)


def make(engine: Engine, *indexes: VectorIndex, name: str = "things") -> Client:
    [table] = engine.run([table_commands.CreateTable("test", "", name, PAIR, other_indexes=indexes)])
    assert isinstance(table, Table), table
    return Client(engine, table)


def search(
    client: Client, query: Any, count: int = 5, name: str = "by_meaning", **where: Any
) -> list[VectorMatch]:
    index = vector_index(client.table, name)
    assert index is not None
    [found] = client.engine.run([SearchVectors(client.table, index, pack(query), count, **where)])
    if isinstance(found, Exception):
        raise found
    return found


def names(found: list[VectorMatch]) -> list[str]:
    return [match.row.latest["p"].data for match in found]


def score(metric: Metric, one: Any, other: Any) -> float:
    """By the definition, in 64 bits, of numbers that were rounded to 32."""
    one, other = np.float32(one).astype(np.float64), np.float32(other).astype(np.float64)
    if metric is Metric.DOT_PRODUCT:
        return float(one @ other)
    if metric is Metric.EUCLIDEAN:
        return float(np.linalg.norm(one - other))
    length = np.linalg.norm(one) * np.linalg.norm(other)
    return 1.0 if length == 0 else 1 - float(one @ other) / length


def expected(rows: list[Row], metric: Metric, query: Any, count: int, dimensions: int = 3) -> list[float]:
    scores = []
    for row in rows:
        value = row.latest.get("v")
        if value is None or value.kind is not Kind.LIST or len(value.data) != dimensions:
            continue
        if all(member.kind is Kind.DECIMAL for member in value.data):
            scores.append(score(metric, [float(member.data) for member in value.data], query))
    return sorted(scores, reverse=metric is Metric.DOT_PRODUCT)[:count]


def check(client: Client, metric: Metric, query: Any, count: int = 5, **options: Any) -> None:
    found = search(client, query, count, **options)
    assert [match.score for match in found] == pytest.approx(
        expected(client.rows(), metric, query, count), rel=1e-9, abs=1e-9
    )
    for match in found:
        assert match.row.latest == {row.position: row for row in client.rows()}[match.row.position].latest


@pytest.mark.parametrize(
    ("metric", "scores"),
    [
        (Metric.COSINE, [0, 0.4, 1, 2]),
        (Metric.EUCLIDEAN, [0, 0.894427, 1.414214, 2]),
        (Metric.DOT_PRODUCT, [1, 0.6, 0, -1]),
    ],
)
def test_the_three_metrics(engine: Engine, metric: Metric, scores: list[float]) -> None:
    """botocore 1.44.5, SearchVectors: COSINE from 0 (identical) to 2 (opposite) and EUCLIDEAN, the smallest first.

    DOT_PRODUCT, the greatest first. The figures for (1, 0, 0) and (0.6, 0.8, 0) follow from the definitions.
    """
    client = make(engine, by_meaning(metric))
    for name, vector in {
        "opposite": (-1, 0, 0),
        "near": (0.6, 0.8, 0),
        "across": (0, 1, 0),
        "same": (1, 0, 0),
    }.items():
        client.write(client.put(name, v=list_of(vector)))
    found = search(client, (1, 0, 0))
    assert names(found) == ["same", "near", "across", "opposite"]
    assert [match.score for match in found] == pytest.approx(scores, abs=1e-6)


def test_a_vector_of_no_length_is_at_a_right_angle(engine: Engine) -> None:
    client = make(engine, by_meaning())
    client.write(client.put("a", v=list_of((0, 0, 0))), client.put("b", v=list_of((1, 0, 0))))
    assert [match.score for match in search(client, (0, 0, 0))] == [1.0, 1.0]
    assert [match.score for match in search(client, (1, 0, 0))] == [0.0, 1.0]


@pytest.mark.parametrize("metric", list(Metric))
def test_numbers_at_the_ends_of_their_range(engine: Engine, metric: Metric) -> None:
    """Products outside the range of 32 bits are still correct. A score is a number of at most 32 bits."""
    client = make(engine, by_meaning(metric))
    great, small = float(FLOAT32.max), float(FLOAT32.smallest_subnormal)
    for at, vector in enumerate(
        [(great, great, great), (-great, 0, 0), (small, small, 0), (small, 0, 0), (1, 1, 1), (1e-30, 0, 0)]
    ):
        client.write(client.put(f"p{at}", v=list_of(vector)))
    for query in [(great, great, great), (small, 0, 0), (1e-30, 1e-30, 0), (1, 1, 1)]:
        found = [match.score for match in search(client, query, 6)]
        wanted = np.clip(expected(client.rows(), metric, query, 6), -FLOAT32.max, FLOAT32.max)
        assert found == pytest.approx(list(wanted), rel=1e-6)


def test_equally_near_ones_come_as_they_were_written(engine: Engine) -> None:
    client = make(engine, by_meaning())
    for name in "cabd":
        client.write(client.put(name, v=list_of((1, 2, 3))))
    assert names(search(client, (1, 2, 3), 3)) == ["c", "a", "b"]


def test_values_that_are_no_vector_of_the_index_are_not_found(engine: Engine) -> None:
    client = make(engine, by_meaning())
    client.write(
        client.put("none"),
        client.put("text", v=text("[1, 0, 0]")),
        client.put("short", v=list_of((1, 0))),
        client.put("mixed", v=Value(Kind.LIST, (decimal(1), text("0"), decimal(0)))),
        client.put("great", v=Value(Kind.LIST, (decimal("1E39"), decimal(0), decimal(0)))),
        client.put("set", v=number_set({Decimal(1), Decimal(2), Decimal(3)})),
        client.put("good", v=list_of((1, 0, 0))),
    )
    assert names(search(client, (1, 0, 0))) == ["good"]


def test_partitions_and_filters(engine: Engine) -> None:
    client = make(
        engine, by_meaning(partition=column("tenant"), filters=(column("kind"), column("year", Kind.DECIMAL)))
    )
    chance = random.Random(1)
    for at in range(200):
        more: dict[str, Value] = {
            "tenant": text(f"t{at % 3}"),
            "kind": text("ab"[at % 2]),
            "year": decimal(2000 + at % 5),
        }
        for name in ("tenant", "kind", "year"):
            if chance.random() < 0.2:
                del more[name]
        client.write(client.put(f"p{at}", v=list_of([chance.uniform(-1, 1) for _ in range(3)]), **more))
    query = (0.3, -0.2, 0.7)
    for where in [
        {},
        {"kind": text("a")},
        {"year": decimal("2003.0")},
        {"kind": text("b"), "year": decimal(2001)},
        {"kind": text("")},
    ]:
        wanted = {"tenant": text("t1")} | where
        rows = [
            row
            for row in client.rows()
            if all(row.latest.get(name) == value for name, value in wanted.items())
        ]
        for count in (1, 7, 100):
            found = search(client, query, count, partition=text("t1"), filters=where)
            assert [match.score for match in found] == pytest.approx(
                expected(rows, Metric.COSINE, query, count)
            )
            assert all(
                match.row.latest.get(name) == value for match in found for name, value in wanted.items()
            )
    assert search(client, query, partition=text("t9")) == []


@pytest.mark.parametrize("memory", [0, 4_000, 1 << 20])
def test_searches_follow_random_writes(engine: Engine, memory: int) -> None:
    """Covers an image in memory, no image, and an image that no longer fits in memory."""
    install(engine, EngineOptions(vector_memory_bytes=memory))
    client = make(engine, by_meaning(Metric.EUCLIDEAN), by_meaning(Metric.DOT_PRODUCT, "other"))
    chance = random.Random(memory)
    for _ in range(60):
        writes = []
        for _ in range(chance.randint(1, 8)):
            p, s = chance.choice("abcdefghij"), chance.randint(0, 9)
            kind = chance.random()
            if kind < 0.25:
                writes.append(client.remove(p, s))
            elif kind < 0.35:
                writes.append(client.put(p, s, other=text("x")))
            elif kind < 0.45:
                writes.append(client.put(p, s, v=list_of([1.0, 2.0])))
            else:
                writes.append(client.put(p, s, v=list_of([chance.uniform(-2, 2) for _ in range(3)])))
        groups = (
            [WriteGroup(tuple({write.key.position: write for write in writes}.values()))]
            if chance.random() < 0.3
            else [WriteGroup((write,)) for write in writes]
        )
        client.engine.run([*groups])
        query = [chance.uniform(-2, 2) for _ in range(3)]
        check(client, Metric.EUCLIDEAN, query, chance.choice([1, 5, 100]))
        if chance.random() < 0.3:
            check(client, Metric.DOT_PRODUCT, query, name="other")
    assert client.engine.run([table_commands.CountRows(client.table)])[0].indexes["by_meaning"][0] == len(
        search(client, (1, 1, 1), 100)
    )


@examples(25)
@given(data=st.data())
def test_exact_search_equals_brute_force(data: st.DataObject) -> None:
    """Blocks alone, of any numbers of 32 bits and any size."""
    from tablegate.gateway.features.vectors import exact_search

    dimensions = data.draw(st.integers(1, 5))
    number = st.floats(width=32, allow_nan=False, allow_infinity=False)
    component = st.one_of(number, st.sampled_from([0.0, 1.0, -1.0, 0.5]))
    vectors = data.draw(
        st.lists(st.lists(component, min_size=dimensions, max_size=dimensions), min_size=1, max_size=40)
    )
    query = data.draw(st.lists(component, min_size=dimensions, max_size=dimensions))
    count, width = data.draw(st.integers(1, 10)), data.draw(st.integers(1, 15))
    for metric in Metric:
        best = exact_search.NearestSoFar(exact_search.search_near(metric, pack(query), count, ()))
        for start in range(0, len(vectors), width):
            some = vectors[start : start + width]
            block = exact_search.VectorBlock.of(
                [(start + at, None, b"", pack(one)) for at, one in enumerate(some)]
            )
            best.scan(exact_search.BlockPart(block, block.length))
        found = best.results()
        scores = [score(metric, one, query) for one in vectors]
        wanted = np.clip(
            sorted(scores, reverse=metric is Metric.DOT_PRODUCT)[:count], -FLOAT32.max, FLOAT32.max
        )
        assert [score for _, score in found] == pytest.approx(list(wanted), rel=1e-6, abs=1e-7)


def test_a_new_index_is_filled_with_existing_rows(engine: Engine, things: Client) -> None:
    chance = random.Random(3)
    things.write(
        *(things.put(f"p{n}", n, v=list_of([chance.uniform(-1, 1) for _ in range(3)])) for n in range(300))
    )
    [things.table] = engine.run(
        [table_commands.AlterTable("test", things.table, add_other_indexes=(by_meaning(),))]
    )
    with pytest.raises(TableBusy):
        search(things, (1, 0, 0))
    # Meanwhile rows are written, before and behind the place that filling has come to.
    engine.background.next_batch()
    things.write(
        things.remove("p7", 7),
        things.put("p8", 8, v=list_of((1, 1, 1))),
        things.put("new", v=list_of((1, 0, 0))),
    )
    things.write(things.remove("p9", 9), things.put("p10", 10))
    do_background_work(engine)
    [things.table] = engine.run([table_commands.FindTable("", "things")])
    for count in (1, 10, 100):
        check(things, Metric.COSINE, (0.5, 0.1, -0.3), count)
    [statistics] = engine.run([table_commands.CountRows(things.table)])
    assert statistics.indexes["by_meaning"][0] == 298


def test_an_index_that_is_dropped_is_gone_and_purged(engine: Engine) -> None:
    client = make(engine, by_meaning(), by_meaning(Metric.EUCLIDEAN, "other"))
    client.write(*(client.put(f"p{n}", v=list_of((n, 1, 1))) for n in range(20)))
    old = client.table
    [client.table] = engine.run([table_commands.AlterTable("test", old, drop_indexes=("by_meaning",))])
    assert [index.name for index in client.table.other_indexes] == ["other"]
    index = vector_index(old, "by_meaning")
    assert index is not None
    [answer] = engine.run([SearchVectors(client.table, index, pack((1, 0, 0)), 1)])
    assert isinstance(answer, IndexMissing)
    do_background_work(engine)
    check(client, Metric.EUCLIDEAN, (3, 1, 1), name="other")
    [_] = engine.run([table_commands.DropTable(client.table)])
    do_background_work(engine)
    with engine._store.read() as session:
        assert session.query("SELECT count(*) FROM vectors") == [(0,)]
        assert session.query("SELECT count(*) FROM counters WHERE name LIKE 'vectors%'") == [(0,)]


def test_resets_and_copies_take_it_along(engine: Engine) -> None:
    client = make(engine, by_meaning(partition=column("tenant")))
    client.write(*(client.put(f"p{n}", v=list_of((n, 1, 1)), tenant=text("t")) for n in range(20)))
    client.write(client.remove("p3"), client.put("p4", v=list_of((0, 0, 1)), tenant=text("u")))
    before = names(search(client, (1, 1, 1), 100, partition=text("t")))
    engine.run([CopyTables((("", "elsewhere"),))])
    [copied] = engine.run([table_commands.FindTable("elsewhere", "things")])
    assert names(search(Client(engine, copied), (1, 1, 1), 100, partition=text("t"))) == before
    engine.run([ResetTables("", keeps_definitions=True)])
    [client.table] = engine.run([table_commands.FindTable("", "things")])
    assert search(client, (1, 1, 1), 100, partition=text("t")) == []
    copy = Client(engine, copied)
    copy.write(copy.remove("p5"), copy.put("new", v=list_of((1, 1, 1)), tenant=text("t")))
    after = names(search(copy, (1, 1, 1), 100, partition=text("t")))
    assert sorted(after) == sorted({*before, "new"} - {"p5"})


def test_a_snapshot_in_a_file_takes_it_along(engine: Engine) -> None:
    client = make(engine, by_meaning(Metric.EUCLIDEAN, filters=(column("kind"),)))
    client.write(*(client.put(f"p{n}", v=list_of((n, 1, 1)), kind=text("ab"[n % 2])) for n in range(20)))
    [[(_, document)]] = engine.run([DescribeTables("")])
    [made] = engine.run([ImportDefinition("elsewhere", orjson.loads(orjson.dumps(document)))])
    assert isinstance(made, Table), made
    [answer] = engine.run([ImportRows(made, client.rows())])
    assert answer is None
    copy = Client(engine, made)
    for where in ({}, {"kind": text("a")}):
        wanted = names(search(client, (3, 1, 1), 10, filters=where))
        assert sorted(names(search(copy, (3, 1, 1), 10, filters=where))) == sorted(wanted)


def test_a_restored_table_has_its_index(engine: Engine, clock: Clock) -> None:
    client = make(engine, by_meaning())
    [client.table] = engine.run([KeepHistory(client.table, 35)])
    client.write(*(client.put(f"p{n}", v=list_of((n, 1, 1))) for n in range(20)))
    wanted = names(search(client, (1, 1, 1), 100))
    clock.advance(10)
    at = clock.ns // 100
    clock.advance(10)
    client.write(
        client.remove("p1"), client.put("p2", v=list_of((9, 9, 9))), client.put("new", v=list_of((1, 1, 1)))
    )
    [_] = engine.run([RestoreTable(CreateTable.like(client.table, "", "restored"), client.table, at)])
    do_background_work(engine)
    [restored] = engine.run([table_commands.FindTable("", "restored")])
    assert sorted(names(search(Client(engine, restored), (1, 1, 1), 100))) == sorted(wanted)


def test_expired_rows_leave_the_vector_index(engine: Engine, clock: Clock) -> None:
    [table] = engine.run(
        [
            table_commands.CreateTable(
                "test", "", "things", PAIR, rules=Rules(ExpiryRule("until")), other_indexes=(by_meaning(),)
            )
        ]
    )
    client = Client(engine, table)
    until = decimal(clock.ms // 1000 + 60)
    client.write(client.put("a", v=list_of((1, 0, 0)), until=until), client.put("b", v=list_of((1, 0, 0))))
    assert names(search(client, (1, 0, 0))) == ["a", "b"]
    clock.advance(120)
    do_background_work(engine)
    assert names(search(client, (1, 0, 0))) == ["b"]


def test_a_search_in_slices_sees_one_moment(engine: Engine) -> None:
    client = make(engine, by_meaning(Metric.EUCLIDEAN, dimensions=3))
    chance = random.Random(5)
    vectors = [[chance.uniform(-1, 1) for _ in range(3)] for _ in range(60)]
    client.write(*(client.put(f"p{n}", v=list_of(vector)) for n, vector in enumerate(vectors)))
    index = vector_index(client.table, "by_meaning")
    assert index is not None
    command = SearchVectors(client.table, index, pack((0, 0, 0)), 100)
    for warm in (False, True):
        wanted = names(search(client, (0, 0, 0), 100)) if warm else None
        count = len(client.rows())
        outcomes: dict[int, Any] = {}
        slices = engine.run_in_slices([command], outcomes, 1)
        next(slices)
        client.write(client.put(f"later{warm}", v=list_of((0, 0, 0))), client.remove(f"p{int(warm)}"))
        search(client, (0, 0, 0))
        for _ in slices:
            pass
        if not engine._store.database.has_snapshots:
            continue  # what was removed meanwhile may be missing
        assert len(outcomes[0]) == count
        assert wanted is None or names(outcomes[0]) == wanted
        check(client, Metric.EUCLIDEAN, (0, 0, 0), 100)


def test_servers_that_share_a_database_see_each_others_writes(engine: Engine, clock: Clock) -> None:
    """Each server has a separate image."""
    other = new_engine(Store(engine._store.database), EngineOptions(), clock)
    other.register_view("test", lambda value, is_partition: value)
    one = make(engine, by_meaning(Metric.EUCLIDEAN))
    [table] = other.run([table_commands.FindTable("", "things")])
    two = Client(other, table)
    chance = random.Random(11)
    for turn in range(30):
        writer, reader = (one, two) if turn % 2 else (two, one)
        for _ in range(chance.randint(1, 5)):
            p = chance.choice("abcdefgh")
            vector = list_of([chance.uniform(-1, 1) for _ in range(3)])
            writer.write(writer.remove(p) if chance.random() < 0.4 else writer.put(p, v=vector))
        check(reader, Metric.EUCLIDEAN, (0.1, 0.2, 0.3), 100)


def needs_images(engine: Engine) -> None:
    if not engine._store.database.has_snapshots:
        pytest.skip("without snapshots of all nodes nothing is kept in memory")


def test_an_image_of_a_replaced_database_server_is_discarded(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A standby may have lost commits, and given their versions to others."""
    needs_images(engine)
    client = make(engine, by_meaning())
    client.write(client.put("a", v=list_of((1, 0, 0))), client.put("b", v=list_of((0, 1, 0))))
    assert names(search(client, (1, 0, 0), 1)) == ["a"]
    with engine._store.write() as session:
        session.execute("UPDATE vectors SET vector = ?", (pack((0, 0, 1)),))
        statements = type(session.statements)
    assert search(client, (0, 0, 1), 1)[0].score == 1
    monkeypatch.setattr(statements, "server_start", "'later'")
    assert search(client, (0, 0, 1), 1)[0].score == 0


def test_the_total_size_of_images_is_bounded(engine: Engine) -> None:
    """The one that was searched least recently goes."""
    needs_images(engine)
    options = EngineOptions(vector_memory_bytes=2 * 64 * (12 + 8 + 8) + 64)
    searches = install(engine, options)
    clients = [make(engine, by_meaning(), name=name) for name in ("one", "two", "three")]
    for client in clients:
        client.write(client.put("a", v=list_of((1, 0, 0))))
    kept = []
    for at in (0, 1, 0, 2):
        assert names(search(clients[at], (1, 0, 0))) == ["a"]
        indexes = [each.table.other_indexes[0].id for each in clients]
        kept.append([index for index in range(3) if indexes[index] in searches.images._images])
    assert kept == [[0], [0, 1], [0, 1], [0, 2]]


def test_pieces_of_an_index_with_gaps(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most versions have been replaced, and few of the remaining ones are in each partition."""
    from tablegate.gateway.features.vectors import vector_search

    monkeypatch.setattr(vector_search, "_MIN_ROWS", 1)
    monkeypatch.setattr(vector_search, "_MAX_ROWS", 4)
    monkeypatch.setattr(vector_search, "_SMALL_PARTITION_ENTRIES", 0)
    for memory in (0, 1 << 20):
        install(engine, EngineOptions(vector_memory_bytes=memory))
        client = make(engine, by_meaning(partition=column("t")), name=f"things{memory}")
        for turn in range(60):
            vector, tenant = list_of((1, turn, 0)), text(f"t{turn % 5 if turn % 5 else turn % 2}")
            client.write(client.put(f"p{turn % 17}", v=vector, t=tenant))
            if turn % 20 == 19:
                found = {
                    name: row.latest["t"].data for row in client.rows() for name in [row.latest["p"].data]
                }
                for tenant_name in {*found.values()}:
                    wanted = sorted(name for name, of in found.items() if of == tenant_name)
                    assert sorted(names(search(client, (1, 0, 0), 50, partition=text(tenant_name)))) == wanted


def test_without_numpy_a_search_names_the_missing_package(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from tablegate.gateway.model.errors import NotInstalled

    client = make(engine, by_meaning())
    client.write(client.put("a", v=list_of((1, 0, 0))))
    monkeypatch.setitem(sys.modules, "numpy", None)
    for module in [*sys.modules]:
        if module in (
            "tablegate.gateway.features.vectors.vector_search",
            "tablegate.gateway.features.vectors.exact_search",
            "tablegate.gateway.features.vectors.index_images",
        ):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr("tablegate.gateway.features.vectors.vector_search", raising=False)
    with pytest.raises(NotInstalled):
        search(client, (1, 0, 0))


def test_tables_without_vector_indexes_have_no_such_feature(engine: Engine) -> None:
    assert make_table(engine, "plain").features == frozenset()
    assert make(engine, by_meaning()).table.features == {"other_indexes"}
