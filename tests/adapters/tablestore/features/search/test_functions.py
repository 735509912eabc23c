"""Scores that functions change.

Sources: the classes of the Java SDK (FunctionsScoreQuery, DecayFunction, FieldValueFactorFunction), and
aliyun-tablestore-go-sdk, tablestore/search_api_test.go, TestQueryFunctionsScore.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import (
    Searches,
    bool_of,
    exists,
    field,
    keys_of,
    match_all,
    query,
    schema,
    search_query,
    term,
)

BY_SCORE = messages.Sort(sorter=[messages.Sorter(score_sort=messages.ScoreSort())])
DATE_FORMAT = "yyyy-MM-dd"


@pytest.fixture
def table(service: TableStoreService) -> Searches:
    """Rows 0 to 3: l is ten times the key, and row 3 has no other columns."""
    made = Searches(service)
    made.create(
        ("l", messages.LONG),
        ("k", messages.KEYWORD),
        ("t", messages.TEXT),
        ("g", messages.GEO_POINT),
        field("d", messages.DATE, date_formats=[DATE_FORMAT]),
        field("a", messages.LONG, is_array=True),
    )
    for number in range(3):
        cells = {"l": 10 * number, "k": "ab"[number % 2], "g": f"0,{number}", "d": f"2024-01-0{number + 1}"}
        service.put({"pk": number}, {**cells, "a": f"[{number}, 10]", "t": "x"})
    service.put({"pk": 3}, {"other": 1})
    made.catch_up()
    return made


def functions_score(*functions: messages.Function, **members: Any) -> messages.Query:
    members.setdefault("query", match_all())
    members.setdefault("combine_mode", messages.FCM_REPLACE)
    message = messages.FunctionsScoreQuery(functions=functions, **members)
    return query(messages.FUNCTIONS_SCORE_QUERY, message)


def value(name: str = "l", weight: float = 1, **members: Any) -> messages.Function:
    factor = messages.FieldValueFactorFunction(field_name=name, **members)
    return messages.Function(field_value_factor=factor, weight=weight)


def decay(name: str, kind: int, parameters: Any, **members: Any) -> messages.Function:
    members.setdefault("math_function", messages.LINEAR)
    function = messages.DecayFunction(
        field_name=name, param_type=kind, param=parameters.SerializeToString(), **members
    )
    return messages.Function(decay=function)


def numeric(origin: float = 10, scale: float = 10, offset: float = 0, **members: Any) -> messages.Function:
    parameters = messages.DecayFuncNumericParam(origin=origin, scale=scale, offset=offset)
    return decay(members.pop("name", "l"), messages.DF_NUMERIC_PARAM, parameters, **members)


def geographic(origin: str, scale: float) -> messages.Function:
    parameters = messages.DecayFuncGeoParam(origin=origin, scale=scale)
    return decay("g", messages.DF_GEO_PARAM, parameters)


def dated(**members: Any) -> messages.Function:
    return decay("d", messages.DF_DATE_PARAM, messages.DecayFuncDateParam(**members))


def scores(table: Searches, wanted: messages.Query, **members: Any) -> list[float]:
    """Return the scores of all rows in the order of their keys."""
    answer = table.search(wanted, **members)
    found = dict(zip(keys_of(answer), (hit.score for hit in answer.search_hits), strict=True))
    return [found[key] for key in sorted(found)]


MODIFIED = [
    (messages.FM_NONE, [0, 15, 30]),
    (messages.FM_LOG, [0, math.log10(15), math.log10(30)]),
    (messages.FM_LOG1P, [0, math.log10(16), math.log10(31)]),
    (messages.FM_LOG2P, [math.log10(2), math.log10(17), math.log10(32)]),
    (messages.FM_LN, [0, math.log(15), math.log(30)]),
    (messages.FM_LN1P, [0, math.log(16), math.log(31)]),
    (messages.FM_LN2P, [math.log(2), math.log(17), math.log(32)]),
    (messages.FM_SQUARE, [0, 225, 900]),
    (messages.FM_SQRT, [0, math.sqrt(15), math.sqrt(30)]),
    (messages.FM_RECIPROCAL, [0, 1 / 15, 1 / 30]),
]


def test_values_of_fields(table: Searches) -> None:
    """The last row has the missing value, or keeps the score of the query. 0 stands for what is not a number."""
    for modifier, expected in MODIFIED:
        wanted = functions_score(value(factor=1.5, modifier=modifier))
        assert scores(table, wanted, sort=BY_SCORE) == pytest.approx([*expected, 1])
        wanted = functions_score(value(factor=1.5, modifier=modifier, missing=10))
        assert scores(table, wanted, sort=BY_SCORE)[3] == pytest.approx(expected[1])


@pytest.mark.parametrize(
    ("shape", "expected"),
    [(messages.LINEAR, [0.5, 0.75]), (messages.EXP, [0.5, 0.5**0.5]), (messages.GAUSS, [0.5, 0.5**0.25])],
)
def test_decays(table: Searches, shape: int, expected: list[float]) -> None:
    """A document without the field has the highest value."""
    wanted = functions_score(numeric(math_function=shape))
    assert scores(table, wanted) == pytest.approx([expected[0], 1, expected[0], 1])
    wanted = functions_score(numeric(offset=5, math_function=shape))
    assert scores(table, wanted) == pytest.approx([expected[1], 1, expected[1], 1])
    other = functions_score(numeric(math_function=shape, decay=0.2))
    assert scores(table, other)[0] == pytest.approx(0.2)


def test_decays_of_places_dates_and_arrays(table: Searches) -> None:
    degree_m = 111_195.08
    assert scores(table, functions_score(geographic("0,0", degree_m))) == pytest.approx(
        [1, 0.5, 0, 1], abs=1e-4
    )
    days = messages.DateTimeValue(value=2, unit=messages.DAY)
    hours = messages.DateTimeValue(value=24, unit=messages.HOUR)
    wanted = functions_score(dated(origin_string="2024-01-01", scale=days))
    assert scores(table, wanted) == pytest.approx([1, 0.75, 0.5, 1])
    wanted = functions_score(dated(origin_string="2024-01-01", scale=days, offset=hours))
    assert scores(table, wanted) == pytest.approx([1, 1, 0.75, 1])
    for mode, expected in (
        (messages.MVM_MIN, [1, 0.95, 0.9]),
        (messages.MVM_MAX, [0.5, 0.5, 0.5]),
        (messages.MVM_SUM, [0.5, 0.45, 0.4]),
        (messages.MVM_AVG, [0.75, 0.725, 0.7]),
    ):
        wanted = functions_score(numeric(origin=0, name="a", multi_value_mode=mode))
        assert scores(table, wanted)[:3] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (messages.FSM_AVG, (20 * 2 + 100 * 3) / 5),
        (messages.FSM_MAX, 300),
        (messages.FSM_MIN, 40),
        (messages.FSM_SUM, 340),
        (messages.FSM_MULTIPLY, 12_000),
        (messages.FSM_FIRST, 40),
    ],
)
def test_several_functions(table: Searches, mode: int, expected: float) -> None:
    """The averages of the functions are weighted. Only functions whose filter matches count."""
    unused = messages.Function(weight=7, filter=term("k", "b"))
    second = value("l", 3, factor=5)
    second.filter.CopyFrom(exists("k"))
    wanted = functions_score(unused, value("l", 2), second, score_mode=mode)
    assert scores(table, wanted)[2] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (messages.FCM_MULTIPLY, 40),
        (messages.FCM_AVG, 11),
        (messages.FCM_MAX, 20),
        (messages.FCM_SUM, 22),
        (messages.FCM_MIN, 2),
        (messages.FCM_REPLACE, 20),
    ],
)
def test_the_score_of_the_query_is_combined(table: Searches, mode: int, expected: float) -> None:
    two = bool_of(must_queries=[match_all(), match_all()])
    assert scores(table, functions_score(value(), query=two, combine_mode=mode))[2] == expected
    capped = functions_score(value(), query=two, combine_mode=messages.FCM_SUM, max_score=5)
    assert scores(table, capped)[2] == 7


def test_results_with_low_scores_are_left_out(table: Searches) -> None:
    wanted = functions_score(value(), min_score=10)
    answer = table.search(wanted, sort=BY_SCORE, get_total_count=True)
    assert (keys_of(answer), answer.total_hits) == ([2, 1], 2)
    assert table.find(functions_score(value(), min_score=10.5)) == [2]
    answer = table.search(functions_score(value(), query=term("k", "a")), get_total_count=True)
    assert ([hit.score for hit in answer.search_hits], answer.total_hits) == ([0, 20], 2)


def test_random_scores(table: Searches) -> None:
    wanted = functions_score(messages.Function(random=messages.RandomScoreFunction()))
    first, second = (scores(table, wanted, sort=BY_SCORE) for _ in range(2))
    assert all(0 <= each <= 1 for each in first + second)
    assert first != second


def test_the_highest_score_of_several_queries(table: Searches) -> None:
    """Source: DisMaxQuery of the Python SDK."""
    parts = [term("k", "a"), bool_of(must_queries=[exists("l"), exists("k")])]
    message = messages.DisMaxQuery(queries=parts, tie_breaker=0.5, weight=2)
    assert scores(table, query(messages.DIS_MAX_QUERY, message), sort=BY_SCORE) == [5, 4, 5]
    message.tie_breaker = 1.5
    with pytest.raises(Refused, match="tie_breaker"):
        table.search(query(messages.DIS_MAX_QUERY, message))


INVALID = [
    functions_score(),
    functions_score(*[value()] * (limits.SCORE_FUNCTIONS_MAX + 1)),
    functions_score(value("k")),
    functions_score(value(weight=-1)),
    functions_score(value(weight=math.nan)),
    functions_score(value(factor=math.inf)),
    functions_score(numeric(scale=0)),
    functions_score(numeric(offset=-1)),
    functions_score(numeric(decay=1)),
    functions_score(numeric(decay=0)),
    functions_score(numeric(name="g")),
    functions_score(geographic("north", 1)),
    functions_score(dated(origin_string="2024", scale=messages.DateTimeValue(value=1, unit=messages.DAY))),
    functions_score(
        dated(origin_string="2024-01-01", scale=messages.DateTimeValue(value=1, unit=messages.MONTH))
    ),
    functions_score(messages.Function(decay=messages.DecayFunction(field_name="l", param=b"\xff"))),
    functions_score(
        messages.Function(random=messages.RandomScoreFunction(), field_value_factor={"field_name": "l"})
    ),
    bool_of(must_queries=[functions_score(value(), min_score=1)]),
]


def test_invalid_functions(table: Searches) -> None:
    table.search(functions_score(*[value()] * limits.SCORE_FUNCTIONS_MAX))
    table.search(bool_of(must_queries=[functions_score(value())]))
    for wanted in INVALID:
        with pytest.raises(Refused, match="OTSParameterInvalid"):
            table.search(wanted)


def test_the_order_of_scores_without_an_order_of_the_index(service: TableStoreService) -> None:
    """Source: aliyun-tablestore-nodejs-sdk, test/search.test.js, functions_score_query."""
    objects = field("n", messages.NESTED, field_schemas=[field("a", messages.LONG)])
    for name, fields, expected in (("nested", [objects], [2, 1, 0]), ("plain", [], [0, 1, 2])):
        service.create(name)
        made = schema(("l", messages.LONG), *fields)
        service.call("CreateSearchIndex", table_name=name, index_name="i", schema=made)
        for number in range(3):
            service.put({"pk": number}, {"l": 10 * number}, name)
        Searches(service).catch_up()
        data = search_query(functions_score(value()), limit=10)
        answer = service.call("Search", table_name=name, index_name="i", search_query=data)
        assert keys_of(answer) == expected
