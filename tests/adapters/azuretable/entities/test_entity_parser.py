"""Entities that clients send: the fast parser gives the same results as the general one."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.azuretable import values
from tablegate.adapters.azuretable.entities import entity_parser
from tablegate.adapters.azuretable.entities.entity_parser import parse_entity, parse_object
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model.values.rows import FOREIGN_KINDS, Contents
from tests.support.tables import each_row

texts = st.lists(
    st.sampled_from(['"', "\\", '":', "@", "é", "😀", "\n", "a", "b", "{", "}", ","]), max_size=5
).map("".join)
numbers = (
    st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**31), 2**31)
)
wires = texts | numbers | st.booleans() | st.none() | st.just([]) | st.just({}) | st.just({"a": "b"})
property_names = st.sampled_from(
    ["PartitionKey", "RowKey", "A", "B", "Größe", "my_x002D_attr", "odata.etag", "a b", "Timestamp"]
)
annotations = st.sampled_from(
    ["Edm.Int64", "Edm.Double", "Edm.String", "Edm.Guid", "Edm.Binary", "Edm.DateTime", "x"]
)


@st.composite
def objects(draw: st.DrawFn) -> bytes:
    """JSON as clients write it, at times with a name twice, at times broken."""
    parts = []
    for name, wire in draw(st.lists(st.tuples(property_names, wires), max_size=6)):
        dump: Any = json.dumps if draw(st.booleans()) else lambda it: json.dumps(it, ensure_ascii=False)
        parts.append(f"{dump(name)}:{draw(st.sampled_from(['', ' ']))}{dump(wire)}")
        if draw(st.integers(0, 3)) == 0:
            parts.append(f"{dump(name + '@odata.type')}:{dump(draw(annotations))}")
    text = "{" + ",".join(parts) + "}"
    return text.replace(
        draw(st.sampled_from(["\0"] * 5 + ["a", "1", "}"])),
        draw(st.sampled_from(["", "\\ud83d", "NaN", "\\u0022"])),
    ).encode()


def carefully(body: bytes) -> Any:
    """The members by the general reader."""
    try:
        members = parse_object(body)
    except ServiceError as error:
        return error.code
    found = dict(members)
    return found if len(found) == len(members) else "DuplicatePropertiesSpecified"


def read(body: bytes) -> str | None:
    """The entity in a body, None where it is refused."""
    try:
        return repr(parse_entity(body))
    except ServiceError:
        return None


@given(objects())
def test_members_are_the_values_that_were_read(body: bytes) -> None:
    try:
        entity = parse_entity(body)
    except ServiceError:
        return
    found = carefully(body)
    expected = {}
    for name, wire in found.items():
        attribute, _ = entity_parser._attribute(name)
        if (
            attribute is not None
            and (value := values.read(wire, found.get(name + "@odata.type"))) is not None
        ):
            expected[attribute] = value
    contents = Contents.of_values(expected)
    assert orjson.dumps(entity.members) == contents.body
    assert entity.size_bytes == contents.size_bytes
    assert (None if entity.is_native else FOREIGN_KINDS) == contents.kinds
    assert repr(entity.attributes) == repr(expected)


def test_a_byte_order_mark_and_spaces_surround_an_object() -> None:
    assert parse_object(b'\xef\xbb\xbf \t\r\n{"A": 1} \n') == [("A", 1)]


@each_row(
    "body, code",
    [
        (b'{"A":1,"A":1}', "DuplicatePropertiesSpecified"),
        (b'{"A":"\\"","A":"x"}', "DuplicatePropertiesSpecified"),
        (b'{"A":"\\\\","A":"x"}', "DuplicatePropertiesSpecified"),
        (b'{"A":"x","\\u0041":"x"}', "DuplicatePropertiesSpecified"),
        (b'{"A":99999999999999999999}', "InvalidInput"),
        (b'{"A":-9223372036854775809}', "InvalidInput"),
        (b'{"A":NaN}', "InvalidInput"),
        (b'{"A":1e999}', "InvalidInput"),
        (b'{"A":"\\ud83d"}', "InvalidInput"),
        (b'{"A":[]}', "InvalidInput"),
        (b'{"a b":[]}', "InvalidInput"),
        (b'{"a b":null}', "PropertyNameInvalid"),
        (b'{"%s":null}' % (b"a" * 256), "PropertyNameTooLong"),
        (b'{"a b":1}', "PropertyNameInvalid"),
        (b'{"A":1}{}', "InvalidInput"),
        (b'{"A":1}\xc2\xa0', "InvalidInput"),
        (b"[]", "InvalidInput"),
        (b"", "InvalidInput"),
    ],
)
def test_refusals(body: bytes, code: str) -> None:
    with pytest.raises(ServiceError) as caught:
        parse_entity(body)
    assert caught.value.code == code


def test_a_byte_order_mark_and_annotations_with_objects_are_passed_over() -> None:
    assert parse_entity(b'\xef\xbb\xbf{"A":"x","odata.more":{"B":"y"}}').members == {"A": {"S": "x"}}


def test_nulls_and_annotations_are_passed_over_in_any_number() -> None:
    members = [b'"a%d":null,"a%d@odata.type":"Edm.Int64"' % (number, number) for number in range(2000)]
    assert parse_entity(b'{"%s":null,"A":"x",%s}' % (b"a" * 255, b",".join(members))).members == {
        "A": {"S": "x"}
    }


@pytest.mark.parametrize(("nested", "code"), [(0, None), (1, "InvalidInput")])
def test_nodes_are_counted_outside_of_texts(nested: int, code: str | None) -> None:
    """The entity, its two commas, the list and, for n objects in it, 2n - 1. Nodes inside strings do not count."""
    text = b'"B":"' + b'{[\\\\{[,\\"{[' * 2000 + b'"'
    objects = (limits.JSON_NODES_MAX - 4) // 2 + nested
    body = b'{"A":"x",%s,"odata.more":[%s]}' % (text, b",".join([b"{}"] * objects))
    if code is None:
        assert parse_entity(body).members["A"] == {"S": "x"}
    else:
        with pytest.raises(ServiceError, match=code):
            parse_entity(body)
