"""Fields of type JSON. Source: "JSON" (search indexes, October 2026), and TestFieldSchema of the Java SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search.documents import ARRAY_MAX
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import (
    Searches,
    between,
    bool_of,
    by_field,
    exists,
    field,
    keys_of,
    match_all,
    nested,
    term,
)

OBJECT, NESTED = 1, 2
KEYWORD, LONG, TEXT = messages.KEYWORD, messages.LONG, messages.TEXT


def json_field(name: str, json_type: int, *fields: messages.FieldSchema) -> messages.FieldSchema:
    return field(name, messages.JSON, json_type=json_type, field_schemas=fields)


def user(json_type: int) -> messages.FieldSchema:
    names = json_field("address", OBJECT, field("city", KEYWORD), field("code", LONG))
    return json_field("user", json_type, field("name", KEYWORD), field("age", LONG), names)


@pytest.fixture
def table(service: TableStoreService) -> Searches:
    return Searches(service)


def fill(table: Searches, json_type: int) -> None:
    table.create(user(json_type))
    documents: list[Any] = [
        {"name": "ann", "age": 30, "address": {"city": "berlin", "code": 1}, "other": "x"},
        [{"name": "ann", "age": 20}, {"name": "bob", "age": 40, "address": {"city": "paris"}}],
        {"name": ["ann", "cid"], "age": "30", "address": [{"city": "rome"}, {"city": None}, "no object"]},
        "text",
    ]
    for key, document in enumerate(documents):
        table.service.put({"pk": key}, {"user": json.dumps(document)})
    table.service.put({"pk": 4}, {"user": "no json"})
    table.service.put({"pk": 5}, {"user": 5})
    table.catch_up()


def test_the_members_of_an_object_are_fields(table: Searches) -> None:
    fill(table, OBJECT)
    assert table.find(term("user.name", "ann")) == [0, 1, 2]
    assert table.find(term("user.address.city", "paris")) == [1]
    assert table.find(term("user.address.city", "rome")) == [2]
    assert table.find(between("user.age", 35)) == [1]
    assert table.find(exists("user.age")) == [0, 1]
    # Members of different objects match together.
    assert table.find(bool_of(must_queries=[term("user.name", "ann"), term("user.age", 40)])) == [1]
    by_age = table.search(exists("user.age"), sort=by_field("user.age"))
    assert keys_of(by_age) == [1, 0]


def test_nested_objects_match_one_by_one(table: Searches) -> None:
    fill(table, NESTED)
    assert table.find(nested("user", term("user.name", "ann"))) == [0, 1, 2]
    both = bool_of(must_queries=[term("user.name", "ann"), term("user.age", 40)])
    assert table.find(nested("user", both)) == []
    assert table.find(nested("user", term("user.address.city", "paris"))) == [1]
    assert table.find(term("user.name", "ann")) == []


def test_objects_can_have_nested_objects(table: Searches) -> None:
    table.create(
        json_field(
            "o", OBJECT, json_field("n", NESTED, field("a", KEYWORD), field("b", LONG)), field("t", TEXT)
        )
    )
    pairs = [{"a": "x", "b": 1}, {"a": "y", "b": 2}]
    table.service.put({"pk": 1}, {"o": json.dumps({"n": pairs, "t": ["red tea", "green"]})})
    table.catch_up()
    assert table.find(nested("o.n", bool_of(must_queries=[term("o.n.a", "x"), term("o.n.b", 1)]))) == [1]
    assert table.find(nested("o.n", bool_of(must_queries=[term("o.n.a", "x"), term("o.n.b", 2)]))) == []
    assert table.find(term("o.t", "green")) == [1]


def test_a_description_has_the_json_type(table: Searches) -> None:
    table.create(user(OBJECT))
    described = table.service.call("DescribeSearchIndex", table_name="t", index_name="i").schema
    [found] = described.field_schemas
    assert (found.field_type, found.json_type) == (messages.JSON, OBJECT)
    assert [each.field_name for each in found.field_schemas] == ["name", "age", "address"]
    columns = messages.ColumnsToGet(return_type=messages.RETURN_ALL_FROM_INDEX)
    table.service.put({"pk": 1}, {"user": "{}", "more": 1})
    table.catch_up()
    [row] = table.search(match_all(), columns=columns).rows
    assert b"user" in row and b"more" not in row


def test_an_index_with_nested_json_has_no_order(table: Searches) -> None:
    table.create(user(NESTED))
    described = table.service.call("DescribeSearchIndex", table_name="t", index_name="i").schema
    assert not described.index_sort.sorter


def test_more_values_than_an_array_has_are_left_out(table: Searches) -> None:
    table.create(user(OBJECT))
    for key, number in enumerate((ARRAY_MAX, ARRAY_MAX + 1)):
        table.service.put({"pk": key}, {"user": json.dumps([{"name": "ann"}] * number)})
    table.catch_up()
    assert table.find(term("user.name", "ann")) == [0]


def depth(number: int) -> messages.FieldSchema:
    inner = field("k", KEYWORD)
    for _ in range(number):
        inner = json_field("o", OBJECT, inner)
    return inner


@pytest.mark.parametrize(
    "refused",
    [
        json_field("o", OBJECT),
        json_field("o", 0, field("k", KEYWORD)),
        json_field("o", 3, field("k", KEYWORD)),
        json_field("o", OBJECT, field("k", KEYWORD), field("k", LONG)),
        json_field("o", OBJECT, field("k", KEYWORD, is_virtual_field=True, source_field_names=["s"])),
        json_field(
            "o", OBJECT, field("v", messages.VECTOR, vector_options=messages.VectorOptions(dimension=2))
        ),
        depth(limits.NESTED_DEPTH_MAX + 1),
        field("o", messages.FLATTENED),
    ],
    ids=["empty", "untyped", "unknown", "duplicate", "virtual", "vector", "deep", "flattened"],
)
def test_refused_fields(table: Searches, refused: messages.FieldSchema) -> None:
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        table.create(refused)


def test_the_deepest_objects(table: Searches) -> None:
    table.create(depth(limits.NESTED_DEPTH_MAX))
