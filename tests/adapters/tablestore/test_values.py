"""The lengths of values, on both sides of each limit (Alibaba Cloud help, Tablestore, "General limits")."""

from __future__ import annotations

import pytest

from tablegate.adapters.tablestore.values import check_length
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError
from tablegate.gateway.model.values.values import Kind, Value


@pytest.mark.parametrize("limit", [limits.KEY_VALUE_MAX_BYTES, limits.VALUE_MAX_BYTES])
@pytest.mark.parametrize(
    ("kind", "data"), [(Kind.TEXT, "x"), (Kind.TEXT, "ü"), (Kind.TEXT, "🙂"), (Kind.BYTES, b"\0")]
)
def test_the_longest_value_passes_and_one_byte_more_does_not(
    limit: int, kind: Kind, data: str | bytes
) -> None:
    size = len(data.encode() if isinstance(data, str) else data)
    longest = data * (limit // size)
    check_length("attribute", "c", Value(kind, longest), limit)
    longer = longest + ("x" if isinstance(data, str) else b"x")  # type: ignore[operator]
    with pytest.raises(ServiceError) as caught:
        check_length("attribute", "c", Value(kind, longer), limit)
    assert f"MaxLength:{limit} with CurrentLength:{limit + 1}." in caught.value.message


def test_the_limits_are_those_of_the_service() -> None:
    assert (limits.KEY_VALUE_MAX_BYTES, limits.VALUE_MAX_BYTES) == (1024, 2 * 1024 * 1024)
