"""SQLQuery: mappings, SELECT, the rules of values, functions and limits.

Sources: "SQL query" of the Tablestore developer guide, the MySQL 8 reference manual, and the SQL tests of the Python, Go
and Node SDKs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.adapters.tablestore.features.sql import work
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import sql_pb2
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.http.messages import Request
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.support.clock import Clock
from tests.support.sql_client import BINARY, BOOL, COMPLEX, DOUBLE, LONG, STRING, sql
from tests.support.tables import each_row

PEOPLE = (
    "create table people (uid varchar(1024), pid bigint(20), name mediumtext, age bigint(20), grade double,"
    " male bool, photo mediumblob, primary key(uid, pid))"
)


@pytest.fixture(scope="module")
def people(shared_database_url: str) -> Iterator[TableStoreService]:
    """Table Store on both databases, with a mapped table of ten rows."""
    with TableStoreService.opened(Clock(), database=shared_database_url) as service:
        service.create("people", ("uid", messages.STRING), ("pid", messages.INTEGER))
        for number in range(10):
            cells: dict[str, Any] = {"name": f"name{number}", "age": number % 3, "grade": number + 0.2}
            if number % 2:
                cells |= {"male": True, "photo": bytes([number])}
            service.put({"uid": str(number), "pid": number}, cells, table="people")
        sql(service, PEOPLE)
        yield service


def value(service: TableStoreService, expression: str) -> Any:
    """The value of an expression."""
    [[found]] = sql(service, f"select {expression}").rows
    return found


def refusal(service: TableStoreService, query: str) -> str:
    with pytest.raises(Refused) as refused:
        sql(service, query)
    assert refused.value.status in (400, 404), query
    return refused.value.message


# Mappings


def test_create_show_describe_drop(people: TableStoreService) -> None:
    people.create("other", ("pk", messages.INTEGER))
    created = sql(
        people, "create table if not exists other (pk bigint not null, `b c` double, primary key (`pk`));"
    )
    assert (created.message.type, created.message.rows) == (sql_pb2.SQL_CREATE_TABLE, b"")
    assert ("other",) in sql(people, "SHOW TABLES;").rows
    assert sql(people, "show tables").names == ["Tables_in_inst"]
    described = sql(people, "describe `other`")
    assert described.names == ["Field", "Type", "Null", "Key", "Default", "Extra"]
    assert described.rows == [
        ("pk", "bigint(20)", "NO", "PRI", None, ""),
        ("b c", "double", "YES", "", None, ""),
    ]
    assert "already exists" in refusal(people, "create table other (pk bigint, primary key(pk))")
    sql(people, "create table if not exists other (pk bigint, primary key(pk))")
    # Nothing else is checked then (OTSDriverTest.testStatement of aliyun-tablestore-jdbc).
    sql(people, "create table if not exists other (another bigint primary key )")
    dropped = sql(people, "drop MAPPING table  other ;")
    assert (dropped.message.type, dropped.message.rows) == (sql_pb2.SQL_DROP_TABLE, b"")
    assert ("other",) not in sql(people, "show tables").rows
    sql(people, "drop mapping table other")
    sql(people, "drop mapping table if exists other")
    assert people.call("DescribeTable", table_name="other").table_status == messages.ACTIVE


def test_a_table_without_a_mapping_has_its_key_and_defined_columns(people: TableStoreService) -> None:
    people.create(
        "plain",
        ("pk", messages.INTEGER),
        defined=[messages.DefinedColumnSchema(name="d", type=messages.DCT_STRING)],
    )
    people.put({"pk": 1}, {"d": "x", "e": "hidden"}, table="plain")
    answer = sql(people, "select * from plain")
    assert (answer.names, answer.rows) == (["pk", "d"], [(1, "x")])


def test_show_columns(people: TableStoreService) -> None:
    """The statements of aliyun-tablestore-jdbc (OTSDatabaseMetaData) and the columns that it reads by name.

    Columns: "SHOW COLUMNS Statement" of MySQL 8.
    """
    answer = sql(people, "SHOW FULL COLUMNS FROM `people` FROM `inst` LIKE '%i_'")
    assert answer.names == [
        "Field", "Type", "Collation", "Null", "Key", "Default", "Extra", "Privileges", "Comment",
    ]  # fmt: skip
    assert answer.rows == [
        ("uid", "varchar(1024)", "utf8mb4_bin", "NO", "PRI", None, "", "select", ""),
        ("pid", "bigint(20)", None, "NO", "PRI", None, "", "select", ""),
    ]
    assert len(sql(people, "show full columns from people from inst;").rows) == 7
    short = sql(people, "show fields in people like 'PID'")
    assert short.names == sql(people, "desc people").names
    assert [row[0] for row in short.rows] == ["pid"]
    assert sql(people, "show columns from people").rows == sql(people, "desc people").rows


def test_show_names_the_instance_and_a_pattern(people: TableStoreService) -> None:
    assert sql(people, "SHOW TABLES FROM `inst` LIKE 'PEO%'").rows == [("people",)]
    assert sql(people, "show tables like 'peo'").rows == []
    assert sql(people, r"show tables like 'peo\_le'").rows == []
    assert sql(people, """show tables in inst like "pe''o%" """).rows == []
    keys = sql(people, "SHOW KEYS FROM `people` FROM `inst`").rows
    assert keys == sql(people, "SHOW INDEX IN `people` FROM `inst`").rows
    for statement in (
        "show tables from other",
        "show columns from people in other",
        "show keys in people in o",
    ):
        assert refusal(people, statement).startswith("Unknown database 'o")
    assert refusal(people, "show columns from absent")


def test_show_index(people: TableStoreService) -> None:
    answer = sql(people, "show index from people")
    assert [(row[0], row[2], row[3], row[4]) for row in answer.rows] == [
        ("people", "PRIMARY", 1, "uid"),
        ("people", "PRIMARY", 2, "pid"),
    ]


@pytest.mark.parametrize(
    "columns",
    ["uid varchar(9), primary key(uid)", "uid bigint, pid bigint, primary key(uid, pid)",
     "uid varchar(9), pid bigint, primary key(pid, uid)", "uid varchar(9), pid bigint",
     "uid varchar(9), pid bigint, a date, primary key(uid, pid)",
     "uid varchar(9), pid bigint, uid bigint, primary key(uid, pid)"],
)  # fmt: skip
def test_mappings_that_do_not_fit_the_table(people: TableStoreService, columns: str) -> None:
    assert refusal(people, f"create table people ({columns})")


# SELECT


def test_the_types_of_columns(people: TableStoreService) -> None:
    answer = sql(people, "select * from people limit 2")
    assert answer.names == ["uid", "pid", "name", "age", "grade", "male", "photo"]
    assert answer.types == [STRING, LONG, STRING, LONG, DOUBLE, BOOL, BINARY]
    assert answer.rows == [
        ("0", 0, "name0", 0, 0.2, None, None),
        ("1", 1, "name1", 1, 1.2, True, b"\x01"),
    ]


def test_a_value_of_another_type_than_its_column_is_null(people: TableStoreService) -> None:
    people.create("mixed", ("pk", messages.INTEGER))
    sql(people, "create table mixed (pk bigint, n bigint, d double, primary key(pk))")
    people.put({"pk": 1}, {"n": "text", "d": 3}, table="mixed")
    assert sql(people, "select n, d from mixed").rows == [(None, 3.0)]


@each_row(
    "query, rows",
    [
        ("select count(*) from people", [(10,)]),
        ("select sum(age) from people", [(9.0,)]),
        ("select pid from people where grade > 5.0", [(5,), (6,), (7,), (8,), (9,)]),
        ("select age, avg(grade) from people group by age order by age", [(0, 4.7), (1, 4.2), (2, 5.2)]),
        ("select pid from people order by grade limit 1", [(0,)]),
        ("select pid from people order by age desc, pid limit 2, 3", [(8,), (1,), (4,)]),
        ("select pid from people order by 1 desc limit 2 offset 1", [(8,), (7,)]),
        ("select distinct age from people order by age", [(0,), (1,), (2,)]),
        ("select age a, count(*) as n from people group by a having n > 3", [(0, 4)]),
        ("select count(male), count(distinct age), min(name), max(grade) from people", [(5, 3, "name0", 9.2)]),
        ("select count(*), sum(age), min(age) from people where pid > 100", [(0, None, None)]),
        ("select age from people where pid > 100 group by age", []),
        ("select 1 as age, count(*) from people group by age", [(1, 4), (1, 3), (1, 3)]),
        ("select pid % 2 as age, count(*) from people group by age + 1", [(0, 4), (1, 3), (0, 3)]),
        ("select pid % 2 as odd, count(*) from people group by odd order by odd", [(0, 5), (1, 5)]),
        ("select uid from people where uid = '3'", [("3",)]),
        ("select pid from people where uid >= '3' and '5' > uid", [(3,), (4,)]),
        ("select pid from people where uid between '3' and '4' and name like '%4'", [(4,)]),
        ("select pid from people where male is null and pid in (1, 2, null)", [(2,)]),
        ("select PID from People where Male = true and pid < 4", [(1,), (3,)]),
        ("select b.pid from people a join people b on a.age = b.pid where a.pid = 5", [(2,)]),
        ("select a.pid, b.pid from people a left join people b on b.pid = a.pid + 8 where a.pid in (1, 2)",
         [(1, 9), (2, None)]),
        ("select count(*) from people a, people b where a.age = b.age", [(34,)]),
        ("select upper(name) as shout from people where pid = 3", [("NAME3",)]),
        ("select sum(age) + 1 s from people having s > 3", [(10.0,)]),
        ("select pid from people order by male, pid desc limit 6", [(8,), (6,), (4,), (2,), (0,), (9,)]),
        # Subqueries
        ("select pid from people where pid in (select age from people where pid > 5)", [(0,), (1,), (2,)]),
        ("select pid from people where uid in (select uid from people where pid < 2)", [(0,), (1,)]),
        ("select pid from people where pid not in (select age from people) and pid < 5", [(3,), (4,)]),
        ("select pid from people where pid not in (select if(age, age, null) from people)", []),
        ("select pid from people where age in (select age from people where 0)", []),
        ("select null in (select 1), null in (select 1 from people where 0)", [(None, 0)]),
        ("select 1.0 in (select 1), '5' in (select pid from people)", [(1, 1)]),
        ("select pid from people where exists (select 1 from people where pid = 3) limit 1", [(0,)]),
        ("select pid from people where not exists (select 1 from people where pid = 33) limit 1", [(0,)]),
        ("select pid from people where exists (select 1 from people where pid = 33)", []),
        ("select pid from people where grade = (select max(grade) from people)", [(9,)]),
        ("select (select pid from people where pid > 9)", [(None,)]),
        ("select (select count(*) from people) + 1 as n, ((select 'a')) as t", [(11, "a")]),
        ("select age, count(*) from people group by age having count(*) > (select 3)", [(0, 4)]),
        ("select n from (select age a, count(*) n from people group by age) x where a = 1", [(3,)]),
        ("select * from (select distinct age from people) x order by 1 desc limit 2", [(2,), (1,)]),
        ("select a.pid, n from people a join (select age, count(*) n from people group by 1) b on a.age = b.age where pid < 2",
         [(0, 4), (1, 3)]),
        ("select `age + 1` from (select age + 1 from people where pid = 1) x", [(2,)]),
        ("select count(distinct age), sum(distinct age), avg(distinct age) from people", [(3, 3.0, 1.0)]),
        ("select pid + 1 x from people where pid < 2 order by abs(x) desc", [(2,), (1,)]),
        ("select age x, count(*) from people group by abs(x) having abs(x) = 1 and abs(sum(pid)) > 0", [(1, 3)]),
        ("select a.pid from people a left join people b on a.pid = b.pid and b.pid in (select 3) where b.pid is null limit 4",
         [(0,), (1,), (2,), (4,)]),
    ],
)  # fmt: skip
def test_selects(people: TableStoreService, query: str, rows: list[tuple[Any, ...]]) -> None:
    if query.startswith("select PID"):
        query = query.replace("People", "people")  # names of tables have case
    assert sql(people, query).rows == rows


def test_a_column_is_named_by_its_source_text(people: TableStoreService) -> None:
    query = "select  pid+1 , count( * ),'a' x, age from people group by pid, age limit 1"
    assert sql(people, query).names == ["pid+1", "count( * )", "x", "age"]


def test_consumed_units_are_those_of_the_range(people: TableStoreService) -> None:
    [consumed] = sql(people, "select * from people where uid = '1'").message.consumes
    assert (consumed.table_name, consumed.consumed.capacity_unit.read) == ("people", 1)
    assert not sql(people, "select 1").message.consumes


# Values: "Type Conversion in Expression Evaluation", "Operators", "Working with NULL Values" (MySQL 8)


@each_row(
    "expression, expected",
    [
        ("null = null", None), ("null <=> null", 1), ("1 <=> null", 0), ("null is null", 1), ("1 is not null", 1),
        ("null and 0", 0), ("null and 1", None), ("null or 1", 1), ("null or 0", None), ("not null", None),
        ("1 xor 1", 0), ("1 xor null", None), ("null in (1)", None), ("1 in (1, null)", 1), ("2 in (1, null)", None),
        ("2 not in (1, null)", None), ("null between 1 and 2", None), ("3 between null and 2", 0),
        ("1 is true", 1), ("null is true", 0), ("null is not true", 1),
        ("'a' = 'A'", 0), ("'a' < 'b'", 1), ("'10' < '9'", 1), ("10 < '9'", 0), ("'5x' = 5", 1), ("'x' = 0", 1),
        ("1.0 = 1", 1), ("9007199254740993 = 9007199254740992.0", 0),
        ("1 + 1", 2), ("1 + 1.5", 2.5), ("'2' + 1", 3.0), ("5 / 2", 2.5), ("1 / 0", None), ("5 div 2", 2),
        ("-5 div 2", -2), ("5 div 0", None), ("-7 % 3", -1), ("7 mod 3", 1), ("5 % 0", None), ("-(2)", -2),
        ("2 * 3 + 4", 10), ("2 + null", None), ("1 = 1 = 1", 1),
        ("6 & 3", 2), ("6 | 3", 7), ("6 ^ 3", 5), ("~1", -2), ("-1 & 255", 255), ("'6x' & 3.4", 2),
        ("null | 1", None), ("~null", None), ("~ ~9223372036854775807", 9223372036854775807), ("1 + 2 & 2", 2),
        ("'abc' like 'a%'", 1), ("'abc' like 'A%'", 0), ("'abc' like '_b_'", 1), ("'a%c' like 'a\\\\%c'", 1),
        ("'abc' like 'a\\\\%c'", 0), ("null like 'a'", None), ("'a\nb' like 'a%b'", 1), ("'abc' not like 'x'", 1),
        ("'a%c' like 'a|%c' escape '|'", 1), ("'abc' like 'a|%c' escape '|'", 0), ("'a|c' like 'a||c' escape '|'", 1),
        ("'abc' not like 'a|%c' escape '|'", 1), ("'a\\\\c' like 'a\\\\c' escape ''", 1),
        ("null like 'a' escape '|'", None),
        ("'abc' regexp 'b'", 1), ("'abc' rlike '^b'", 0),
        ("case when null then 1 else 2 end", 2), ("case 2 when 1 then 'a' when 2 then 'b' end", "b"),
        ("case when 1 then 1 else 2.5 end", 1.0), ("if(0, 'a', 'b')", "b"), ("ifnull(null, 7)", 7),
        ("coalesce(null, null, 'x')", "x"), ("nullif(1, 1)", None), ("nullif(1, 2)", 1),
        ("cast('12' as signed)", 12), ("cast(1.5 as char)", "1.5"), ("cast(2.5 as signed)", 3),
        ("cast(-2.5 as signed)", -3), ("cast('x' as signed)", 0), ("cast('abcdef' as char(3))", "abc"),
        ("cast(null as char(3))", None), ("cast(1.2345 as decimal(10, 2))", 1.23), ("cast(1.5 as decimal)", 2.0),
        ("cast(12345 as decimal(4, 1))", 999.9), ("cast('a' as binary(3))", b"a\0\0"),
        ("cast('1e999' as double)", 1.7976931348623157e308),
        ("0x4142", b"AB"), ("x'4142' = 'AB'", 1), ("0x4", b"\x04"), ("b'01000001'", b"A"), ("0x41 + 1", 66.0), ("65 = 0x41", 1),
        ("x''", b""), ("concat(0x41, 'b')", "Ab"), ("length(0x0001)", 2), ("cast(0xff as signed)", 255),
        ("'9007199254740993' = 9007199254740993", 1), ("'9007199254740992' = 9007199254740993", 0),
        ("9007199254740993 in ('9007199254740993')", 1), ("'12 ' = 12", 1), ("'1e1' = 10", 1),
        ("-9223372036854775808", -(2**63)), ("-9223372036854775808 < -9223372036854775807", 1), ("concat(1e20)", "1e20"),
    ],
)  # fmt: skip
def test_values(people: TableStoreService, expression: str, expected: Any) -> None:
    found = value(people, expression)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize(
    "expression",
    ["floor('1e999')", "ceil('-1e999')",
     "cast(1 as decimal(66, 1))", "cast(1 as decimal(2, 3))", "cast('a' as char(99999999999))", "cast('a' as binary(256))"],
)  # fmt: skip
def test_values_out_of_range(people: TableStoreService, expression: str) -> None:
    message = refusal(people, f"select {expression}")
    assert "out of range" in message or "whole number" in message


def test_numbers_that_are_not_finite_are_null(service: TableStoreService) -> None:
    """MySQL does not have them, and a search index leaves them out, too."""
    service.create("odd", ("pk", messages.INTEGER))
    sql(service, "create table odd (pk bigint, d double, primary key(pk))")
    for key, number in enumerate((math.nan, math.inf, -math.inf)):
        service.put({"pk": key}, {"d": number}, table="odd")
    found = sql(
        service, "select d, d is null, floor(d), cast(d as signed), repeat('a', d), d & 1 from odd"
    ).rows
    assert found == [(None, 1, None, None, None, None)] * 3


def test_long_keys_are_looked_up(service: TableStoreService) -> None:
    """Keys of 19 digits, also as text, read one row instead of the table."""
    service.create("ids", ("pk", messages.INTEGER))
    sql(service, "create table ids (pk bigint, primary key(pk))")
    for key in (1234567890123456789, 1234567890123456788, -(2**63)):
        service.put({"pk": key}, {"a": 1}, table="ids")
        for literal in (f"{key}", f"'{key}'"):
            assert sql(service, f"select pk from ids where pk = {literal}").rows == [(key,)]
            [plan] = sql(service, f"explain select pk from ids where pk = {literal}").rows
            assert plan[-1] == 1
    assert sql(service, "select count(*) from ids where pk > '1234567890123456788'").rows == [(1,)]


@each_row(
    "expression, expected",
    [
        ("concat('a', 1, 'b')", "a1b"), ("concat('a', null)", None), ("concat_ws('-', 'a', null, 'b')", "a-b"),
        ("length('é')", 2), ("char_length('é')", 1), ("upper('aé')", "AÉ"), ("lower('A')", "a"),
        ("substring('hello', 2, 3)", "ell"), ("substr('hello', -3)", "llo"), ("substring('hello', 0)", ""),
        ("left('hello', 2)", "he"), ("right('hello', 2)", "lo"), ("trim(' a ')", "a"), ("replace('aba', 'a', 'x')", "xbx"),
        ("reverse('abc')", "cba"), ("repeat('ab', 2)", "abab"), ("lpad('5', 3, '0')", "005"), ("rpad('abc', 2, 'x')", "ab"),
        ("instr('abc', 'c')", 3), ("locate('z', 'abc')", 0),
        ("abs(-3)", 3), ("abs(-3.5)", 3.5), ("ceil(1.2)", 2), ("floor(-1.2)", -2), ("round(2.5)", 3.0), ("round(-2.5)", -3.0),
        ("round(1.256, 2)", 1.26), ("round(15, -1)", 20), ("truncate(1.99, 1)", 1.9), ("mod(-7, 3)", -1), ("sign(-2)", -1),
        ("sqrt(9)", 3.0), ("sqrt(-1)", None), ("pow(2, 10)", 1024.0), ("ln(0)", None), ("log2(8)", 3.0),
        ("greatest(1, 3, 2)", 3), ("least('b', 'a')", "a"), ("greatest(1, null)", None),
        ("date_format(from_unixtime(1668585138.995), '%Y-%m-%d %H:%i:%s.%f %%')", "2022-11-16 07:52:18.995000 %"),
        ("unix_timestamp('2022-11-16 07:52:18')", 1668585138.0), ("datediff('2022-03-01', '2022-02-27')", 2),
        ("year('2022-11-16')", 2022), ("quarter('2022-11-16')", 4), ("dayofweek('2022-11-16')", 4),
        ("hour('2022-11-16 07:52:18')", 7), ("date_format('2022-01-31' + interval 1 month, '%d')", "28"),
        ("date_format(date_sub('2022-03-01', interval 1 day), '%m-%d')", "02-28"), ("year('nonsense')", None),
        ("year('2024-1-5')", 2024), ("day('2024/01/5 3:4')", 5), ("month(20240105)", 1), ("day('240105')", 5),
        ("year('70.1.1')", 1970),
        ("minute('20240105103059')", 30), ("day('2024-02-30')", None), ("year(20240230)", None), ("year(12345)", None),
        ("hour('10:05:03')", 10), ("second('10:05:03.25')", 3), ("microsecond('10:05:03.25')", 250000), ("minute('10:65')", None),
        ("hour(timediff('2024-01-03', '2024-01-01'))", 48), ("cast(timediff('10:00:00', '09:30') as char)", "00:30:00"),
        ("cast(time('-01:02:03') as char)", "-01:02:03"), ("hour('x')", None),
        ("microsecond('2024-01-01' + interval 1.5 second)", 500000), ("hour('2024-01-01' + interval 1.5 hour)", 2),
        ("'2022-01-02' < date('2022-01-03')", 1), ("cast(date('2022-01-03') as char)", "2022-01-03"),
    ],
)  # fmt: skip
def test_functions(people: TableStoreService, expression: str, expected: Any) -> None:
    found = value(people, expression)
    assert (type(found), found) == (type(expected), expected)


def test_times_have_types_of_their_own(people: TableStoreService) -> None:
    """As Go's TestSQL expects them: microseconds, nanoseconds, and seconds since 1970."""
    first, second = "from_unixtime(1668585138.995)", "from_unixtime(1668585013.712)"
    answer = sql(people, f"select {first},timediff({first},{second}),date({first})")
    assert answer.types == [COMPLEX] * 3
    assert answer.rows == [(1668585138995000, 125283000000, 1668556800)]
    assert answer.names == [first, f"timediff({first},{second})", f"date({first})"]


# Refusals


@each_row(
    "query",
    ["", ";", "selec", "select", "select * from", "select 1; select 2", "insert into people values (1)",
     "update people set age = 1", "delete from people", "drop table people",
     "select * from (select 1)",
     "select (select 1, 2)", "select pid from (select a.pid) x, people a",
     "select 1 in (select 1, 2)", "select (select pid from people)",
     "select 1 union select 2", "with a as (select 1) select * from a",
     "select nothing from people", "select x.pid from people", "select nonsense(1)", "select abs(1, 2)",
     "select * from people a, people b where pid = 1", "select * from people, people", "select sum(count(*)) from people",
     "select count(*) from people order by 2", "select pid from people limit -1", "select 9223372036854775807 + 1",
     "select 1e308 * 10", "select pow(10, 400)", "select * from people for update", "select @@version", "select ?",
     "select 'a' regexp '('", "select repeat('a', 100000000)", "select replace(repeat('a', 2000), 'a', repeat('b', 2000))",
     "select x'zz'", "select b'2'",
     "select pid from people order by pid nulls last", "select pid from people order by pid desc nulls first",
     "select row_number() over () from people", "select pid from people group by pid with rollup",
     "select * from a.b", "select * from people natural join people",
     "select exists(select 1 union select 2)", "select sum(*) from people",
     "select name->> from people", "select name-> from people", "select age from people group by max(age)",
     "select max(age) x from people group by x", "select max(age) x from people group by abs(x)",
     "select max(age) from people group by 1", "select age from people group by age = count(*)",
     "select 1e30 & 1", "select ~1e30", "select *", "explain delete from people",
     "explain show tables", "set a = 1", "use inst", "create table people as select 1", "create view v as select 1",
     "select 'a' like 'b' escape 'cd'", "select interval 1 day", "select \x00", "select '\ud7ff' from", "desc", "(((",
     "select cast(1 as json)", "select 1 = any(select 1)", "select " + "1" * 500, "select count(distinct)", "call x()",
     "select a.people.pid from people",
     "select pid between symmetric 1 and 2 from people", "select count(*) filter (where 1) from people"],
)  # fmt: skip
def test_statements_that_are_refused(people: TableStoreService, query: str) -> None:
    assert "\x1b" not in refusal(people, query)


def test_a_statement_on_an_absent_table_is_refused(people: TableStoreService) -> None:
    for query in ("select * from nowhere", "desc nowhere", "drop mapping table nowhere", "show index from nowhere",
                  "create table nowhere (pk bigint, primary key(pk))"):  # fmt: skip
        assert "does not exist" in refusal(people, query)


def test_only_flatbuffers_are_offered(people: TableStoreService) -> None:
    with pytest.raises(Refused) as refused:
        people.call("SQLQuery", query="select 1", version=sql_pb2.SQL_PLAIN_BUFFER)
    assert refused.value.code == "OTSParameterInvalid"


# Limits, on both sides


def test_a_statement_has_a_maximum_length_and_depth(people: TableStoreService) -> None:
    fitting = "select 1".ljust(limits.SQL_CHARACTERS_MAX)
    assert sql(people, fitting).rows == [(1,)]
    assert "longer" in refusal(people, fitting + " ")
    assert value(people, "(" * 10 + "1" + ")" * 10) == 1
    for deep in ("(" * 5000 + "1" + ")" * 5000, "not " * 5000 + "1", "- " * 5000 + "1", "1" + " + 1" * 5000):
        assert refusal(people, f"select {deep}")
    assert value(people, "1" + " or 0" * 3000) == 1
    assert value(people, "1" + " + 1" * 100) == 101


def test_the_number_of_rows_that_are_read(people: TableStoreService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQL_ROWS_MAX", 10)
    monkeypatch.setattr(limits, "SQL_PAGE_ROWS", 3)
    assert sql(people, "select count(*) from people").rows == [(10,)]
    monkeypatch.setattr(limits, "SQL_ROWS_MAX", 9)
    assert "exceeds the limit" in refusal(people, "select count(*) from people")
    assert sql(people, "select pid from people limit 4").rows == [(0,), (1,), (2,), (3,)]
    assert sql(people, "select count(*) from people where uid < '5'").rows == [(5,)]


def test_the_size_of_rows_and_the_time(people: TableStoreService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQL_BYTES_MAX", 100)
    assert "exceeds the limit" in refusal(people, "select * from people")
    monkeypatch.undo()
    monkeypatch.setattr(limits, "SQL_SECONDS", -1.0)
    with pytest.raises(Refused) as refused:
        sql(people, "select * from people")
    assert refused.value.code == "OTSTimeout"


@pytest.mark.parametrize(
    "rest",
    ["", " order by repeat('x', {n})", " group by repeat('x', {n})", " having max(repeat('x', {n})) > ''"],
)
def test_the_values_that_are_kept(
    people: TableStoreService, monkeypatch: pytest.MonkeyPatch, rest: str
) -> None:
    """Each value may have 2 MB, so all of them together need a bound."""
    computed = "1" if rest else "repeat('x', {n})"
    statement = f"select {computed} from people where pid = 3{rest}"
    monkeypatch.setattr(limits, "SQL_KEPT_MAX", 100)
    assert len(sql(people, statement.format(n=100)).rows) == 1
    assert "exceed" in refusal(people, statement.format(n=101))


def test_the_arguments_of_a_function(people: TableStoreService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQL_TEXT_MAX", 10)
    ten = "repeat('x', 10)"
    assert value(people, f"concat_ws(null, {ten}, {ten})") is None
    assert "too long" in refusal(people, f"select concat_ws(null, {ten}, {ten}, 'x')")


@pytest.mark.parametrize(
    "statement",
    [
        "select count(*) from people a, people b where a.pid + b.pid >= 0",
        "select sum(a.pid), max(a.pid), min(a.pid), avg(a.pid) from people a",
        "select a.pid, a.pid, a.pid, a.pid from people a",
        "select 1 where " + " or ".join(["abs(1) = 1", *["abs(1) = 2"] * 32][::-1]),
        "select 1 where " + " or ".join(["'a' like 'a'", *["'a' like 'b'"] * 32][::-1]),
    ],
)
def test_every_row_counts_against_the_time_limit(
    people: TableStoreService, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """A single row may take long. Each look at the clock takes a second here."""
    assert sql(people, statement).rows
    monkeypatch.setattr(work, "monotonic", itertools.count().__next__)
    with pytest.raises(Refused) as refused:
        sql(people, statement)
    assert refused.value.code == "OTSTimeout"


def test_the_memory_of_rows_is_counted(people: TableStoreService) -> None:
    """Rows that are kept count against the budget of the server, those that are passed over do not."""
    with_budget = people.with_settings(max_buffered_bytes=10_000)
    with_budget.gateway.memory.hold(Request("POST", "/", (), b""), 9_000)  # of another request
    with pytest.raises(Refused) as refused:
        sql(with_budget, "select * from people")
    assert (refused.value.status, refused.value.code) == (503, "OTSServerBusy")
    assert sql(with_budget, "select * from people where pid > 100").rows == []


def test_the_number_of_subqueries(people: TableStoreService) -> None:
    most = limits.SQL_SUBQUERIES_MAX
    assert sql(people, "select " + " + ".join(["(select 1)"] * most)).rows == [(most,)]
    assert "subqueries" in refusal(people, "select " + " + ".join(["(select 1)"] * (most + 1)))
    nested = "select * from (" * (most + 1) + "select 1" + ") x" * (most + 1)
    assert "subqueries" in refusal(people, nested)


def test_subqueries_share_the_limits_of_their_statement(
    people: TableStoreService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SQL_ROWS_MAX", 19)
    assert "exceeds the limit" in refusal(
        people, "select pid from people where pid in (select pid from people)"
    )
    monkeypatch.setattr(limits, "SQL_ROWS_MAX", 20)
    assert len(sql(people, "select pid from people where pid in (select pid from people)").rows) == 10


def test_the_pairs_of_a_join(people: TableStoreService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SQL_COMPARISONS_MAX", 99)
    assert "pairs" in refusal(people, "select count(*) from people a, people b")
    assert sql(people, "select count(*) from people a join people b on a.pid = b.pid").rows == [(10,)]
