"""Random SELECTs with joins, groups and subqueries give what SQLite gives for the same statement and the same rows.

The statements have only what means the same in MySQL and SQLite. Each table is read by its key, by secondary indexes, or
by a search index. `make soak` runs more of them.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.adapters.tablestore.wire.protocol import search_pb2
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import TableStoreService
from tests.adapters.tablestore.search_messages import schema
from tests.support.clock import Clock
from tests.support.soak import minutes_long
from tests.support.sql_client import sql

HAS_SEARCH = "CreateSearchIndex" in OPERATIONS
TABLES = ("plain", "indexed", *(("searched", "mapped") if HAS_SEARCH else ()))
"""`indexed` has secondary indexes, `searched` a search index, and `mapped` is a mapping of that index."""
ROWS = 24
TEXTS = ["", "a", "ab", "b", "B", "é", "10", "9"]
DEFINED = [
    messages.DefinedColumnSchema(name="n", type=messages.DCT_INTEGER),
    messages.DefinedColumnSchema(name="d", type=messages.DCT_DOUBLE),
    messages.DefinedColumnSchema(name="s", type=messages.DCT_STRING),
]
FIELDS = schema(
    ("p", search_pb2.KEYWORD), ("k", search_pb2.LONG), ("n", search_pb2.LONG), ("d", search_pb2.DOUBLE),
    ("s", search_pb2.KEYWORD),
)  # fmt: skip
COLUMNS = "p varchar(9), k bigint, n bigint, d double, s mediumtext"


class Databases(NamedTuple):
    """Table Store and SQLite with the same rows."""

    service: TableStoreService
    oracle: sqlite3.Connection


@pytest.fixture(scope="module")
def databases(shared_database_url: str) -> Iterator[Databases]:
    source = random.Random(11)
    oracle = sqlite3.connect(":memory:")
    oracle.execute("PRAGMA case_sensitive_like = ON")
    with TableStoreService.opened(Clock(), database=shared_database_url) as service:
        for table in TABLES[:3]:
            indexes = [index("by_n", "n"), index("by_s", "s")] if table == "indexed" else []
            service.create(
                table, ("p", messages.STRING), ("k", messages.INTEGER), defined=DEFINED, index_metas=indexes
            )
            sql(service, f"create table {table} ({COLUMNS}, primary key(p, k))")
            oracle.execute(f"CREATE TABLE {table} (p TEXT, k INTEGER, n INTEGER, d REAL, s TEXT)")
            fill(service, oracle, table, source)
        if HAS_SEARCH:
            service.call("CreateSearchIndex", table_name="searched", index_name="i", schema=FIELDS)
            service.gateway.engine.background.catch_up()
            engine = (
                """engine='searchindex', engine_attribute='{"index_name": "i", "table_name": "searched"}'"""
            )
            sql(service, f"create table mapped ({COLUMNS}) {engine}")
            oracle.execute("CREATE VIEW mapped AS SELECT * FROM searched")
        yield Databases(service, oracle)
    oracle.close()


def index(name: str, *key: str) -> messages.IndexMeta:
    return messages.IndexMeta(
        name=name,
        primary_key=key,
        defined_column=[each.name for each in DEFINED if each.name not in key],
        index_update_mode=messages.IUM_ASYNC_INDEX,
        index_type=messages.IT_GLOBAL_INDEX,
    )


def fill(service: TableStoreService, oracle: sqlite3.Connection, table: str, source: random.Random) -> None:
    """Put random rows. Some of them lack columns."""
    for number in range(ROWS):
        key = {"p": source.choice(TEXTS[1:]), "k": number}
        cells = {
            "n": source.randint(-3, 3),
            "d": source.choice((-1.5, 0.0, 0.5, 2.0)),
            "s": source.choice(TEXTS),
        }
        cells = {name: value for name, value in cells.items() if source.random() < 0.8}
        service.put(key, cells, table=table)
        row = {"n": None, "d": None, "s": None, **key, **cells}
        oracle.execute(f"INSERT INTO {table} VALUES (:p, :k, :n, :d, :s)", row)


class Statements:
    """A source of random statements."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._choose: Any = self._random.choice

    def column(self, names: str, aliases: str) -> str:
        return f"{self._choose(aliases)}.{self._choose(names)}"

    def number(self, aliases: str) -> str:
        column = self.column("knd", aliases)
        if self._random.random() < 0.7:
            return column
        forms = ("({0} + {1})", "({0} * 2)", "coalesce({0}, {1})", "case when {0} > {1} then 1 else {0} end")
        return str(self._choose(forms)).format(column, self.column("kn", aliases))

    def literal(self, name: str) -> str:
        if name in "ps":
            return f"'{self._choose(TEXTS)}'"
        return str(self._choose((-2, 0, 1, 2, 3)) if name != "d" else self._choose((-1.5, 0.5, 1)))

    def condition(self, aliases: str, depth: int) -> str:
        kinds = ["literal"] * 4 + ["columns", "between", "in", "null", "like"]
        if depth:
            kinds += [
                "and",
                "and",
                "and",
                "or",
                "not",
                "subquery",
                "exists",
                "scalar",
                "correlated",
                "correlated",
            ]
        name = self._choose("pknds")
        own = f"{self._choose(aliases)}.{name}"
        sign = self._choose(("=", "=", "<>", "<", "<=", ">", ">="))
        match self._choose(kinds):
            case "and" | "or" as word:
                return f"({self.condition(aliases, depth - 1)} {word} {self.condition(aliases, depth - 1)})"
            case "not":
                return f"(not {self.condition(aliases, depth - 1)})"
            case "subquery":
                negation = self._choose(("", "not "))
                return f"{own} {negation}in (select z.{name} from {self._choose(TABLES)} z where {self.condition('z', 0)})"
            case "exists":
                return f"exists (select 1 from {self._choose(TABLES)} z where {self.condition('z', 1)})"
            case "scalar":
                found = f"select {self._choose(('min', 'max'))}(z.{name}) from {self._choose(TABLES)} z"
                return f"{own} {sign} ({found} where {self.condition('z', 0)})"
            case "correlated":
                return self.correlated(own, name, sign, inner="y" if "z" in aliases else "z")
            case "columns":
                return f"{self.number(aliases)} {sign} {self.number(aliases)}"
            case "between":
                return f"{own} between {self.literal(name)} and {self.literal(name)}"
            case "in":
                return f"{own} in ({self.literal(name)}, {self.literal(name)})"
            case "null":
                return f"{own} is {self._choose(('', 'not '))}null"
            case "like":
                return f"{self.column('ps', aliases)} like '{self._choose(('a%', '%b', '1_', '%'))}'"
        if self._random.random() < 0.2:
            return f"{self.literal(name)} {sign} {own}"
        return f"{own} {sign} {self.literal(name)}"

    def correlated(self, own: str, name: str, sign: str, inner: str) -> str:
        """Return a condition with a subquery that uses a column of the outer statement."""
        column = f"{inner}.{name}"
        rest = self._choose((f" and {self.condition(inner, 1)}", f" and {self.condition(inner, 0)}", ""))
        source = (
            f"from {self._choose(TABLES)} {inner} where {column} {self._choose(('=', '=', sign))} {own}{rest}"
        )
        forms = (
            f"exists (select 1 {source})", f"not exists (select * {source})", f"{own} in (select {column} {source})",
            f"{own} not in (select {column} {source})", f"(select count(*) {source}) > 1",
            f"{own} {sign} (select max({column}) {source})",
            f"{own} >= (select {column} {source} order by {column} desc, {inner}.k limit 1)",
            f"(select count({column}) {source} group by {column} having count(*) > 1 limit 1) is null",
        )  # fmt: skip
        return str(self._choose(forms))

    def where(self, aliases: str) -> str:
        """Return a condition, often with a comparison that an index can find."""
        condition = self.condition(aliases, 2)
        name = self._choose("ppnnss")
        if self._random.random() < 0.5:
            return condition
        return f"{self._choose(aliases)}.{name} {self._choose(('=', '>', '<='))} {self.literal(name)} and {condition}"

    def sources(self, number: int) -> tuple[str, str]:
        """Return a FROM of tables a, b, and so on, and these names."""
        aliases = "abc"[:number]
        text = f"{self._choose(TABLES)} a"
        for at, alias in enumerate(aliases[1:], 1):
            kind = self._choose(("join", "left join", "join", "right join", ","))
            equal = self._choose("kns")
            on = f"{self._choose(aliases[:at])}.{equal} = {alias}.{equal}"
            if self._random.random() < 0.4:
                on += f" and {self.condition(aliases[: at + 1], self._choose((0, 0, 1)))}"
            if self._random.random() < 0.1 and number == 2:
                equal = self._choose(("n", "k, p", "s"))
                return (
                    f"{text} {kind.replace(',', 'join')} {self._choose(TABLES)} {alias} using ({equal})",
                    aliases,
                )
            text += f", {self._choose(TABLES)} {alias}" if kind == "," and number == 2 else (
                f" {kind.replace(',', 'join')} {self._choose(TABLES)} {alias} on {on}"
            )  # fmt: skip
        return text, aliases

    def plain(self) -> str:
        text, aliases = self.sources(self._choose((1, 1, 2, 2, 3)))
        columns = ", ".join([self.number(aliases), self.column("ps", aliases)])
        if self._random.random() < 0.3:
            columns += (
                f", (select max(z.d) from {self._choose(TABLES)} z where z.n = {self.column('n', aliases)})"
            )
        order = ", ".join(f"{alias}.k" for alias in aliases)
        limit = (
            f" limit {self._choose((0, 5, 20))} offset {self._choose((0, 1, 3))}"
            if self._choose((0, 1))
            else ""
        )
        keys = (
            f"{self.number(aliases)} {self._choose(('asc', 'desc'))}, {order}"
            if self._choose((0, 1))
            else order
        )
        if len(aliases) == 1 and self._choose((0, 1)):
            keys = self._choose(("a.n desc, a.k desc", "a.s desc, a.d desc, a.k desc", "a.k desc"))
        return f"select {columns}, {order} from {text} where {self.where(aliases)} order by {keys}{limit}"

    def grouped(self) -> str:
        text, aliases = self.sources(self._choose((1, 1, 2)))
        key = self.column("pns", aliases)
        aggregates = (
            f"count(*), count(distinct {self.column('pnds', aliases)}), sum({self.column('knd', aliases)}),"
            f" avg({self.column('kd', aliases)}), min({self.column('ps', aliases)}), max({self.number(aliases)})"
        )
        least = f"(select count(*) from {self._choose(TABLES)} z where z.{key[2:]} = {key})"
        having = f" having count(*) > {self._choose((0, 1, 2, least))}" if self._choose((0, 1)) else ""
        return f"select {key}, {aggregates} from {text} where {self.where(aliases)} group by {key}{having} order by 1"

    def total(self) -> str:
        text, aliases = self.sources(1)
        columns = [self.column("knd", aliases) for _ in range(5)]
        aggregates = "count(*), count({}), sum({}), avg({}), min({}), max({})".format(*columns)
        having = f" having count(*) > {self._choose((0, 5))}" if self._choose((0, 1, 0)) else ""
        return f"select {aggregates} from {text} where {self.where(aliases)}{having}"

    def distinct(self) -> str:
        text, aliases = self.sources(1)
        return (
            f"select distinct {self.column('nd', aliases)} x, {self.column('ps', aliases)} y from {text}"
            f" where {self.condition(aliases, 1)} order by 1, 2"
        )

    def derived(self) -> str:
        inner = f"select z.n n, count(*) c, max(z.d) m from {self._choose(TABLES)} z where {self.condition('z', 1)} group by z.n"
        kind = self._choose(("join", "left join", "right join"))
        return (
            f"select a.k, x.n, x.c, x.m from {self._choose(TABLES)} a {kind} ({inner}) x on a.n = x.n"
            f" where {self.condition('a', 1)} order by a.k, x.n"
        )


def check(databases: Databases, seed: int, number: int) -> None:
    statements = Statements(seed)
    reads: Counter[str] = Counter()
    matched = 0
    for at in range(number):
        forms = (
            statements.plain, statements.grouped, statements.distinct, statements.derived, statements.total
        )  # fmt: skip
        query = forms[at % len(forms)]()
        answer = sql(databases.service, query)
        assert answer.rows == databases.oracle.execute(query).fetchall(), query
        matched += bool(answer.rows)
        reads.update(each.table_name for each in answer.message.consumes)
        reads.update(each.index_name for each in answer.message.search_consumes)
    assert matched > number / 2  # statements without results show little
    assert min(reads[name] for name in ("plain", "indexed", "by_n", "by_s", "i")) > 0


@pytest.mark.extended
def test_random_selects(databases: Databases) -> None:
    check(databases, 1, 100)


@minutes_long
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_random_selects_equal_those_of_sqlite(databases: Databases, seed: int) -> None:
    check(databases, seed, 500)
