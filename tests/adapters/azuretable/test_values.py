"""Values between JSON, the gateway, and how Azure sees the kinds of others."""

from __future__ import annotations

import base64
import math
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.azuretable import values
from tablegate.adapters.azuretable.values import (
    SPELLINGS,
    datetime_text,
    parse_datetime,
    read,
    timestamp_text,
    view,
)
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model.values.values import (
    FALSE,
    NULL,
    TRUE,
    Kind,
    Value,
    decimal,
    number_of_double,
    number_set,
    text,
)
from tests.support.numbers import DECIMALS
from tests.support.tables import each_row

GUID = "c9da6455-213d-42c9-9a79-3e9149a57833"
NEW_YEAR = 630822816000000000  # 2000-01-01 in ticks


@each_row(
    "wire, edm, value",
    [
        ("x", None, text("x")),
        ("x", "Edm.String", text("x")),
        ("", None, text("")),
        (True, None, TRUE),
        (False, "Edm.Boolean", FALSE),
        ("true", "Edm.Boolean", TRUE),
        ("False", "Edm.Boolean", FALSE),
        (1, None, Value(Kind.INT32, 1)),
        (-(2**31), None, Value(Kind.INT32, -(2**31))),
        (2**31 - 1, "Edm.Int32", Value(Kind.INT32, 2**31 - 1)),
        ("7", "Edm.Int32", Value(Kind.INT32, 7)),
        ("255", "Edm.Int64", Value(Kind.INT64, 255)),
        (255, "Edm.Int64", Value(Kind.INT64, 255)),
        (str(-(2**63)), "Edm.Int64", Value(Kind.INT64, -(2**63))),
        (1.5, None, Value(Kind.DOUBLE, 1.5)),
        (1, "Edm.Double", Value(Kind.DOUBLE, 1.0)),
        ("3.14", "Edm.Double", Value(Kind.DOUBLE, 3.14)),
        ("1E+3", "Edm.Double", Value(Kind.DOUBLE, 1000.0)),
        ("Infinity", "Edm.Double", Value(Kind.DOUBLE, math.inf)),
        ("-Infinity", "Edm.Double", Value(Kind.DOUBLE, -math.inf)),
        (GUID.upper(), "Edm.Guid", Value(Kind.GUID, UUID(GUID))),
        ("AAEC", "Edm.Binary", Value(Kind.BYTES, b"\x00\x01\x02")),
        ("", "Edm.Binary", Value(Kind.BYTES, b"")),
        ("2000-01-01T00:00:00Z", "Edm.DateTime", Value(Kind.DATETIME, NEW_YEAR)),
        ("2000-01-01T00:00:00", "Edm.DateTime", Value(Kind.DATETIME, NEW_YEAR)),
        ("2000-01-01", "Edm.DateTime", Value(Kind.DATETIME, NEW_YEAR)),
        ("2000-01-01T00:00:00.0000001Z", "Edm.DateTime", Value(Kind.DATETIME, NEW_YEAR + 1)),
        ("2000-01-01T02:00:00+02:00", "Edm.DateTime", Value(Kind.DATETIME, NEW_YEAR)),
        ("1999-12-31T19:30:00.5-04:30", "Edm.DateTime", Value(Kind.DATETIME, NEW_YEAR + 5_000_000)),
        (None, None, None),
        (None, "Edm.Guid", None),
    ],
)
def test_sent_values_are_read_by_their_type(wire: Any, edm: str | None, value: Value | None) -> None:
    assert read(wire, edm) == value


def test_nan_is_read_as_a_double() -> None:
    value = read("NaN", "Edm.Double")
    assert value is not None
    assert math.isnan(value.data)


@each_row(
    "wire, edm",
    [
        (2**31, None),
        (-(2**31) - 1, None),
        (2**31, "Edm.Int32"),
        (str(2**63), "Edm.Int64"),
        (1.5, "Edm.Int32"),
        (True, "Edm.Int32"),
        (True, "Edm.Double"),
        ("1e999", "Edm.Double"),
        (10**400, "Edm.Double"),
        ("nan", "Edm.Double"),
        ("0x10", "Edm.Int32"),
        ("\u0661", "Edm.Int32"),  # a digit, but not one of ours
        (1, "Edm.String"),
        ("yes", "Edm.Boolean"),
        (1, "Edm.Boolean"),
        ("not-a-guid", "Edm.Guid"),
        (GUID.replace("-", ""), "Edm.Guid"),
        ("AAE", "Edm.Binary"),
        ("AA EC", "Edm.Binary"),
        (5, "Edm.Binary"),
        ("1600-12-31T23:59:59.9999999Z", "Edm.DateTime"),
        ("9999-12-31T23:59:59.9999999-00:01", "Edm.DateTime"),
        ("2000-02-30T00:00:00Z", "Edm.DateTime"),
        ("2000-01-01T24:00:00Z", "Edm.DateTime"),
        ("yesterday", "Edm.DateTime"),
        (0, "Edm.DateTime"),
        ("x", "Edm.Decimal"),
        ("x", 5),
        ([], None),
        ({}, None),
        ([1], "Edm.String"),
    ],
)
def test_invalid_values_are_refused(wire: Any, edm: Any) -> None:
    with pytest.raises(ServiceError, match="InvalidInput"):
        read(wire, edm)


def test_dates_are_accepted_in_the_range_of_the_service() -> None:
    for moment in ("1601-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z"):
        value = read(moment, "Edm.DateTime")
        assert value is not None
        assert datetime_text(value.data) == moment


@pytest.mark.parametrize(("length", "fits"), [(32 * 1024, True), (32 * 1024 + 1, False)])
def test_a_string_longer_than_32_ki_characters_is_refused(length: int, fits: bool) -> None:
    for sent in ("x" * length, "é" * length, "🙂" * (length // 2) + "x" * (length % 2)):
        if fits:
            assert read(sent, None) == text(sent)
        else:
            with pytest.raises(ServiceError, match="PropertyValueTooLarge"):
                read(sent, None)


@pytest.mark.parametrize(("length", "fits"), [(64 * 1024, True), (64 * 1024 + 1, False)])
def test_a_binary_longer_than_64_kib_is_refused(length: int, fits: bool) -> None:
    sent = base64.b64encode(bytes(length)).decode()
    if fits:
        assert read(sent, "Edm.Binary") == Value(Kind.BYTES, bytes(length))
    else:
        with pytest.raises(ServiceError, match="PropertyValueTooLarge"):
            read(sent, "Edm.Binary")


_own = st.one_of(
    st.text("ab\u00e9🙂 ", max_size=5).map(text),
    st.booleans().map(lambda truth: TRUE if truth else FALSE),
    st.integers(-(2**31), 2**31 - 1).map(lambda number: Value(Kind.INT32, number)),
    st.integers(-(2**63), 2**63 - 1).map(lambda number: Value(Kind.INT64, number)),
    st.floats(allow_nan=False).map(lambda number: Value(Kind.DOUBLE, number)),
    st.binary(max_size=9).map(lambda data: Value(Kind.BYTES, data)),
    st.uuids().map(lambda guid: Value(Kind.GUID, guid)),
    st.integers(504911232000000000, 3155378975999999999).map(lambda ticks: Value(Kind.DATETIME, ticks)),
)


@given(_own)
def test_every_kind_of_azures_own_is_read_back_from_its_spelling(value: Value) -> None:
    assert view(value) is value
    edm, spell = SPELLINGS[value.kind]
    wire = spell(value.data)
    assert read(wire, edm if isinstance(wire, str) else None) == value


@each_row(
    "stored, seen",
    [
        (decimal(1), Value(Kind.INT32, 1)),
        (decimal("1.0"), Value(Kind.INT32, 1)),
        (decimal(2**31), Value(Kind.INT64, 2**31)),
        (decimal(-(2**63)), Value(Kind.INT64, -(2**63))),
        (decimal(2**63), Value(Kind.DOUBLE, float(2**63))),
        (decimal(10**19), Value(Kind.DOUBLE, 1e19)),
        (decimal(10**23), text("100000000000000000000000")),  # the nearest Double is 99999999999999991611392
        (decimal(2**63 + 1), text("9223372036854775809")),
        (decimal("0.1"), Value(Kind.DOUBLE, 0.1)),
        (decimal("0.1000000000000000000001"), text("0.1000000000000000000001")),
        (decimal("1E+125"), Value(Kind.DOUBLE, 1e125)),
        (decimal("12345678901234567890123456789012345678"), text("12345678901234567890123456789012345678")),
        (NULL, NULL),
        (Value(Kind.LIST, (decimal(1), text("a"))), text('{"L":[{"N":"1"},{"S":"a"}]}')),
        (Value(Kind.MAP, {"a": TRUE}), text('{"M":{"a":{"BOOL":true}}}')),
        (Value(Kind.TEXT_SET, frozenset({"b", "a"})), text('{"SS":["a","b"]}')),
        (number_set({Decimal(2)}), text('{"NS":["2"]}')),
        (Value(Kind.BYTES_SET, frozenset({b"\x00"})), text('{"BS":["AA=="]}')),
    ],
)
def test_kinds_of_other_dialects_are_shown_exactly_or_as_text(stored: Value, seen: Value) -> None:
    assert view(stored) == seen


@given(DECIMALS)
def test_no_number_is_ever_rounded(number: Decimal) -> None:
    seen = view(Value(Kind.DECIMAL, number))
    shown = number_of_double(seen.data) if seen.kind is Kind.DOUBLE else Decimal(seen.data)
    assert shown == number


@pytest.mark.parametrize(
    ("moment", "written", "stamped"),
    [
        ("2000-01-01T00:00:00.5Z", "2000-01-01T00:00:00.5Z", "2000-01-01T00:00:00.5000000Z"),
        ("2000-01-01T00:00:00Z", "2000-01-01T00:00:00Z", "2000-01-01T00:00:00.0000000Z"),
        ("2000-01-01T10:20:30.1234567Z", "2000-01-01T10:20:30.1234567Z", "2000-01-01T10:20:30.1234567Z"),
    ],
)
def test_moments_as_text(moment: str, written: str, stamped: str) -> None:
    ticks = parse_datetime(moment)
    assert ticks is not None
    assert datetime_text(ticks) == written
    assert timestamp_text(ticks) == stamped


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (text("abc"), 10),
        (text("🙂"), 8),
        (Value(Kind.BYTES, b"abc"), 7),
        (Value(Kind.INT32, 1), 4),
        (Value(Kind.INT64, 1), 8),
        (Value(Kind.DOUBLE, 1.0), 8),
        (Value(Kind.DATETIME, 1), 8),
        (Value(Kind.GUID, UUID(GUID)), 16),
        (TRUE, 1),
    ],
)
def test_size_towards_the_limit_of_an_entity(value: Value, size: int) -> None:
    assert values.size_bytes(value) == size
