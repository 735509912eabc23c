"""The end of a GetRange page, to the byte and to the second, and its read units.

Source: API reference, *GetRange*. A response ends at 5,000 rows or 4 MB of scanned data, and the next key is that of
the first row not read. Its units count the keys and the read columns of all rows in the range, including rows that the
filter removes, by 4 KB and rounded up. The limit of five seconds is tablegate's (limits.py).
"""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.plainbuffer import Bound, decode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import TableStoreService, plain, rows_of, units_of
from tests.adapters.tablestore.filter_messages import single

MEGABYTE = 1024 * 1024
ALL = ({"pk": Bound.INF_MIN}, {"pk": Bound.INF_MAX})
BACK = (ALL[1], ALL[0])
KEY_BYTES = len("pk") + 8


@pytest.fixture
def table(service: TableStoreService) -> TableStoreService:
    service.create()
    return service


def fill(service: TableStoreService, *sizes: int) -> None:
    """Put rows of this many bytes each, including the key, with columns a and b."""
    for number, size in enumerate(sizes):
        rest = size - KEY_BYTES - len("a") - len("b")
        service.put({"pk": number}, {"a": "x" * (rest // 2), "b": "x" * (rest - rest // 2)})


def keys(answer: Any) -> list[int]:
    return [each["pk"] for each in rows_of(answer) if each is not None]


def next_key(answer: Any) -> Any:
    found = plain(decode_row(answer.next_start_primary_key)) if answer.next_start_primary_key else None
    return None if found is None else found["pk"]


def ways() -> list[dict[str, Any]]:
    """Return three kinds of read: whole rows, which are read in bulk, named columns, and rows that pass a filter."""
    return [{}, {"columns_to_get": ["a", "b"]}, {"filter": passing()}]


def passing() -> bytes:
    """A filter that holds for every row here."""
    return single("none", messages.CT_EQUAL, "x", if_missing=True)


@pytest.mark.parametrize("way", range(3))
@pytest.mark.parametrize("bounds", [ALL, BACK])
def test_a_page_has_4_mb_exactly_and_no_byte_more(table: TableStoreService, way: int, bounds: Any) -> None:
    fill(table, *[MEGABYTE] * 4, 100)
    direction = messages.FORWARD if bounds is ALL else messages.BACKWARD
    more = ways()[way]
    if bounds is BACK:
        table.delete({"pk": 4})
        table.put({"pk": -1}, {"a": "x"})
    order = [0, 1, 2, 3] if bounds is ALL else [3, 2, 1, 0]
    answer = table.range(*bounds, direction=direction, **more)
    assert keys(answer) == order
    assert next_key(answer) == (4 if bounds is ALL else -1)
    assert units_of(answer) == (4 * MEGABYTE // 4096, 0)
    fill(table, MEGABYTE + 1)
    answer = table.range(*bounds, direction=direction, **more)
    assert keys(answer) == order[:3]
    assert next_key(answer) == order[3]


def test_a_row_of_more_than_a_page_is_a_page(table: TableStoreService) -> None:
    """Or a range would never come to its end: two columns of 2 MB, and the key besides."""
    table.put({"pk": 0}, {"a": "x" * (2 * MEGABYTE - 100)})
    table.update({"pk": 0}, {"b": "x" * (2 * MEGABYTE)})
    table.put({"pk": 1}, {"a": "x"})
    table.update({"pk": 0}, {"c": "x" * 200})
    answer = table.range(*ALL)
    assert (keys(answer), next_key(answer)) == ([0], 1)


@pytest.mark.parametrize(("last", "expected"), [(0, 1), (1, 2)])
def test_a_range_is_charged_for_the_columns_that_are_read_and_not_for_whole_rows(
    table: TableStoreService, last: int, expected: int
) -> None:
    """The keys and `a` of four rows fill a page of 4,096 bytes, or exceed it by one byte. No request reads `big`."""
    for number in range(4):
        size = 1024 - KEY_BYTES - len("a") + (last if number == 3 else 0)
        table.put({"pk": number}, {"a": "x" * size, "big": "y" * 50_000})
    assert units_of(table.range(*ALL, columns_to_get=["a"])) == (expected, 0)
    assert units_of(table.range(*BACK, columns_to_get=["a"], direction=messages.BACKWARD)) == (expected, 0)
    whole = 4096 + last + 4 * (len("big") + 50_000)
    assert units_of(table.range(*ALL)) == (-(-whole // 4096), 0)
    assert units_of(table.range(*ALL, end_column="b")) == (expected, 0)


@pytest.mark.parametrize(("last", "expected"), [(0, 1), (1, 2)])
def test_a_range_is_charged_for_rows_that_the_filter_keeps_back(
    table: TableStoreService, last: int, expected: int
) -> None:
    for number in range(4):
        size = 1024 - KEY_BYTES - len("a") + (last if number == 3 else 0)
        table.put({"pk": number}, {"a": "x" * size})
    answer = table.range(*ALL, filter=single("a", messages.CT_EQUAL, "no"))
    assert (keys(answer), units_of(answer)) == ([], (expected, 0))


def test_a_row_without_the_column_that_is_read_costs_its_key(table: TableStoreService) -> None:
    """410 keys of 10 bytes are 4,100 bytes."""
    for number in range(410):
        table.put({"pk": number}, {"b": "y" * 100})
    answer = table.range(*ALL, columns_to_get=["a"])
    assert (keys(answer), units_of(answer)) == ([], (2, 0))
    assert units_of(table.range({"pk": 1}, ALL[1], columns_to_get=["a"])) == (1, 0)


@pytest.mark.parametrize("way", range(3))
def test_a_page_ends_when_its_time_is_over_and_goes_on_from_there(
    table: TableStoreService, clock_of_pages: Any, way: int
) -> None:
    fill(table, *[100] * 200)
    more = ways()[way]
    assert len(keys(table.range(*ALL, **more))) == 200
    clock_of_pages.step = 5.01
    answer = table.range(*ALL, **more)
    assert keys(answer) == [0]
    assert next_key(answer) == 1
    clock_of_pages.step = 0.005
    assert len(keys(table.range(*ALL, **more))) == 200
