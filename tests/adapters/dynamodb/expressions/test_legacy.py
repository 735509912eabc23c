"""Parameters that predate expressions: Expected, filters, AttributeUpdates, AttributesToGet.

Sources: ScyllaDB's test_expected.py, test_query_filter.py, test_item.py, and dynalite's db/index.js. expression_rules.py
validates the arguments.
"""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.adapters.dynamodb.expressions import request_clauses
from tablegate.adapters.dynamodb.expressions.projections import parse_projection, project
from tablegate.adapters.dynamodb.expressions.static_checks import Placeholders
from tablegate.adapters.dynamodb.expressions.updates import creates_item
from tablegate.gateway.model.errors import BadOperand
from tablegate.gateway.model.expressions.evaluation import matches
from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    And,
    Attribute,
    Compare,
    Comparison,
    Exists,
    Literal,
    Not,
    Or,
)
from tablegate.gateway.model.expressions.updates import Add, EditContext, Remove, SetTo, Subtract, edit
from tablegate.gateway.model.expressions.updates import Literal as Constant
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, decimal, number_set, text
from tests.support.tables import each_row

ITEM: dict[str, Value] = {
    "p": text("p"),
    "s": text("dog"),
    "n": decimal(5),
    "b": Value(Kind.BYTES, b"dog"),
    "t": Value(Kind.BOOL, True),
    "null": Value(Kind.NULL, None),
    "l": Value(Kind.LIST, (decimal(1), text("x"))),
    "m": Value(Kind.MAP, {"s": text("dog")}),
    "ss": Value(Kind.TEXT_SET, frozenset({"dog", "cat"})),
    "ns": number_set({decimal(1).data, decimal(5).data}),
    "dot.ted": text("dog"),
}
ROW = Row(Position(b"p", b""), Contents.of_values(ITEM), 1)

Wire = dict[str, Any]


def meets(name: str, operator: str, *values: Wire) -> bool:
    condition: Wire = {"ComparisonOperator": operator}
    if values:
        condition["AttributeValueList"] = list(values)
    as_filter = matches(request_clauses.filter_condition({name: condition}), ROW)
    assert matches(request_clauses.expected_condition({name: condition}), ROW) is as_filter
    return as_filter


# Operators


@each_row(
    "name, operator, values, expected",
    [
        ("s", "EQ", [{"S": "dog"}], True),
        ("s", "EQ", [{"S": "Dog"}], False),
        ("n", "EQ", [{"N": "5.00"}], True),
        ("n", "EQ", [{"S": "5"}], False),
        ("nix", "EQ", [{"S": "dog"}], False),
        ("dot.ted", "EQ", [{"S": "dog"}], True),  # a name is never a path
        ("m.s", "EQ", [{"S": "dog"}], False),
        ("ss", "EQ", [{"SS": ["cat", "dog"]}], True),  # sets have no order
        ("l", "EQ", [{"L": [{"N": "1"}, {"S": "x"}]}], True),
        ("m", "EQ", [{"M": {"s": {"S": "dog"}}}], True),
        ("t", "EQ", [{"BOOL": True}], True),
        ("null", "EQ", [{"NULL": True}], True),
        # test_expected.py test_update_expected_1_ne: unlike types differ, and so does what is not there
        ("s", "NE", [{"S": "dog"}], False),
        ("s", "NE", [{"N": "5"}], True),
        ("nix", "NE", [{"S": "dog"}], True),
        ("n", "LT", [{"N": "6"}], True),
        ("n", "LT", [{"N": "5"}], False),
        ("n", "LE", [{"N": "5"}], True),
        ("n", "GT", [{"N": "4.9"}], True),
        ("n", "GE", [{"N": "5"}], True),
        ("n", "LT", [{"S": "z"}], False),
        ("s", "LT", [{"S": "e"}], True),
        ("b", "GT", [{"B": "ZA=="}], True),
        ("nix", "LT", [{"N": "6"}], False),
        ("n", "BETWEEN", [{"N": "5"}, {"N": "5"}], True),
        ("n", "BETWEEN", [{"N": "6"}, {"N": "7"}], False),
        ("s", "BETWEEN", [{"S": "a"}, {"S": "e"}], True),
        ("s", "BETWEEN", [{"N": "1"}, {"N": "2"}], False),
        ("nix", "BETWEEN", [{"N": "1"}, {"N": "2"}], False),
        ("s", "IN", [{"S": "cat"}, {"S": "dog"}], True),
        ("s", "IN", [{"S": "cat"}], False),
        ("nix", "IN", [{"S": "cat"}], False),
        ("s", "BEGINS_WITH", [{"S": "do"}], True),
        ("s", "BEGINS_WITH", [{"S": "og"}], False),
        ("b", "BEGINS_WITH", [{"B": "ZG8="}], True),
        ("n", "BEGINS_WITH", [{"S": "5"}], False),
        ("nix", "BEGINS_WITH", [{"S": "5"}], False),
        ("s", "CONTAINS", [{"S": "og"}], True),
        ("b", "CONTAINS", [{"B": "b2c="}], True),
        ("ss", "CONTAINS", [{"S": "cat"}], True),
        ("ss", "CONTAINS", [{"S": "ca"}], False),
        ("ns", "CONTAINS", [{"N": "5"}], True),
        ("l", "CONTAINS", [{"S": "x"}], True),
        ("l", "CONTAINS", [{"N": "1.0"}], True),
        ("n", "CONTAINS", [{"N": "5"}], False),
        ("nix", "CONTAINS", [{"S": "x"}], False),
        ("s", "NOT_CONTAINS", [{"S": "x"}], True),
        ("s", "NOT_CONTAINS", [{"S": "og"}], False),
        ("ss", "NOT_CONTAINS", [{"S": "ca"}], True),
        # test_expected.py test_update_expected_1_not_contains: true of other types, not of what is not there
        ("n", "NOT_CONTAINS", [{"S": "x"}], True),
        ("nix", "NOT_CONTAINS", [{"S": "x"}], False),
        ("nix", "NULL", [], True),
        ("null", "NULL", [], False),  # a NULL is there
        ("null", "NOT_NULL", [], True),
        ("nix", "NOT_NULL", [], False),
    ],
)
def test_operators(name: str, operator: str, values: list[Wire], expected: bool) -> None:
    assert meets(name, operator, *values) is expected


# Expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"Value": {"S": "dog"}}, True),
        ({"Value": {"S": "cat"}}, False),
        ({"Value": {"S": "dog"}, "Exists": True}, True),
        ({"Exists": False}, False),
        ({"ComparisonOperator": "NE", "Value": {"S": "cat"}}, True),
        ({"ComparisonOperator": "GE", "Value": {"S": "dog"}}, True),
        ({"ComparisonOperator": "NOT_NULL", "AttributeValueList": []}, True),
    ],
)
def test_forms_of_an_expectation(condition: Wire, expected: bool) -> None:
    assert matches(request_clauses.expected_condition({"s": condition}), ROW) is expected


def test_nothing_may_be_expected_of_a_new_item() -> None:
    predicate = request_clauses.expected_condition({"p": {"Exists": False}})
    assert predicate == Not(Exists(("p",)))
    assert matches(predicate, None)
    assert not matches(request_clauses.expected_condition({"p": {"Value": {"S": "p"}}}), None)


# ConditionalOperator


def test_several_conditions_are_joined() -> None:
    conditions = {
        "s": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "dog"}]},
        "n": {"ComparisonOperator": "EQ", "AttributeValueList": [{"N": "6"}]},
    }
    parts = (
        Compare(Attribute(("s",)), Comparison.EQ, Literal(text("dog"))),
        Compare(Attribute(("n",)), Comparison.EQ, Literal(decimal(6))),
    )
    for join in (request_clauses.expected_condition, request_clauses.filter_condition):
        assert join(conditions) == join(conditions, "AND") == And(parts)
        assert join(conditions, "OR") == Or(parts)
        assert join({"s": conditions["s"]}, "OR") == parts[0]
        assert join({}) is join({}, "OR") is ALWAYS


# AttributeUpdates


def updated(updates: Wire, item: dict[str, Value] | None = ITEM) -> dict[str, Value]:
    actions = request_clauses.attribute_updates(updates)
    contents = None if item is None else Contents.of_values(item)
    row = None if contents is None else Row(Position(b"p", b""), contents, 1)
    return dict(edit(row, actions, EditContext({"p": text("p")}, 1, stamped=False)).latest)


def test_actions() -> None:
    assert request_clauses.attribute_updates(
        {
            "a": {"Value": {"N": "1"}, "Action": "PUT"},
            "b": {"Value": {"N": "1"}},
            "c": {"Action": "DELETE"},
            "d": {"Action": "DELETE", "Value": {"SS": ["x"]}},
            "e.f": {"Action": "ADD", "Value": {"N": "1"}},
        }
    ) == (
        SetTo(("a",), Constant(decimal(1))),
        SetTo(("b",), Constant(decimal(1))),
        Remove(("c",)),
        Subtract(("d",), Value(Kind.TEXT_SET, frozenset({"x"}))),
        Add(("e.f",), decimal(1)),
    )


def test_attribute_updates_put_add_and_delete() -> None:
    after = updated(
        {
            "s": {"Value": {"N": "1"}},
            "n": {"Action": "ADD", "Value": {"N": "-7"}},
            "new": {"Action": "ADD", "Value": {"N": "7"}},
            "ss": {"Action": "ADD", "Value": {"SS": ["owl"]}},
            "ns": {"Action": "DELETE", "Value": {"NS": ["1", "5"]}},
            "t": {"Action": "DELETE"},
            "nix": {"Action": "DELETE"},
            # Not in UpdateExpression, but here ADD appends to lists and makes them (test_item.py test_update_item_add)
            "l": {"Action": "ADD", "Value": {"L": [{"S": "y"}]}},
            "list": {"Action": "ADD", "Value": {"L": [{"S": "y"}]}},
        }
    )
    assert after["s"] == decimal(1)
    assert after["n"] == decimal(-2)
    assert after["new"] == decimal(7)
    assert after["ss"].data == {"dog", "cat", "owl"}
    assert "ns" not in after  # no set is empty
    assert "t" not in after
    assert after["l"].data == (decimal(1), text("x"), text("y"))
    assert after["list"].data == (text("y"),)
    assert after["m"] == ITEM["m"]


@pytest.mark.parametrize(
    "updates",
    [
        {"s": {"Action": "ADD", "Value": {"N": "1"}}},
        {"ss": {"Action": "ADD", "Value": {"NS": ["1"]}}},
        {"ss": {"Action": "DELETE", "Value": {"NS": ["1"]}}},
        {"n": {"Action": "ADD", "Value": {"L": []}}},
    ],
)
def test_types_must_match(updates: Wire) -> None:
    with pytest.raises(BadOperand):
        updated(updates)
    assert request_clauses.update_mismatch().message == "Type mismatch for attribute to update"


@pytest.mark.parametrize(
    ("updates", "creates"),
    [
        ({"a": {"Value": {"N": "1"}}}, True),
        ({"a": {"Action": "ADD", "Value": {"N": "1"}}}, True),
        ({"a": {"Action": "DELETE"}}, False),
        ({"a": {"Action": "DELETE", "Value": {"SS": ["x"]}}}, False),
        ({}, True),
    ],
)
def test_updates_that_only_delete_make_no_item(updates: Wire, creates: bool) -> None:
    # test_item.py test_update_item_delete
    assert creates_item(request_clauses.attribute_updates(updates)) is creates


# AttributesToGet


def test_names_are_projected_and_are_no_paths() -> None:
    projection = request_clauses.attributes_to_get(["s", "dot.ted", "m.s", "nix"])
    assert project(ITEM, projection) == {"s": text("dog"), "dot.ted": text("dog")}
    same = parse_projection("s, #d, #m, nix", Placeholders({"#d": "dot.ted", "#m": "m.s"}, None))
    assert project(ITEM, same) == project(ITEM, projection)
