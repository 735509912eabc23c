"""Expressions that are read once for their texts and types of values come to what reading them anew does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.expressions import fast_expressions, request_clauses
from tablegate.adapters.dynamodb.expressions.fast_expressions import fast_read, fast_write
from tablegate.adapters.dynamodb.expressions.request_clauses import ReadClauses, WriteClauses
from tablegate.adapters.dynamodb.wire.call_context import Call
from tablegate.adapters.dynamodb.wire.errors import ServiceError

NAMES = {"#a": "a", "#b": "beta.x"}
paths = st.sampled_from(["a", "#a", "#b", "a.b", "c[1]", "#a.#b"])
slots = st.sampled_from([":x", ":y", ":z"])
values = st.sampled_from(
    [
        {"S": "x"}, {"S": "S"}, {"S": ""}, {"N": "1"}, {"N": "-2.50"}, {"B": "YQ=="}, {"BOOL": True}, {"NULL": True},
        {"L": [{"S": "x"}]}, {"M": {"k": {"N": "1"}}}, {"SS": ["a", "b"]}, {"NS": ["1"]}, {"BS": ["YQ=="]},
    ]
)  # fmt: skip
operands = st.recursive(
    paths | slots,
    lambda inner: st.one_of(
        st.builds("if_not_exists({}, {})".format, paths, inner),
        st.builds("list_append({}, {})".format, inner, inner),
    ),
    max_leaves=3,
)
updates = st.one_of(
    st.builds("SET {} = {}".format, paths, operands),
    st.builds("SET {} = {} + {}".format, paths, operands, slots),
    st.builds("SET {} = {} REMOVE {}".format, paths, slots, paths),
    st.builds("ADD {} {}".format, paths, slots),
    st.builds("DELETE {} {} SET {} = {}".format, paths, slots, paths, slots),
)
tests = st.one_of(
    st.builds("{} {} {}".format, paths | slots, st.sampled_from(["=", "<>", "<", ">="]), paths | slots),
    st.builds("{} BETWEEN {} AND {}".format, paths, slots, slots),
    st.builds("{} IN ({}, {})".format, paths, slots, slots),
    st.builds("attribute_exists({})".format, paths),
    st.builds("attribute_type({}, {})".format, paths, slots),
    st.builds("begins_with({}, {})".format, paths, slots),
    st.builds("contains({}, {})".format, paths, slots),
    st.builds("size({}) > {}".format, paths | slots, slots),
)
conditions = st.recursive(
    tests,
    lambda inner: st.one_of(
        st.builds("NOT ({})".format, inner),
        st.builds("({}) AND ({})".format, inner, inner),
        st.builds("({}) OR {}".format, inner, inner),
    ),
    max_leaves=3,
)
keys = st.one_of(
    st.builds("p = {}".format, slots),
    st.builds("p = {} AND s > {}".format, slots, slots),
    st.builds("s BETWEEN {} AND {} AND p = {}".format, slots, slots, slots),
    st.builds("begins_with(s, {}) AND #a = {}".format, slots, slots),
    st.builds("p = {} AND s > {} AND q = {}".format, slots, slots, slots),
)
CALLS = [
    Call("UpdateItem", {}, None, SimpleNamespace(settings=SimpleNamespace(message_style=style)))  # type: ignore[arg-type]
    for style in ("2026", "classic")
]


def used(request: dict[str, Any], wire: dict[str, Any]) -> dict[str, Any]:
    """The request with those placeholders that its expressions use; a repeated draw also leaves some out, or unused."""
    text = " ".join(request.values())
    placeholders = {
        "ExpressionAttributeNames": {name: told for name, told in NAMES.items() if name in text},
        "ExpressionAttributeValues": {name: value for name, value in wire.items() if name in text},
    }
    return request | {name: members for name, members in placeholders.items() if members}


def made(clauses: type[ReadClauses | WriteClauses], request: dict[str, Any]) -> list[Any]:
    """All that clauses say, or how they are refused, in each style."""
    answers: list[Any] = []
    for call in CALLS:
        try:
            found = clauses(call, request)
        except ServiceError as error:
            answers.append((error.code, error.message))
        else:
            answers.append({name: getattr(found, name) for name in clauses.__slots__})
    return answers


def both(clauses: type[ReadClauses | WriteClauses], request: dict[str, Any]) -> None:
    found = made(clauses, request)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_clauses, "_prepared_read", request_clauses._read_generally)
        patch.setattr(request_clauses, "_prepared_write", request_clauses._written_generally)
        assert found == made(clauses, request)


wires = st.fixed_dictionaries({":x": values, ":y": values}, optional={":z": values})


@given(updates, st.none() | conditions, wires)
def test_writes(update: str, condition: str | None, wire: dict[str, Any]) -> None:
    request = {"UpdateExpression": update}
    if condition is not None:
        request["ConditionExpression"] = condition
    both(WriteClauses, used(request, wire))
    both(WriteClauses, {**used(request, wire), "ExpressionAttributeValues": wire})


@given(keys, st.none() | conditions, st.none() | paths, wires)
def test_reads(key: str, condition: str | None, path: str | None, wire: dict[str, Any]) -> None:
    request = {"KeyConditionExpression": key}
    if condition is not None:
        request["FilterExpression"] = condition
    if path is not None:
        request["ProjectionExpression"] = path
    both(ReadClauses, used(request, wire))
    both(ReadClauses, {**used(request, wire), "ExpressionAttributeValues": wire})


@pytest.mark.fast_paths
def test_a_reading_is_kept_by_the_types_of_values() -> None:
    fast_expressions._write.cache_clear()
    update = {"UpdateExpression": "SET a = :x", "ExpressionAttributeNames": {}}
    for value in ({"S": "one"}, {"S": "two"}, {"N": "3"}):
        assert fast_write({**update, "ExpressionAttributeValues": {":x": value}}) is not None
    found = fast_expressions._write.cache_info()
    assert (found.hits, found.misses) == (1, 2)


def test_what_depends_on_values_is_left_to_the_general_way() -> None:
    for condition, wire in (
        ("a BETWEEN :x AND :y", {":x": {"N": "1"}, ":y": {"N": "2"}}),
        ("attribute_type(a, :x)", {":x": {"S": "S"}}),
        ("size(:x) > a", {":x": {"S": "S"}}),
    ):
        assert fast_write({"ConditionExpression": condition, "ExpressionAttributeValues": wire}) is None


def test_what_is_kept_is_bounded() -> None:
    """Of texts and names 1,024 characters, of placeholders 32: with one more of either nothing is kept."""
    head = "SET #n = :x, "
    for length, is_kept in ((1024 - 2, True), (1025 - 2, False)):
        path = "n" * (length - len(head) - len(" = :x") - 1)
        request = {
            "UpdateExpression": f"{head}{path} = :x",
            "ExpressionAttributeNames": {"#n": "b"},
            "ExpressionAttributeValues": {":x": {"S": "x"}},
        }
        assert (fast_write(request) is not None) is is_kept
    for number, is_kept in ((32, True), (33, False)):
        wire = {f":v{at}": {"N": "1"} for at in range(number)}
        text = " AND ".join(f"a > {name}" for name in wire)
        request = {"FilterExpression": text, "ExpressionAttributeValues": wire}
        assert (fast_read(request, 2, "2026") is not None) is is_kept
