"""Random queries find the rows, in the order and number, that a plain evaluation of all rows finds."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.commands.search_commands import CreateSearchIndex, ListSearchIndexes, SearchRows
from tablegate.gateway.model.search import queries
from tablegate.gateway.model.search.aggregations import (
    NOTHING,
    CompositeSource,
    GroupByComposite,
    GroupByField,
    Inner,
)
from tablegate.gateway.model.search.analysis import Analyzer
from tablegate.gateway.model.search.documents import document_of
from tablegate.gateway.model.search.ordering import FieldSort, KeySort, Sorter, values_at
from tablegate.gateway.model.search.queries import DisjunctionMax, FunctionsScore, Query, ScoreFunction
from tablegate.gateway.model.search.schema import FieldType, SearchField, SearchIndex, SearchSchema
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.values import Kind, Value, text
from tablegate.gateway.store.search import documents as stored_documents
from tests.gateway.engine.conftest import Client, do_background_work
from tests.support.soak import minutes_long

WORDS = ("red", "green", "blue", "redder", "gr")
_INNER = (
    SearchField("n.k", FieldType.KEYWORD, "k", ancestors=("n",)),
    SearchField("n.l", FieldType.LONG, "l", ancestors=("n",)),
)
NESTED = SearchField("n", FieldType.NESTED, "n", fields=_INNER)
KEYWORD = SearchField("k", FieldType.KEYWORD, "k")
LONG = SearchField("l", FieldType.LONG, "l")
DOUBLE = SearchField("d", FieldType.DOUBLE, "d")
LONGS = SearchField("a", FieldType.LONG, "a", is_array=True)
TEXT = SearchField("t", FieldType.TEXT, "t", analyzer=Analyzer())
POINT = SearchField("g", FieldType.GEO_POINT, "g")
SCHEMA = SearchSchema((KEYWORD, LONG, DOUBLE, LONGS, TEXT, POINT, NESTED))


def random_values(chance: random.Random) -> dict[str, Value]:
    """Return the columns of a row, each of which may be missing or of another type."""
    values = {
        "k": text(chance.choice(WORDS)),
        "l": Value(Kind.INT64, chance.randint(-5, 5)),
        "d": Value(Kind.DOUBLE, chance.choice((-1.5, 0.0, 0.25, 3.0))),
        "a": text(orjson.dumps([chance.randint(0, 6) for _ in range(chance.randint(0, 3))]).decode()),
        "t": text(" ".join(chance.choices(WORDS, k=chance.randint(0, 4)))),
        "g": text(f"{chance.randint(-3, 3)},{chance.randint(-3, 3)}"),
        "n": text(
            orjson.dumps(
                [{"k": chance.choice(WORDS), "l": chance.randint(0, 3)} for _ in range(chance.randint(0, 3))]
            ).decode()
        ),
    }
    for name in list(values):
        if chance.random() < 0.1:
            del values[name]
        elif chance.random() < 0.03:
            values[name] = chance.choice((text("other"), Value(Kind.INT64, 1), Value(Kind.BOOL, True)))
    return values


def random_query(chance: random.Random, depth: int = 0) -> Query:
    if depth < 3 and chance.random() < 0.45:
        parts = [
            tuple(random_query(chance, depth + 1) for _ in range(chance.choice((0, 0, 1, 1, 2))))
            for _ in range(4)
        ]
        return queries.Bool(*parts, minimum=chance.randint(0, max(1, len(parts[3]))))
    if depth < 3 and chance.random() < 0.1:
        parts = [(random_query(chance, depth + 1), random_query(chance, depth + 1))]
        least = ScoreFunction(None, 2.0, random_query(chance, depth + 1))
        return chance.choice((DisjunctionMax(parts[0]), FunctionsScore(parts[0][0], (least,))))
    return _random_leaf(chance)


def _random_leaf(chance: random.Random) -> Query:
    word, number = chance.choice(WORDS), chance.randint(-5, 6)
    inner = [queries.Terms(_INNER[0], (word,)), queries.Range(_INNER[1], lower=chance.randint(0, 3))]
    return chance.choice(
        (
            queries.MatchAll(),
            queries.Terms(KEYWORD, (word, chance.choice(WORDS))),
            queries.Terms(LONG, (number,)),
            queries.Terms(TEXT, (word,)),
            queries.Terms(_INNER[0], (word,)),
            queries.Range(LONG, number, number + 3, chance.random() < 0.5, chance.random() < 0.5),
            queries.Range(DOUBLE, None, 0.25, False, chance.random() < 0.5),
            queries.Range(LONGS, lower=number, includes_lower=True),
            queries.Range(KEYWORD, "blue", "red", True, True),
            queries.Prefix(KEYWORD, word[:2]),
            queries.Suffix(KEYWORD, word[-2:]),
            queries.Pattern(KEYWORD, f"{word[0]}*{word[-1]}"),
            queries.Exists(chance.choice((KEYWORD, LONGS, TEXT, NESTED))),
            queries.Match(TEXT, tuple(chance.sample(WORDS, 3)), chance.randint(1, 3)),
            queries.Phrase(TEXT, tuple(chance.choices(WORDS, k=2)), chance.choice((0, 0, 1, 2))),
            queries.GeoBox(POINT, (2.0, -1.5), (-1.0, 1.5)),
            queries.GeoDistance(POINT, (0.0, 0.0), 200_000.0),
            queries.GeoPolygon(POINT, ((-2.5, -2.5), (2.5, -2.5), (0.5, 2.5))),
            queries.Nested(NESTED, chance.choice(inner)),
            queries.Nested(NESTED, queries.Bool(must=tuple(inner))),
            queries.Nested(NESTED, queries.Bool(must_not=tuple(inner[:1]))),
        )
    )


def random_sorters(chance: random.Random) -> tuple[Sorter, ...]:
    return chance.choice(
        (
            (),
            (KeySort(descending=True),),
            (FieldSort(LONG),),
            (FieldSort(LONG, descending=True),),
            (FieldSort(KEYWORD), KeySort(descending=True)),
            (FieldSort(LONG, missing=0),),
            (FieldSort(KEYWORD, descending=True), FieldSort(DOUBLE)),
            (FieldSort(DOUBLE, descending=True), KeySort(descending=True)),
        )
    )


def in_order(documents: dict[str, dict[str, list[Any]]], sorters: Sequence[Sorter]) -> list[str]:
    """Return the keys in an order: stable sorts, from the last sorter to the first."""
    keys = sorted(documents)
    for sorter in reversed(sorters):
        if isinstance(sorter, KeySort):
            keys.sort(reverse=sorter.descending)
            continue
        name = sorter.field.name
        if sorter.missing is not None:
            missing = sorter.missing
            keys.sort(
                key=lambda key, name=name, missing=missing: documents[key].get(name, [missing]),
                reverse=sorter.descending,
            )
            continue
        present = [key for key in keys if name in documents[key]]
        missing = [key for key in keys if name not in documents[key]]
        # `reverse` keeps the order of equal ones.
        present.sort(key=lambda key, name=name: documents[key][name], reverse=sorter.descending)
        keys = present + missing
    return keys


def collapsed(
    documents: dict[str, dict[str, list[Any]]], keys: list[str], field: SearchField | None
) -> list[str]:
    """Return the first key of each value of a field."""
    if field is None:
        return keys
    first: dict[Any, str] = {}
    for key in keys:
        first.setdefault((documents[key].get(field.name) or [None])[0], key)
    return [*first.values()]


def random_composite(chance: random.Random) -> GroupByComposite:
    fields = chance.sample((KEYWORD, LONG, LONGS, _INNER[0]), chance.randint(1, 3))
    sources = [GroupByField(field.name, field, NOTHING, 1) for field in fields]
    descending = [chance.random() < 0.5 for _ in fields]
    return GroupByComposite(
        "x", tuple(map(CompositeSource, sources, descending)), NOTHING, chance.choice((1, 5, 50))
    )


def composite_groups(
    documents: Sequence[dict[str, list[Any]]], grouping: GroupByComposite
) -> list[tuple[tuple[Any, ...], int]]:
    """Return the first groups and one more: stable sorts, from the last source to the first. None is the least key."""
    groups: Counter[tuple[Any, ...]] = Counter()
    for document in documents:
        parts = [set(values_at(source.grouping.field, document)) or {None} for source in grouping.sources]
        groups.update(itertools.product(*parts))
    found = [*groups.items()]
    for place, source in reversed([*enumerate(grouping.sources)]):
        present = [item for item in found if item[0][place] is not None]
        missing = [item for item in found if item[0][place] is None]
        present.sort(key=lambda item, place=place: item[0][place], reverse=source.descending)
        found = present + missing if source.descending else missing + present
    return found[: grouping.size + 1]


def check_random_queries(client: Client, number_of_rows: int, number_of_queries: int) -> None:
    chance = random.Random(7)
    engine, table = client.engine, client.table
    rows = {f"{number:05d}": random_values(chance) for number in range(number_of_rows)}
    half = number_of_rows // 2
    for key in [*rows][:half]:
        put(client, key, rows[key])
    index = create_index(engine, table)
    [client.table] = [client.engine.cached_table("", table.name) or table]
    for key in [*rows][half:]:
        put(client, key, rows[key])
    for key in chance.sample([*rows], number_of_rows // 10):
        rows[key] = random_values(chance)
        put(client, key, rows[key])
    do_background_work(engine)
    documents = {key: document_of(SCHEMA, values) for key, values in rows.items()}
    for number in range(number_of_queries):
        query, sorters = random_query(chance), random_sorters(chance)
        offset, limit = chance.choice((0, 0, 3)), chance.choice((1, 10, number_of_rows))
        collapse = chance.choice((None, None, None, KEYWORD, LONG))
        grouping = chance.choice((None, None, random_composite(chance)))
        matching = {key: each for key, each in documents.items() if queries.matches(query, each)}
        expected = collapsed(documents, in_order(matching, sorters), collapse)
        command = SearchRows(
            client.table,
            index,
            query,
            sorters,
            offset=offset,
            limit=limit,
            counts=True,
            aggregated=Inner(groups=() if grouping is None else (grouping,)),
            collapse=collapse,
        )
        [page] = engine.run([command])
        assert not isinstance(page, Exception), (number, query, page)
        found = [row.latest["p"].data for row in page.rows]
        assert found == expected[offset : offset + limit], (number, query, sorters)
        assert page.total == len(matching), (number, query)
        assert page.has_more is (offset + limit < len(expected))
        if grouping is not None:
            [groups] = page.aggregations.groups
            found_groups = {group.key.parts: group.rows for group in groups}
            assert [*found_groups.items()] == composite_groups([*matching.values()], grouping)
        if page.last is not None and collapse is None:
            [page] = engine.run([SearchRows(client.table, index, query, sorters, page.last, limit=limit)])
            found = [row.latest["p"].data for row in page.rows]
            assert found == expected[offset + limit :][:limit], (number, query, sorters)


def put(client: Client, key: str, values: dict[str, Value]) -> None:
    [answer] = client.engine.run([WriteGroup((client.put(key, **values),))])
    assert not isinstance(answer, Exception), answer


def create_index(engine: Engine, table: Table) -> SearchIndex:
    [changed] = engine.run([CreateSearchIndex(table, "i", "test", SCHEMA, {}, 10)])
    assert isinstance(changed, Table), changed
    [[(_, index)]] = engine.run([ListSearchIndexes(table.namespace, table.name)])
    engine._store.catalog.cache.keep(changed)
    return index


def test_random_queries(things: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    # Otherwise all rows are few candidates, which are sorted outside of the database.
    monkeypatch.setattr(stored_documents, "_FEW", 20)
    check_random_queries(things, 120, 100)


@minutes_long
def test_many_random_queries_on_many_rows(things: Client) -> None:
    check_random_queries(things, 20_000, 2_000)


def test_more_conditions_than_the_database_plans(things: Client) -> None:
    rows = {f"{number}": {"k": text("red"), "l": Value(Kind.INT64, number)} for number in range(3)}
    for key, values in rows.items():
        put(things, key, values)
    index = create_index(things.engine, things.table)
    do_background_work(things.engine)
    [table] = [things.engine.cached_table("", things.table.name) or things.table]
    conditions = (*(queries.Terms(KEYWORD, ("red",)) for _ in range(500)), queries.Terms(LONG, (1,)))
    for query in (queries.Bool(must=conditions), queries.Bool(must_not=(queries.Bool(must=conditions),))):
        [page] = things.engine.run([SearchRows(table, index, query, counts=True)])
        assert not isinstance(page, Exception), page
        expected = {key for key in rows if queries.matches(query, document_of(SCHEMA, rows[key]))}
        assert {row.latest["p"].data for row in page.rows} == expected
        assert page.total == len(expected) > 0
