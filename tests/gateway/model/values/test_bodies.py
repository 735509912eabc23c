"""Decoding a body returns the encoded values, for every kind. DynamoDB's own kinds have DynamoDB's JSON form."""

from __future__ import annotations

import uuid
from decimal import Decimal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.rows import Cell, Contents
from tablegate.gateway.model.values.values import (
    NULL,
    TRUE,
    Kind,
    Value,
    decimal,
    number_set,
    number_size_bytes,
    size_bytes,
    text,
)
from tests.support.numbers import DECIMALS

texts = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=6)
scalars = (
    texts.map(text)
    | DECIMALS.map(decimal)
    | st.binary(max_size=5).map(lambda data: Value(Kind.BYTES, data))
    | st.booleans().map(lambda data: Value(Kind.BOOL, data))
    | st.just(NULL)
    | st.frozensets(texts, min_size=1, max_size=3).map(lambda data: Value(Kind.TEXT_SET, data))
    | st.frozensets(DECIMALS, min_size=1, max_size=3).map(number_set)
    | st.frozensets(st.binary(max_size=3), min_size=1, max_size=3).map(
        lambda data: Value(Kind.BYTES_SET, data)
    )
)
native = st.recursive(
    scalars,
    lambda children: (
        st.lists(children, max_size=3).map(lambda data: Value(Kind.LIST, tuple(data)))
        | st.dictionaries(texts, children, max_size=3).map(lambda data: Value(Kind.MAP, data))
    ),
    max_leaves=8,
)
foreign = (
    st.integers(-(2**31), 2**31 - 1).map(lambda data: Value(Kind.INT32, data))
    | st.integers(-(2**63), 2**63 - 1).map(lambda data: Value(Kind.INT64, data))
    | st.floats(allow_nan=False).map(lambda data: Value(Kind.DOUBLE, data))
    | st.integers(0, 3_155_378_975_999_999_999).map(lambda data: Value(Kind.DATETIME, data))
    | st.uuids().map(lambda data: Value(Kind.GUID, data))
)


@given(st.dictionaries(texts, native | foreign, max_size=4))
def test_a_body_decodes_to_its_values(values: dict[str, Value]) -> None:
    contents = Contents.of_values(values)
    stored = Contents(contents.body, contents.kinds, contents.size_bytes)
    assert stored.latest == values
    assert stored.is_native == all(value.kind.value not in _FOREIGN for value in values.values())


_FOREIGN = {"INT32", "INT64", "DOUBLE", "DATETIME", "GUID"}


@given(st.dictionaries(texts, st.lists(native | foreign, min_size=1, max_size=3), max_size=3))
def test_versions_of_cells_decode_with_their_stamps(history: dict[str, list[Value]]) -> None:
    cells = {
        name: tuple(Cell(value, 1000 - age) for age, value in enumerate(versions))
        for name, versions in history.items()
    }
    contents = Contents.of_cells({}, cells)
    assert Contents(contents.body, contents.kinds, contents.size_bytes).cells(0) == cells


def test_native_bodies_are_dynamodb_json() -> None:
    values = {
        "id": text("a"),
        "n": decimal("1E+3"),
        "b": Value(Kind.BYTES, b"\x00\xff"),
        "l": Value(Kind.LIST, (TRUE, NULL)),
        "ns": number_set({Decimal(2), Decimal("-1.50")}),
    }
    assert orjson.loads(bodies.encode(values)) == {
        "id": {"S": "a"},
        "n": {"N": "1000"},
        "b": {"B": "AP8="},
        "l": {"L": [{"BOOL": True}, {"NULL": True}]},
        "ns": {"NS": ["-1.5", "2"]},
    }


def test_nan_and_infinities_are_kept() -> None:
    values = {"inf": Value(Kind.DOUBLE, float("-inf")), "nan": Value(Kind.DOUBLE, float("nan"))}
    decoded = bodies.decode(bodies.encode(values))
    assert decoded["inf"].data == float("-inf")
    assert decoded["nan"].data != decoded["nan"].data


@pytest.mark.parametrize(
    ("number", "size"),
    # 1 + a byte for every two significant digits on each side of the point + 1 if negative: docs/protocols/dynamodb.md rule 25.
    [
        ("0", 1),
        ("1", 2),
        ("-1", 3),
        ("100", 2),
        ("12", 2),
        ("123", 3),
        ("0.5", 2),
        ("1.5", 3),
        ("0.0001", 2),
        ("-12.34", 4),
    ],
)
def test_billed_size_of_numbers(number: str, size: int) -> None:
    assert number_size_bytes(Decimal(number)) == size


def test_billed_size_of_documents() -> None:
    """3 for the document and 1 for each element, besides names and contents (docs/protocols/dynamodb.md rule 25)."""
    assert size_bytes(Value(Kind.LIST, (text("ab"), TRUE))) == 3 + (2 + 1) + (1 + 1)
    assert size_bytes(Value(Kind.MAP, {"k": text("ab")})) == 3 + (1 + 2 + 1)


def test_identifiers_keep_their_kind() -> None:
    identifier = uuid.UUID(int=7)
    assert bodies.decode(bodies.encode({"g": Value(Kind.GUID, identifier)})) == {
        "g": Value(Kind.GUID, identifier)
    }
