"""Random SELECTs on random rows give what a plain Python evaluation of the same statement gives.

Each random part of a statement is a pair: its text, and a Python function of a row (a dict) that shares no code with the
server. NULL is None. `make soak` runs more of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import TableStoreService
from tests.support.clock import Clock
from tests.support.soak import minutes_long
from tests.support.sql_client import sql

Row = dict[str, Any]
Part = tuple[str, Callable[[Row], Any]]
COLUMNS = {"p": "text", "k": "number", "n": "number", "d": "number", "s": "text"}
TEXTS = ["", "a", "ab", "b", "B", "é", "10", "9"]
ROWS = 60


@pytest.fixture(scope="module")
def table(shared_database_url: str) -> Iterator[tuple[TableStoreService, list[Row]]]:
    """A table with random rows. Some of them lack columns."""
    source = random.Random(7)
    with TableStoreService.opened(Clock(), database=shared_database_url) as service:
        service.create("t", ("p", messages.STRING), ("k", messages.INTEGER))
        sql(
            service,
            "create table t (p varchar(9), k bigint, n bigint, d double, s mediumtext, primary key(p, k))",
        )
        rows = []
        for number in range(ROWS):
            key: Row = {"p": source.choice(TEXTS[1:]), "k": number}
            cells = {
                "n": source.randint(-3, 3),
                "d": source.choice((-1.5, 0.0, 0.5, 2.0)),
                "s": source.choice(TEXTS),
            }
            cells = {name: value for name, value in cells.items() if source.random() < 0.8}
            service.put(key, cells)
            rows.append({"n": None, "d": None, "s": None, **key, **cells})
        yield service, sorted(rows, key=lambda row: (row["p"].encode(), row["k"]))


class Statements:
    """A source of random statements and their results."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def number(self, depth: int = 2) -> Part:
        """A numeric expression without overflow."""
        choose = self._random.choice
        kind = choose(("column", "column", "constant", "sum", "if")) if depth else "column"
        if kind == "constant":
            value = choose((-2, 0, 1, 0.5))
            return f"({value})", lambda row: value
        if kind == "sum":
            (left, of_left), (right, of_right) = self.number(depth - 1), self.number(depth - 1)
            sign = choose(("+", "-", "*"))

            def total(row: Row) -> Any:
                one, other = of_left(row), of_right(row)
                if one is None or other is None:
                    return None
                return one + other if sign == "+" else one - other if sign == "-" else one * other

            return f"({left} {sign} {right})", total
        if kind == "if":
            (when, of_when), (yes, of_yes), (no, of_no) = self.condition(0), self.number(0), self.number(0)
            return f"if({when}, {yes}, {no})", lambda row: of_yes(row) if of_when(row) else of_no(row)
        name = choose(("k", "n", "d"))
        return name, lambda row: row[name]

    def text(self) -> Part:
        if self._random.random() < 0.3:
            value = self._random.choice(TEXTS)
            return f"'{value}'", lambda row: value
        name = self._random.choice(("p", "s"))
        return name, lambda row: row[name]

    def condition(self, depth: int = 3) -> Part:
        kinds = ("and", "or", "not", "compare", "compare", "between", "in", "null") if depth else ("compare",)
        match self._random.choice(kinds):
            case "and" | "or" as word:
                (left, of_left), (right, of_right) = self.condition(depth - 1), self.condition(depth - 1)
                return f"({left} {word} {right})", lambda row: both(word, of_left(row), of_right(row))
            case "not":
                part, of_part = self.condition(depth - 1)
                return f"(not {part})", lambda row: None if of_part(row) is None else not of_part(row)
            case "null":
                part, of_part = self.number(1)
                return f"({part} is null)", lambda row: of_part(row) is None
            case "between":
                (own, of_own), (low, of_low), (high, of_high) = (self.number(1) for _ in range(3))
                return f"({own} between {low} and {high})", lambda row: both(
                    "and", compared(">=", of_own(row), of_low(row)), compared("<=", of_own(row), of_high(row))
                )
            case "in":
                own, of_own = self.text()
                values = self._random.sample(TEXTS, 2)
                return (
                    f"({own} in ('{values[0]}', '{values[1]}'))",
                    lambda row: None if of_own(row) is None else of_own(row) in values,
                )
        sign = self._random.choice(("=", "<>", "<", "<=", ">", ">="))
        draw = self.text if self._random.random() < 0.5 else self.number
        (left, of_left), (right, of_right) = draw(), draw()
        return f"({left} {sign} {right})", lambda row: compared(sign, of_left(row), of_right(row))

    def plain(self, rows: list[Row]) -> tuple[str, list[tuple[Any, ...]]]:
        """A SELECT with an order and a limit."""
        parts = [self.number() if self._random.random() < 0.6 else self.text() for _ in range(2)]
        where, is_wanted = self.condition()
        order, of_order = self.number(1)
        is_descending = self._random.random() < 0.5
        first, limit = self._random.randint(0, 3), self._random.randint(0, 20)
        found = [row for row in rows if is_wanted(row)]
        found.sort(key=lambda row: row["k"])
        found.sort(key=lambda row: ranked(of_order(row)), reverse=is_descending)
        query = (
            f"select {parts[0][0]}, {parts[1][0]}, k from t where {where} order by {order}"
            f" {'desc' if is_descending else 'asc'}, k limit {first}, {limit}"
        )
        results = [(parts[0][1](row), parts[1][1](row), row["k"]) for row in found[first : first + limit]]
        return query, results

    def grouped(self, rows: list[Row]) -> tuple[str, list[tuple[Any, ...]]]:
        """A SELECT with groups."""
        name = self._random.choice(("p", "n", "s"))
        where, is_wanted = self.condition()
        groups: dict[Any, list[Row]] = {}
        for row in rows:
            if is_wanted(row):
                groups.setdefault(row[name], []).append(row)
        results = []
        for value, members in sorted(groups.items(), key=lambda item: ranked(item[0])):
            given = [row["d"] for row in members if row["d"] is not None]
            numbers = {row["n"] for row in members if row["n"] is not None}
            average = sum(given) / len(given) if given else None
            smallest = min((row["s"] for row in members if row["s"] is not None), default=None)
            results.append(
                (
                    value,
                    len(members),
                    len(given),
                    len(numbers),
                    sum(given) if given else None,
                    average,
                    smallest,
                )
            )
        query = (
            f"select {name}, count(*), count(d), count(distinct n), sum(d), avg(d), min(s) from t"
            f" where {where} group by {name} order by {name}"
        )
        return query, results


def both(word: str, left: Any, right: Any) -> bool | None:
    """AND or OR of three-valued logic."""
    decisive = word == "or"
    if left is decisive or right is decisive:
        return decisive
    return None if left is None or right is None else not decisive


def compared(sign: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    return {
        "=": left == right, "<>": left != right, "<": left < right, "<=": left <= right, ">": left > right,
        ">=": left >= right,
    }[sign]  # fmt: skip


def ranked(value: Any) -> tuple[bool, Any]:
    """NULL comes first in an ascending order."""
    return (False, 0) if value is None else (True, value)


def check(table: tuple[TableStoreService, list[Row]], seed: int, number: int) -> None:
    service, rows = table
    statements = Statements(seed)
    matched = 0
    for _ in range(number):
        for query, expected in (statements.plain(rows), statements.grouped(rows)):
            found = sql(service, query).rows
            assert found == expected, query
            matched += bool(found)
    assert matched > number / 2  # statements without results show little


@pytest.mark.extended
def test_random_selects(table: tuple[TableStoreService, list[Row]]) -> None:
    check(table, 1, 100)


@minutes_long
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_random_selects_equal_the_plain_evaluation(
    table: tuple[TableStoreService, list[Row]], seed: int
) -> None:
    check(table, seed, 500)
