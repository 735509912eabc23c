"""The lengths of values, on both sides of each limit (Alibaba Cloud help, Tablestore, "General limits")."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tablegate.adapters.tablestore.values import lengths
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError
from tablegate.gateway.model.values.values import Kind, Value


@pytest.mark.parametrize(
    ("check", "limit"),
    [(lengths.check_key_value, 1024), (lengths.check_value, 2 * 1024 * 1024)],
)
@pytest.mark.parametrize(
    ("kind", "data"), [(Kind.TEXT, "x"), (Kind.TEXT, "ü"), (Kind.TEXT, "🙂"), (Kind.BYTES, b"\0")]
)
def test_the_longest_value_passes_and_one_byte_more_does_not(
    check: Callable[[str, Value], None], limit: int, kind: Kind, data: str | bytes
) -> None:
    size = len(data.encode() if isinstance(data, str) else data)
    longest = data * (limit // size)
    check("c", Value(kind, longest))
    longer = longest + ("x" if isinstance(data, str) else b"x")  # type: ignore[operator]
    with pytest.raises(ServiceError) as caught:
        check("c", Value(kind, longer))
    assert f"MaxLength:{limit} with CurrentLength:{limit + 1}." in str(caught.value.message)


def test_a_request_as_a_whole() -> None:
    lengths.check_request(limits.WRITE_MAX_BYTES, "BatchWriteRow")
    with pytest.raises(ServiceError):
        lengths.check_request(limits.WRITE_MAX_BYTES + 1, "BatchWriteRow")
