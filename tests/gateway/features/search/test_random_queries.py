"""Random searches find the rows, in the order and number, that a plain evaluation of all rows finds."""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter
from typing import Any

import orjson
import pytest

from tablegate.gateway.engine.engine import Engine, run_with_retries
from tablegate.gateway.features.search import document_store as stored_documents
from tablegate.gateway.features.search import queries
from tablegate.gateway.features.search.aggregations import (
    NOTHING,
    CompositeSource,
    GroupByComposite,
    GroupByField,
    Inner,
)
from tablegate.gateway.features.search.analysis import Analyzer, query_tokens
from tablegate.gateway.features.search.documents import query_value_of
from tablegate.gateway.features.search.queries import Query, ScoreFunction
from tablegate.gateway.features.search.ranking import (
    FieldSort,
    GeoDistanceSort,
    KeySort,
    NestedFilter,
    ScoreSort,
    Sorter,
)
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchIndex, SearchSchema
from tablegate.gateway.features.search.score_functions import Combination
from tablegate.gateway.features.search.search_commands import (
    CreateSearchIndex,
    ListSearchIndexes,
    SearchPage,
    SearchRows,
)
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.values import Kind, Value
from tests.gateway.engine.conftest import Client, do_background_work
from tests.gateway.features.search import plain_search
from tests.gateway.features.search.plain_search import PlainQuery, PlainSearch
from tests.support.soak import minutes_long

WORDS = ("red", "green", "blue", "redder", "gr", "", "Red", "r*d", "ré", "\U0001f600", "\uffee", "中国")
TEXTS = ("red", "green", "Red,", "blue-gr", "r_d", "中国", "ré9", "...", "redder")
ADDRESSES = ("10.0.0.1", "10.0.0.12", "::ffff:10.0.0.1", "fe80::1", "2001:db8::7")
_INNER = (
    SearchField("n.k", FieldType.KEYWORD, "k", ancestors=("n",)),
    SearchField("n.l", FieldType.LONG, "l", ancestors=("n",)),
    SearchField("n.t", FieldType.TEXT, "t", ancestors=("n",), analyzer=Analyzer()),
)
SCHEMA = SearchSchema(
    (
        SearchField("k", FieldType.KEYWORD, "k"),
        SearchField("l", FieldType.LONG, "l"),
        SearchField("d", FieldType.DOUBLE, "d"),
        SearchField("b", FieldType.BOOLEAN, "b"),
        SearchField("a", FieldType.LONG, "a", is_array=True),
        SearchField("t", FieldType.TEXT, "t", analyzer=Analyzer()),
        SearchField("g", FieldType.GEO_POINT, "g"),
        SearchField("w", FieldType.DATE, "w", date_formats=("yyyy-MM-dd HH:mm:ss.SSSSSSSSS",)),
        SearchField("i", FieldType.IP, "i"),
        SearchField("n", FieldType.NESTED, "n", fields=_INNER),
    )
)
FIELDS = SCHEMA.by_name
TIMEOUT_MS = 3_600_000
KINDS = {str: Kind.TEXT, int: Kind.INT64, float: Kind.DOUBLE, bool: Kind.BOOL}


def random_columns(chance: random.Random) -> dict[str, Any]:
    """Return the columns of a row. Each may be missing or of another type."""
    columns: dict[str, Any] = {
        "k": chance.choice(WORDS),
        "l": chance.choice((chance.randint(-5, 5), 1 << 60, -(1 << 63))),
        "d": chance.choice((-1.5, 0.0, -0.0, 0.25, 3.0, 1e300, 7)),
        "b": chance.random() < 0.5,
        "a": orjson.dumps([chance.randint(0, 6) for _ in range(chance.randint(0, 3))]).decode(),
        "t": random_text(chance),
        "g": f"{chance.uniform(-3, 3):.5f},{chance.choice((0, 0, 178)) + chance.uniform(-2, 2):.5f}",
        "w": chance.choice((random_time(chance), "2021-02-29 08:00:00.000000000")),
        "i": chance.choice(ADDRESSES),
        "n": orjson.dumps(
            [
                {"k": chance.choice(WORDS), "l": chance.randint(0, 3), "t": random_text(chance)}
                for _ in range(chance.randint(0, 3))
            ]
        ).decode(),
    }
    for name in list(columns):
        if chance.random() < 0.1:
            del columns[name]
        elif chance.random() < 0.05:
            columns[name] = chance.choice(("other", 1, True, 0.5, '[1, "x"]', "[]", '{"k": "red"}'))
    return columns


def random_text(chance: random.Random) -> str:
    return " ".join(chance.choices(TEXTS, k=chance.randint(0, 5)))


def random_time(chance: random.Random) -> str:
    day = chance.choice(("01-01", "02-28", "02-29", "03-31"))
    return (
        f"20{chance.choice((20, 24))}-{day} 08:00:00.{chance.choice(('000000000', '000000007', '000000008'))}"
    )


def random_query(chance: random.Random, scored: bool, depth: int = 0) -> PlainQuery:
    """Return a query. `scored`: of types whose scores the documentation defines."""
    again = functools.partial(random_query, chance, scored, depth + 1)
    if depth < 3 and chance.random() < 0.45:
        parts = [[again() for _ in range(chance.choice((0, 0, 1, 1, 2)))] for _ in range(4)]
        return ("bool", *parts, chance.randint(0, max(1, len(parts[3]))))
    if depth < 3 and chance.random() < 0.2:
        mode = chance.choice(("avg", "max", "min", "sum", "none"))
        return chance.choice(
            (
                ("dis_max", [again(), again()], 0.5),
                ("functions", again(), 2.0, again()),
                ("const", again()),
                ("nested", "n", random_inner_query(chance, scored), mode),
            )
        )
    return random_leaf(chance, scored)


def random_leaf(chance: random.Random, scored: bool) -> PlainQuery:
    word, number = chance.choice(WORDS), chance.randint(-5, 6)
    times, addresses = sorted((random_time(chance), random_time(chance))), chance.sample(ADDRESSES, 2)
    ends = chance.random() < 0.5, chance.random() < 0.5
    place = chance.uniform(-3, 3), chance.choice((0, 178)) + chance.uniform(-2, 2)
    leaves: list[PlainQuery] = [
        ("all",),
        ("terms", "k", [word, chance.choice(WORDS)]),
        ("terms", "l", [number]),
        ("terms", "l", [str(number), 1 << 60]),
        ("terms", "d", [chance.choice((0.0, 0.25, "3.0", 7))]),
        ("terms", "b", [chance.random() < 0.5]),
        ("terms", "a", [number, 3]),
        ("terms", "t", [chance.choice(("red", "中", "ré9", "blue-gr", "gr"))]),
        ("terms", "w", [times[0]]),
        ("terms", "i", [addresses[0]]),
        ("range", "l", number, number + 3, *ends),
        ("range", "d", None, chance.choice((0.25, 0.0, 1)), *ends),
        ("range", "a", number, None, *ends),
        ("range", "k", "blue", chance.choice(("red", "\U0001f600", "\uffee")), *ends),
        ("range", "t", "gr", "red", *ends),
        ("range", "w", *times, *ends),
        ("range", "i", *addresses, *ends),
        ("prefix", "k", word[:2]),
        ("prefix", "t", chance.choice(("re", "g", "中", "red "))),
        ("suffix", "k", word[-2:]),
        ("wildcard", "k", chance.choice((f"{word[:1]}*{word[-1:]}", "?ed", "*", "r?d*", "*e*e*", ""))),
        ("wildcard", "t", chance.choice(("r*", "?", "*d*r"))),
        ("exists", chance.choice([*FIELDS][:10])),
        ("match", "t", " ".join(chance.sample(TEXTS, 3)), chance.randint(1, 3)),
        ("box", "g", (2.0, place[1] - 1), (-1.0, place[1] + 1)),
        ("box", "g", (place[0] + 1, 177.0), (place[0] - 1, -1.0)),
        ("distance", "g", place, chance.uniform(0, 400_000.0)),
        ("polygon", "g", [(-2.51, -1.53), (2.52, -1.54), (place[0], 1.55)]),
    ]
    if not scored:
        leaves += [("phrase", "t", " ".join(chance.choices(TEXTS, k=2)), chance.choice((0, 0, 1, 2)))] * 2
    return chance.choice(leaves)


def random_inner_query(chance: random.Random, scored: bool) -> PlainQuery:
    inner: list[PlainQuery] = [
        ("terms", "n.k", [chance.choice(WORDS)]),
        ("range", "n.l", chance.randint(0, 3), None, False, False),
        ("wildcard", "n.k", "r*"),
        ("exists", chance.choice(("n.k", "n.l", "n.t"))),
    ]
    if not scored:
        inner += [("match", "n.t", "red blue", chance.randint(1, 2)), ("phrase", "n.t", "blue gr", 0)]
    parts = [chance.sample(inner, chance.choice((0, 1, 2))) for _ in range(3)]
    return chance.choice(
        (chance.choice(inner), ("bool", parts[0], parts[1], [], parts[2], min(1, len(parts[2]))))
    )


def random_sorters(chance: random.Random) -> list[tuple[Any, ...]]:
    """Return the kind, the direction and the members of some sorters."""
    by = functools.partial(_by_field, chance)
    others: list[list[tuple[Any, ...]]] = [
        [],
        [("key", True)],
        [by("l")],
        [by("k"), ("key", True)],
        [by("l", missing=0)],
        [by("k"), by("d")],
        [by("w"), by("i")],
        [by("d"), ("key", True)],
        [by("b"), by("a", mode="max"), by("a", mode="min")],
        [by("a", mode="avg"), ("key", chance.random() < 0.5)],
        [by("n.l", mode="max"), by("n.k")],
        [by("n.l", mode="avg", condition=("terms", "n.k", ["red"]))],
        [("geo", chance.random() < 0.5, "g", [(0.1, 0.2), (1.3, -1.7)])],
    ]
    return chance.choice([*others, *[[("score", True)], [("score", True), ("key", True)]] * 2])


def _by_field(
    chance: random.Random,
    name: str,
    mode: str = "min",
    missing: Any = None,
    condition: PlainQuery | None = None,
) -> tuple[Any, ...]:
    return "field", chance.random() < 0.5, name, mode, missing, condition


def engine_query(query: PlainQuery) -> Query:
    """Return the query of the engine."""
    kind, *members = query
    inner = [
        engine_query(each)
        for each in members
        if isinstance(each, tuple) and each and isinstance(each[0], str)
    ]
    match kind, members:
        case "all", _:
            return queries.MatchAll()
        case "bool", [*parts, minimum]:
            return queries.Bool(*(tuple(map(engine_query, part)) for part in parts), minimum=minimum)
        case "const", _:
            return queries.ConstScore(inner[0])
        case "dis_max", [alternatives, share]:
            return queries.DisjunctionMax(tuple(map(engine_query, alternatives)), share)
        case "functions", [_, weight, _]:
            return queries.FunctionsScore(inner[0], (ScoreFunction(None, weight, inner[1]),), Combination.MAX)
        case "nested", [path, _, mode]:
            return queries.Nested(FIELDS[path], inner[0], None if mode == "none" else Combination(mode))
    return _engine_leaf(kind, FIELDS[members[0]], members[1:])


def _engine_leaf(kind: str, field: SearchField, members: list[Any]) -> Query:
    match kind, members:
        case "terms", [values]:
            return queries.Terms(field, tuple(query_value_of(field, each) for each in values))
        case "range", [lower, upper, *ends]:
            bounds = [None if each is None else query_value_of(field, each) for each in (lower, upper)]
            return queries.Range(field, *bounds, *ends)
        case "match", [data, minimum]:
            assert field.analyzer is not None
            return queries.Match(field, tuple(dict.fromkeys(query_tokens(field.analyzer, data))), minimum)
        case "phrase", [data, slop]:
            assert field.analyzer is not None
            return queries.Phrase(field, tuple(query_tokens(field.analyzer, data)), slop)
        case "polygon", [points]:
            return queries.GeoPolygon(field, tuple(points))
    types = {
        "prefix": queries.Prefix,
        "suffix": queries.Suffix,
        "wildcard": queries.Pattern,
        "exists": queries.Exists,
        "box": queries.GeoBox,
        "distance": queries.GeoDistance,
    }
    return types[kind](field, *members)


def engine_sorter(sorter: tuple[Any, ...]) -> Sorter:
    """Return the sorter of the engine."""
    match sorter:
        case "key", descending:
            return KeySort(descending)
        case "score", descending:
            return ScoreSort(descending)
        case "geo", descending, name, points:
            return GeoDistanceSort(FIELDS[name], tuple(points), descending)
    _, descending, name, mode, missing, condition = sorter
    nested = None if condition is None else NestedFilter(FIELDS["n"], engine_query(condition))
    return FieldSort(FIELDS[name], descending, Combination(mode), missing, nested)


def random_composite(chance: random.Random) -> GroupByComposite:
    fields = [FIELDS[name] for name in chance.sample(("k", "l", "a", "n.k"), chance.randint(1, 3))]
    sources = [GroupByField(field.name, field, NOTHING, 1) for field in fields]
    descending = [chance.random() < 0.5 for _ in fields]
    return GroupByComposite(
        "x", tuple(map(CompositeSource, sources, descending)), NOTHING, chance.choice((1, 5, 50))
    )


def composite_groups(
    plain: PlainSearch, keys: list[str], grouping: GroupByComposite
) -> list[tuple[tuple[Any, ...], int]]:
    """Return the first groups and one more: stable sorts, from the last source to the first. None is the least key."""
    groups: Counter[tuple[Any, ...]] = Counter()
    for key in keys:
        parts = [set(plain.values(source.grouping.field.name, key)) or {None} for source in grouping.sources]
        groups.update(itertools.product(*parts))
    found = [*groups.items()]
    for place, source in reversed([*enumerate(grouping.sources)]):
        present = [item for item in found if item[0][place] is not None]
        missing = [item for item in found if item[0][place] is None]
        present.sort(key=lambda item, place=place: item[0][place], reverse=source.descending)
        found = present + missing if source.descending else missing + present
    return found[: grouping.size + 1]


class Comparison:
    """A table with an index, and the plain evaluation of the same rows."""

    def __init__(self, client: Client, chance: random.Random, number_of_rows: int) -> None:
        self.client = client
        self._chance = chance
        rows = {f"{number:05d}": random_columns(chance) for number in range(number_of_rows)}
        half = number_of_rows // 2
        for key in [*rows][:half]:
            put(client, key, rows[key])
        self.index = create_index(client.engine, client.table)
        [client.table] = [client.engine.cached_table("", client.table.name) or client.table]
        for key in [*rows][half:]:
            put(client, key, rows[key])
        for key in chance.sample([*rows], number_of_rows // 10):
            rows[key] = random_columns(chance)
            put(client, key, rows[key])
        do_background_work(client.engine)
        self.plain = PlainSearch({key: plain_search.document_of(columns) for key, columns in rows.items()})

    def check(self, number: int) -> None:
        """Compare the results of a random search, and of the next page."""
        chance = self._chance
        sorters = random_sorters(chance)
        is_scored = ("score", True) in sorters
        query = random_query(chance, is_scored)
        offset, limit = chance.choice((0, 0, 3)), chance.choice((1, 10, len(self.plain.documents)))
        collapse = None if is_scored else chance.choice((None, None, None, "k", "l"))
        grouping = chance.choice((None, None, random_composite(chance)))
        scores = self.plain.scores(query)
        ordered = self.plain.in_order(scores, sorters)
        if collapse is not None:
            first: dict[Any, str] = {}
            for key in ordered:
                first.setdefault((*self.plain.values(collapse, key), None)[0], key)
            ordered = [*first.values()]
        command = SearchRows(
            self.client.table,
            self.index,
            engine_query(query),
            tuple(map(engine_sorter, sorters)),
            offset=offset,
            limit=limit,
            counts=True,
            aggregated=Inner(groups=() if grouping is None else (grouping,)),
            collapse=None if collapse is None else FIELDS[collapse],
            timeout_ms=TIMEOUT_MS,
        )
        page = self._search(command)
        shown = number, query, sorters
        assert page.total == len(scores), shown
        assert page.has_more is (offset + limit < len(ordered)), shown
        self._check_rows(page, ordered[offset : offset + limit], scores if is_scored else None, shown)
        if grouping is not None:
            [groups] = page.aggregations.groups
            found = [(group.key.parts, group.rows) for group in groups]
            assert found == composite_groups(self.plain, [*scores], grouping), shown
        if page.last is not None and collapse is None:
            following = SearchRows(
                self.client.table,
                self.index,
                command.query,
                command.sorters,
                page.last,
                limit=limit,
                timeout_ms=TIMEOUT_MS,
            )
            expected = ordered[offset + limit :][:limit]
            self._check_rows(self._search(following), expected, scores if is_scored else None, shown)

    def _search(self, command: SearchRows) -> SearchPage:
        [page] = run_with_retries(self.client.engine, [command])
        assert isinstance(page, SearchPage), (command.query, page)
        return page

    def _check_rows(
        self, page: SearchPage, expected: list[str], scores: plain_search.Scores | None, shown: object
    ) -> None:
        found = [row.latest["p"].data for row in page.rows]
        if scores is None:
            assert found == expected, shown
            return
        # Equal scores may differ in their last bits, and so may the order of their rows.
        assert len(set(found)) == len(expected), shown
        assert [scores[key] for key in found] == pytest.approx([scores[key] for key in expected]), shown
        assert page.scores == pytest.approx([scores[key] for key in found]), shown


def put(client: Client, key: str, columns: dict[str, Any]) -> None:
    values = {name: Value(KINDS[type(data)], data) for name, data in columns.items()}
    [answer] = client.engine.run([WriteGroup((client.put(key, **values),))])
    assert not isinstance(answer, Exception), answer


def create_index(engine: Engine, table: Table) -> SearchIndex:
    [changed] = engine.run([CreateSearchIndex(table, "i", "test", SCHEMA, {}, 10)])
    assert isinstance(changed, Table), changed
    [[(_, index)]] = engine.run([ListSearchIndexes(table.namespace, table.name)])
    engine._store.catalog.cache.keep(changed)
    return index


def check_random_queries(client: Client, number_of_rows: int, number_of_queries: int) -> None:
    comparison = Comparison(client, random.Random(7), number_of_rows)
    for number in range(number_of_queries):
        comparison.check(number)


def test_random_queries(things: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    # Otherwise all rows are few candidates, which are sorted outside of the database, and no term is in many rows.
    for name, number in (("_FEW", 20), ("_COUNTED", 50), ("_EVALUATED", 20), ("_MANY", 30)):
        monkeypatch.setattr(stored_documents, name, number)
    check_random_queries(things, 120, 100)


@pytest.mark.soak
@minutes_long
def test_many_random_queries_find_the_right_rows_of_many(things: Client) -> None:
    check_random_queries(things, 20_000, 2_000)


def test_a_query_may_have_more_conditions_than_the_database_plans(things: Client) -> None:
    for number in range(3):
        put(things, f"{number}", {"k": "red", "l": number})
    index = create_index(things.engine, things.table)
    do_background_work(things.engine)
    [table] = [things.engine.cached_table("", things.table.name) or things.table]
    conditions = [*([("terms", "k", ["red"])] * 500), ("terms", "l", [1])]
    must: PlainQuery = ("bool", conditions, [], [], [], 0)
    for query, expected in ((must, {"1"}), (("bool", [], [must], [], [], 0), {"0", "2"})):
        [page] = things.engine.run([SearchRows(table, index, engine_query(query), counts=True)])
        assert not isinstance(page, Exception), page
        assert {row.latest["p"].data for row in page.rows} == expected
        assert page.total == len(expected)
