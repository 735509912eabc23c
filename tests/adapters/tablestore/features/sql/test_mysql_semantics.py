"""SQLQuery: statements whose answers were compared with MariaDB 10.11 and with the MySQL 8 reference manual."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.support.clock import Clock
from tests.support.sql_client import COMPLEX, STRING, sql
from tests.support.tables import each_row

LOWEST, HIGHEST = -(2**63), 2**63 - 1


@pytest.fixture(scope="module")
def service(shared_database_url: str) -> Iterator[TableStoreService]:
    """Table Store on both databases, with a mapped table of five rows."""
    with TableStoreService.opened(Clock(), database=shared_database_url) as service:
        service.create("t", ("k", messages.INTEGER))
        for number in range(1, 6):
            service.put({"k": number}, {"n": number % 3, "s": f"s{number}"}, table="t")
        sql(service, "create table t (k bigint, n bigint, s mediumtext, primary key(k))")
        yield service


def at(text: str) -> int:
    """The number that a DATETIME is sent as."""
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // timedelta(microseconds=1)


def nanos(**parts: int) -> int:
    """The number that a TIME is sent as."""
    return timedelta(**parts) // timedelta(microseconds=1) * 1000


@each_row(
    "expression, expected",
    [
        # Numbers: "Cast Functions", "Type Conversion in Expression Evaluation".
        ("cast('1.5' as signed)", 1), ("cast('1e3' as signed)", 1), ("repeat('a', '1e999')", "a"), ("cast('abc' as signed)", 0),
        ("cast('9223372036854775807' as signed)", HIGHEST), ("cast('-9223372036854775808' as signed)", LOWEST),
        ("cast('99999999999999999999' as signed)", HIGHEST), ("cast(1e30 as signed)", HIGHEST),
        ("cast(-1.5 as signed)", -2), ("9223372036854775808 = 9223372036854775807", 0),
        ("left('hello', 1.5)", "he"), ("left('hello', '2x')", "he"),
        # "Comparison Functions and Operators": numbers beside texts are compared as texts.
        ("least(2, '10')", "10"), ("greatest('10', 9)", "9"), ("greatest(2, 10)", 10),
        # "String Literals", "String Functions".
        ("'a' 'b' \"c\"", "abc"), ("upper('ßé')", "ßÉ"),
        ("trim(both 'x' from 'xxaxx')", "a"), ("trim(leading 'xy' from 'xyxya')", "a"),
        ("trim(trailing 'x' from 'xax')", "xa"), ("trim('x' from 'xax')", "a"), ("trim('  a ')", "a"),
        ("trim(both from ' a ')", "a"), ("trim('' from 'a')", "a"), ("trim(null from 'a')", None),
        ("substring('hello' from 2)", "ello"), ("substring('hello' from -3 for 2)", "ll"), ("substr('hello', 2, 2)", "el"),
        ("position('l' in 'hello')", 3), ("locate('o', 'foo', 3)", 3), ("locate('o', 'foo', 0)", 0),
        ("locate('', 'foo', 4)", 4), ("locate('', 'foo', 5)", 0),
        # "Date and Time Functions".
        ("extract(year from '2024-02-29')", 2024), ("extract(minute from '12:34:56')", 34),
        ("from_unixtime(1692841131, '%H:%i:%s')", "01:38:51"),
        ("date_format('2024-02-29', '%D')", "29th"), ("date_format('2024-02-01', '%D')", "1st"),
        ("date_format('2024-02-12', '%D')", "12th"), ("date_format('2024-02-23', '%D')", "23rd"),
        ("date_format('2024-01-01', '%U %u %V %v %X %x')", "00 01 53 01 2023 2024"),
        ("date_format('2024-12-30', '%U %u %V %v %X %x')", "52 53 52 01 2024 2025"),
        ("date_format('2023-01-01', '%U %u %V %v %X %x')", "01 00 01 52 2023 2022"),
        ("date_format('2024-01-01', '')", None),
        ("time('123456')", nanos(hours=12, minutes=34, seconds=56)), ("time(123456)", nanos(hours=12, minutes=34, seconds=56)),
        ("time(12)", nanos(seconds=12)), ("time(1.5)", nanos(milliseconds=1500)),
        ("time('1 02:03:04')", nanos(days=1, hours=2, minutes=3, seconds=4)),
        ("time('12:99')", None), ("cast('12:34:56' as time)", nanos(hours=12, minutes=34, seconds=56)),
        ("timestamp('2024-02-29', '12:00:00')", at("2024-02-29T12:00:00")), ("timestamp('2024-02-29', null)", None),
        ("timestamp '2024-02-29 12:34:56'", at("2024-02-29T12:34:56")),
        ("adddate('2024-02-28', 2)", "2024-03-01"), ("subdate('2024-03-01', 1)", "2024-02-29"),
        ("current_date = curdate()", 1), ("current_timestamp >= now()", 1), ("now(6) >= now(0)", 1),
    ],
)  # fmt: skip
def test_values(service: TableStoreService, expression: str, expected: Any) -> None:
    [[found]] = sql(service, f"select {expression}").rows
    assert found == expected


@pytest.mark.parametrize(
    ("expression", "kind", "expected"),
    [
        ("date('2024-02-29') + interval 1 day", COMPLEX, (date(2024, 3, 1) - date(1970, 1, 1)).days * 86_400),
        ("date('2024-02-29') + interval 1 hour", COMPLEX, at("2024-02-29T01:00:00")),
        ("timestamp('2024-02-29') - interval 1 day", COMPLEX, at("2024-02-28T00:00:00")),
        ("date_add('2024-02-29', interval 1 year)", STRING, "2025-02-28"),
        ("date_add('2024-02-29', interval 1 hour)", STRING, "2024-02-29 01:00:00"),
        ("date_add('2024-02-29 12:00:00', interval 1 day)", STRING, "2024-03-01 12:00:00"),
        ("date_add('2024-02-29', interval 1.5 day)", STRING, "2024-03-02"),
        ("date_add('none', interval 1 day)", STRING, None),
    ],
)
def test_an_interval_keeps_the_type_of_the_date(
    service: TableStoreService, expression: str, kind: int, expected: Any
) -> None:
    """DATE stays DATE unless a time is added, and a text stays a text ("DATE_ADD")."""
    answer = sql(service, f"select {expression}")
    assert (answer.types, answer.rows) == ([kind], [(expected,)])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # "SELECT Statement": a HAVING without groups is a condition on the rows, which knows the aliases.
        ("select k as kk from t having kk > 3", [(4,), (5,)]),
        ("select k from t having k > 1 order by k desc limit 2", [(5,), (4,)]),
        ("select k from t having k > 3 limit 1", [(4,)]),
        ("select 1 having 0", []),
        ("select 1 from t having count(*) > 4", [(1,)]),
        ("select count(*) from t having count(*) > 5", []),
        ("select distinctrow n from t order by n", [(0,), (1,), (2,)]),
        ("select 1 from dual", [(1,)]),
        ("select 1 from dual where 0", []),
        ("select k from inst.t where k = 1", [(1,)]),
        ("select x.k from `inst`.`t` x join inst.t y on x.k = y.k and x.k = 1", [(1,)]),
        ("select k from t where k = 1 ; -- the end", [(1,)]),
        ("select k from t where k < 9223372036854775808 and k > 4", [(5,)]),
    ],
)
def test_statements(service: TableStoreService, query: str, expected: list[tuple[Any, ...]]) -> None:
    assert sql(service, query).rows == expected


def test_names_of_literals(service: TableStoreService) -> None:
    """A text is named by its value, not by its source ("SELECT 'it''s'" in the mysql client)."""
    answer = sql(service, "select 'it''s', \"a\\n\", null, true, 'x' as y, 1 + 1")
    assert answer.names == ["it's", "a\n", "NULL", "TRUE", "y", "1 + 1"]


@each_row(
    "query, message",
    [
        ("select k, from t", "an expression is missing after ,"),
        ("select k from t,", "an expression is missing after ,"),
        ("select concat(k,) from t", "an expression is missing after ,"),
        ("select k from t group by", "an expression is missing after GROUP BY"),
        ("select k from t order by limit 1", "an expression is missing after ORDER BY"),
        ("select k from t where k in ()", "IN must be followed by a list"),
        ("select k from other.t", "Unknown database 'other'."),
        ("select extract(fortnight from '2024-01-01')", "Expected a unit"),
        ("select extract(year)", "Failed to parse"),
        ("select trim(both)", "Failed to parse"),
        ("select trim('a', 'b')", "Failed to parse"),
        ("select position('a', 'b')", "Failed to parse"),
        ("select substring('a' from)", "Failed to parse"),
        ("select substring()", "Incorrect parameter count"),
        ("select now(7)", "The precision of a time"),
        ("select now(2.0)", "The precision of a time"),
        ("select pow(-8, 0.5)", "DOUBLE value is out of range."),
    ],
)
def test_statements_that_are_refused(service: TableStoreService, query: str, message: str) -> None:
    with pytest.raises(Refused, match="OTSParameterInvalid") as refused:
        sql(service, query)
    assert message in refused.value.message
