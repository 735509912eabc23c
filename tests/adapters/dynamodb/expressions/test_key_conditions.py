"""KeyConditionExpression and KeyConditions: which a key takes, the range they become, and the service's words.

Texts and order: dynalite's query.js (recorded), paritysuite's captures of 2026, ScyllaDB's test_key_condition_expression.py
and test_gsi_composite_keys.py.
"""

from __future__ import annotations

from base64 import b64encode
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.expressions import request_clauses
from tablegate.adapters.dynamodb.expressions.key_conditions import (
    KeyTest,
    key_range,
    key_tests,
    parse_key_condition,
)
from tablegate.adapters.dynamodb.expressions.static_checks import Placeholders
from tablegate.adapters.dynamodb.wire.errors import ErrorTexts, ServiceError
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind, Value, decimal, text
from tests.support.tables import each_row

VALUES: dict[str, Any] = {
    ":p": {"S": "p"},
    ":s": {"S": "s"},
    ":t": {"S": "t"},
    ":n": {"N": "5"},
    ":b": {"B": "YQ=="},
    ":l": {"L": []},
    ":bool": {"BOOL": True},
    ":empty": {"S": ""},
    ":nothing": {"B": ""},
}
NAMES = {"#p": "p", "#dot": "a.b"}

P, S, N, B = (
    KeyColumn(name, kind)
    for name, kind in zip("psnb", (Kind.TEXT, Kind.TEXT, Kind.DECIMAL, Kind.BYTES), strict=True)
)
HASH_ONLY = KeySchema((P,))
SCHEMA = KeySchema((P,), (S,))


def read(expression: str, placeholders: Placeholders) -> tuple[KeyTest, ...]:
    return key_tests(parse_key_condition(expression, placeholders), placeholders)


def parsed(expression: str) -> tuple[KeyTest, ...]:
    return read(expression, Placeholders(NAMES, VALUES, ErrorTexts("Query")))


def found(expression: str, schema: KeySchema = SCHEMA, **values: Any) -> KeyRange:
    given = {**VALUES, **{f":{name}": value for name, value in values.items()}}
    return key_range(read(expression, Placeholders(NAMES, given, ErrorTexts("Query"))), schema)


def refusal(expression: str, schema: KeySchema = SCHEMA) -> str:
    with pytest.raises(ServiceError) as raised:
        key_range(parsed(expression), schema)
    assert raised.value.code == "ValidationException"
    return raised.value.message or ""


def has(keys: KeyRange, schema: KeySchema, *values: Value) -> bool:
    return keys.lower <= schema.position(values) < keys.upper


# Parsed form


@pytest.mark.parametrize(
    ("expression", "operator"),
    [
        ("s = :s", "EQ"),
        ("s < :s", "LT"),
        ("s <= :s", "LE"),
        ("s > :s", "GT"),
        ("s >= :s", "GE"),
        (":s = s", "EQ"),
        (":s < s", "GT"),  # the attribute may come second (test_key_condition_expression.py ..._order)
        (":s <= s", "GE"),
        (":s > s", "LT"),
        (":s >= s", "LE"),
    ],
)
def test_comparisons(expression: str, operator: str) -> None:
    assert parsed(f"p = :p and {expression}") == (
        KeyTest("p", "EQ", (text("p"),)),
        KeyTest("s", operator, (text("s"),)),
    )


def test_between_and_begins_with() -> None:
    assert parsed("s between :s and :t and #p = :p") == (
        KeyTest("s", "BETWEEN", (text("s"), text("t"))),
        KeyTest("p", "EQ", (text("p"),)),
    )
    assert parsed("begins_with(s, :s)") == (KeyTest("s", "BEGINS_WITH", (text("s"),)),)


def test_parentheses_may_stand_around_parts() -> None:
    assert found("(p = :p) and (s = :s)") == found("p = :p and s = :s") == found("(p = :p and s = :s)")


TEXTS = st.text(st.sampled_from("\x00as\uffff\U0010ffff"), max_size=3)
NUMBERS = st.decimals(
    allow_nan=False, allow_infinity=False, places=2, min_value=-1000, max_value=1000
) | st.integers(-5, 5).map(Decimal)
BYTES = st.binary(max_size=2) | st.sampled_from([b"\xff", b"\xff\xff", b"a\xff", b"a\x00"])


def _wire(value: Value) -> dict[str, str]:

    match value.kind:
        case Kind.TEXT:
            return {"S": value.data}
        case Kind.BYTES:
            return {"B": b64encode(value.data).decode()}
    return {"N": f"{value.data:f}"}


@given(st.data(), st.sampled_from("snb"))
@settings(deadline=None)
def test_a_range_has_exactly_the_keys_that_pass(data: st.DataObject, column: str) -> None:
    strategy = {"s": TEXTS.map(text), "n": NUMBERS.map(decimal), "b": BYTES.map(partial(Value, Kind.BYTES))}[
        column
    ]
    strategy = strategy.filter(lambda value: value.data not in ("", b""))
    low, high, key = data.draw(strategy), data.draw(strategy), data.draw(strategy)
    if _raw(high) < _raw(low):
        low, high = high, low
    schema = KeySchema((P,), ({"s": S, "n": N, "b": B}[column],))
    values = {"low": _wire(low), "high": _wire(high)}
    cases = {
        f"{column} = :low": _raw(key) == _raw(low),
        f"{column} < :low": _raw(key) < _raw(low),
        f"{column} <= :low": _raw(key) <= _raw(low),
        f"{column} > :low": _raw(key) > _raw(low),
        f"{column} >= :low": _raw(key) >= _raw(low),
        f"{column} between :low and :high": _raw(low) <= _raw(key) <= _raw(high),
    }
    if column != "n":
        cases[f"begins_with({column}, :low)"] = _raw(key).startswith(_raw(low))
    for expression, expected in cases.items():
        keys = found(f"p = :p and {expression}", schema, **values)
        assert has(keys, schema, text("p"), key) is expected, expression
        assert not has(keys, schema, text("q"), key)


def _raw(value: Value) -> Any:
    return value.data.encode() if value.kind is Kind.TEXT else value.data


def test_the_hash_key_alone_is_one_partition() -> None:
    keys = found("p = :p")
    assert has(keys, SCHEMA, text("p"), text("\x00"))
    assert has(keys, SCHEMA, text("p"), text("\U0010ffff"))
    assert not has(keys, SCHEMA, text("p\x00"), text("a"))


# Refused for what they are


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("p = :p or s = :s", "Invalid operator used in KeyConditionExpression: OR"),
        ("not p = :p", "Invalid operator used in KeyConditionExpression: NOT"),
        ("p in (:p, :s)", "Invalid operator used in KeyConditionExpression: IN"),
        ("p <> :p", "Invalid operator used in KeyConditionExpression: <>"),
        (
            "p = :p and attribute_exists(s)",
            "Invalid operator used in KeyConditionExpression: attribute_exists",
        ),
        ("contains(p, :p)", "Invalid operator used in KeyConditionExpression: contains"),
        ("attribute_type(p, :s)", None),  # refused as a condition already: no such type
        (
            "size(p) = :n",
            "Invalid KeyConditionExpression: KeyConditionExpressions cannot contain nested operations",
        ),
        (
            "p = :p and p = :s",
            "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key",
        ),
        (
            "p = :p and s > :s and s < :t",
            "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key",
        ),
    ],
)
def test_expressions_that_are_no_key_condition_are_refused(expression: str, said: str | None) -> None:
    assert said in (None, refusal(expression))
    if said is None:
        assert refusal(expression).startswith(
            "Invalid KeyConditionExpression: Invalid attribute type name found"
        )


IN_CONDITION = "Invalid condition in KeyConditionExpression: "


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("p = s", IN_CONDITION + "Multiple attribute names used in one condition"),
        ("p between :p and s", IN_CONDITION + "Multiple attribute names used in one condition"),
        ("begins_with(p, s)", IN_CONDITION + "Multiple attribute names used in one condition"),
        (":p = :s", IN_CONDITION + "No key attribute specified"),
        (
            ":p between p and s",
            IN_CONDITION + "BETWEEN operator must have the key attribute as its first operand",
        ),
        (
            "begins_with(:p, p)",
            IN_CONDITION + "begins_with operator must have the key attribute as its first operand",
        ),
        (
            "p.q = :p",
            "Invalid KeyConditionExpression: KeyConditionExpressions cannot have conditions on nested attributes",
        ),
        (
            "p[0] = :p",
            "Invalid KeyConditionExpression: KeyConditionExpressions cannot have conditions on nested attributes",
        ),
    ],
)
def test_operands_that_no_key_condition_has(expression: str, said: str) -> None:
    assert refusal(expression) == said


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "Invalid KeyConditionExpression: The expression can not be empty;"),
        ("p = :p,", 'Invalid KeyConditionExpression: Syntax error; token: ",", near: ":p,"'),
        (
            "p = :nix",
            (
                "Invalid KeyConditionExpression: An expression attribute value used in expression is not defined; "
                "attribute value: :nix"
            ),
        ),
        (
            "#nix = :p",
            (
                "Invalid KeyConditionExpression: An expression attribute name used in the document path is not defined; "
                "attribute name: #nix"
            ),
        ),
        (
            "name = :p",
            "Invalid KeyConditionExpression: Attribute name is a reserved keyword; reserved keyword: name",
        ),
        (
            "p = :p and s between :t and :s",
            (
                "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater than or equal to "
                "lower bound; lower bound operand: AttributeValue: {S:t}, upper bound operand: AttributeValue: {S:s}"
            ),
        ),
    ],
)
def test_the_grammar_is_that_of_conditions(expression: str, said: str) -> None:
    assert refusal(expression) == said


def test_a_name_with_a_dot_is_one_name() -> None:
    assert parsed("#dot = :p") == (KeyTest("a.b", "EQ", (text("p"),)),)


# Refused for what the key is


@each_row(
    "expression, schema, said",
    [
        ("s = :s", SCHEMA, "Query condition missed key schema element: p"),
        ("p = :p and x = :s", SCHEMA, "Query condition missed key schema element: s"),
        ("x = :p and s = :s", SCHEMA, "Query condition missed key schema element: p"),
        ("x = :p", HASH_ONLY, "Query condition missed key schema element: p"),
        ("p > :p", SCHEMA, "Query key condition not supported"),
        ("begins_with(p, :p)", HASH_ONLY, "Query key condition not supported"),
        ("p between :p and :s and s = :s", SCHEMA, "Query key condition not supported"),
        (
            "p = :n",
            SCHEMA,
            "One or more parameter values were invalid: Condition parameter type does not match schema type",
        ),
        (
            "p = :p and s > :n",
            SCHEMA,
            "One or more parameter values were invalid: Condition parameter type does not match schema type",
        ),
        (
            "p = :p and s = :bool",
            SCHEMA,
            "One or more parameter values were invalid: Condition parameter type does not match schema type",
        ),
        (
            "p = :empty",
            SCHEMA,
            (
                "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty "
                "string value. Key: p"
            ),
        ),
        (
            "p = :p and b = :nothing",
            KeySchema((P,), (B,)),
            (
                "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty "
                "binary value. Key: b"
            ),
        ),
        (
            "p = :p and s = :s and x = :t",
            SCHEMA,
            "The number of query conditions (3) exceeds the number of key attributes defined in the schema (2)",
        ),
        # test_gsi.py test_faux_range_key_in_keyconditions
        ("p = :p and s = :s", HASH_ONLY, "Query key condition not supported"),
    ],
)
def test_conditions_that_the_key_does_not_take(expression: str, schema: KeySchema, said: str) -> None:
    assert refusal(expression, schema) == said


# Keys of several attributes (test_gsi_composite_keys.py)

PARTS = KeySchema(
    (KeyColumn("h", Kind.TEXT), KeyColumn("i", Kind.DECIMAL)),
    (KeyColumn("a", Kind.TEXT), KeyColumn("b", Kind.DECIMAL), KeyColumn("c", Kind.TEXT)),
)
HEAD = "h = :p and i = :n"


@pytest.mark.parametrize(
    ("rest", "inside", "outside"),
    [
        ("", ("a", 1, "a"), None),
        (" and a = :s", ("s", 1, "z"), ("t", 1, "z")),
        (" and a < :s", ("r", 9, "z"), ("s", 9, "z")),
        (" and begins_with(a, :s)", ("sx", 9, "z"), ("t", 9, "z")),
        (" and a = :s and b > :n", ("s", 6, "a"), ("s", 5, "z")),
        (" and a = :s and b between :n and :n", ("s", 5, "a"), ("s", 6, "a")),
        (" and a = :s and b = :n and c <= :t", ("s", 5, "t"), ("s", 5, "u")),
        (" and c <= :t and b = :n and a = :s", ("s", 5, "t"), ("s", 5, "u")),
    ],
)
def test_ranges_of_a_key_of_several_attributes(
    rest: str, inside: tuple[str, int, str], outside: tuple[str, int, str] | None
) -> None:
    keys = found(HEAD + rest, PARTS)

    def is_in(key: tuple[str, int, str]) -> bool:
        return has(keys, PARTS, text("p"), decimal(5), text(key[0]), decimal(key[1]), text(key[2]))

    assert is_in(inside)
    assert outside is None or not is_in(outside)
    assert not has(keys, PARTS, text("p"), decimal(6), text("s"), decimal(5), text("t"))


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("h = :p", "HASH key attributes i must have equality conditions"),
        ("i = :n and a = :s", "HASH key attributes h must have equality conditions"),
        ("h > :p and i = :n", "HASH key attributes h must have equality conditions"),
        (
            HEAD + " and b = :n",
            (
                "RANGE key attributes a must have equality conditions specified in the query "
                "because a condition is present on key attribute b"
            ),
        ),
        (
            HEAD + " and a = :s and c = :t",
            (
                "RANGE key attributes b must have equality conditions specified in the query "
                "because a condition is present on key attribute c"
            ),
        ),
        (
            HEAD + " and a > :s and b = :n",
            (
                "RANGE key attributes a must have equality conditions specified in the query "
                "because a condition is present on key attribute b"
            ),
        ),
        (HEAD + " and x = :s", "Query condition missed key schema element: h"),
        (HEAD + " and a = :n", "Condition parameter type does not match schema type"),
    ],
)
def test_parts_come_from_the_left(expression: str, words: str) -> None:
    assert words in refusal(expression, PARTS)


# KeyConditions


def test_key_conditions_become_the_same_tests() -> None:
    conditions = {
        "p": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "p"}]},
        "s": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [{"S": "s"}, {"S": "t"}]},
    }
    assert request_clauses.legacy_key_conditions(conditions) == parsed("p = :p and s between :s and :t")
    conditions["s"] = {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "s"}]}
    assert request_clauses.legacy_key_conditions(conditions) == parsed("p = :p and begins_with(s, :s)")


@pytest.mark.parametrize("operator", ["NE", "IN", "CONTAINS", "NOT_CONTAINS", "NULL", "NOT_NULL"])
def test_operators_that_no_index_answers(operator: str) -> None:
    values = [] if "NULL" in operator else [{"S": "s"}]
    tests = request_clauses.legacy_key_conditions(
        {
            "p": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "p"}]},
            "s": {"ComparisonOperator": operator, "AttributeValueList": values},
        }
    )
    with pytest.raises(ServiceError, match="Attempted conditional constraint is not an indexable operation"):
        key_range(tests, SCHEMA)
