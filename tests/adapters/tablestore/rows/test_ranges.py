"""GetRange and BulkExport: bounds, directions, pages, capacity, and the row matrix."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tablegate.adapters.tablestore.rows import operations
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.plainbuffer import Bound, crc8, decode_row, decode_value
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import Refused, TableStoreService, plain, row, rows_of, units_of
from tests.adapters.tablestore.filter_messages import single

MIN, MAX = Bound.INF_MIN, Bound.INF_MAX
ALL = ({"p": MIN, "i": MIN}, {"p": MAX, "i": MAX})
BACK = (ALL[1], ALL[0])
KEYS = [("a", -5), ("a", 0), ("a", 7), ("b", 1), ("c", 2)]


@pytest.fixture
def table(service: TableStoreService) -> TableStoreService:
    """Rows (a,-5) (a,0) (a,7) (b,1) (c,2), each with n: its place."""
    service.create("t", ("p", messages.STRING), ("i", messages.INTEGER))
    for place, (p, i) in enumerate(KEYS):
        service.put({"p": p, "i": i}, {"n": place})
    return service


def found(answer: Any) -> list[int]:
    return [each["n"] for each in rows_of(answer) if each is not None]


@pytest.mark.parametrize(
    ("start", "end", "places"),
    [
        (*ALL, [0, 1, 2, 3, 4]),
        ({"p": "a", "i": MIN}, {"p": "a", "i": MAX}, [0, 1, 2]),
        ({"p": "a", "i": 0}, {"p": "b", "i": 1}, [1, 2]),
        ({"p": "a", "i": 0}, {"p": "b", "i": 2}, [1, 2, 3]),
        ({"p": "a", "i": 1}, {"p": "a", "i": 7}, []),
        ({"p": "a", "i": MAX}, {"p": "c", "i": MIN}, [3]),
        ({"p": "aa", "i": 0}, {"p": MAX, "i": 0}, [3, 4]),
    ],
)
def test_a_range_is_read_forward(table: TableStoreService, start: Any, end: Any, places: list[int]) -> None:
    answer = table.range(start, end)
    assert found(answer) == places
    assert not answer.HasField("next_start_primary_key")
    if not places:
        assert answer.rows == b""


@pytest.mark.parametrize(
    ("start", "end", "places"),
    [
        (*BACK, [4, 3, 2, 1, 0]),
        ({"p": "b", "i": 1}, {"p": "a", "i": 0}, [3, 2]),
        ({"p": "b", "i": 0}, {"p": "a", "i": MIN}, [2, 1, 0]),
        ({"p": "a", "i": MAX}, {"p": "a", "i": -5}, [2, 1]),
    ],
)
def test_backward_from_the_start_inclusive_to_the_end_exclusive(
    table: TableStoreService, start: Any, end: Any, places: list[int]
) -> None:
    assert found(table.range(start, end, direction=messages.BACKWARD)) == places


@pytest.mark.parametrize(
    ("direction", "start", "end", "message"),
    [
        (messages.FORWARD, *BACK, "Begin key must less than end key in FORWARD"),
        (
            messages.FORWARD,
            {"p": "a", "i": 0},
            {"p": "a", "i": 0},
            "Begin key must less than end key in FORWARD",
        ),
        (messages.BACKWARD, *ALL, "Begin key must more than end key in BACKWARD"),
        (
            messages.BACKWARD,
            {"p": "a", "i": 0},
            {"p": "a", "i": 0},
            "Begin key must more than end key in BACKWARD",
        ),
    ],
)
def test_bounds_in_the_wrong_order(
    table: TableStoreService, direction: int, start: Any, end: Any, message: str
) -> None:
    with pytest.raises(Refused) as told:
        table.range(start, end, direction=direction)
    assert (told.value.status, told.value.code, told.value.message) == (400, "OTSParameterInvalid", message)


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"p": MIN}, "Validate PK size fail. Input: 1, Meta: 2."),
        ({"p": MIN, "j": MIN}, "Validate PK name fail. Input: j, Meta: i."),
        ({"p": MIN, "i": "x"}, "Validate PK type fail. Input: VT_STRING, Meta: VT_INTEGER."),
    ],
)
def test_bounds_that_do_not_fit(table: TableStoreService, start: Any, message: str) -> None:
    for bounds in ((start, ALL[1]), (ALL[0], start)):
        with pytest.raises(Refused) as told:
            table.range(*bounds)
        assert (told.value.code, told.value.message) == ("OTSInvalidPK", message)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 4, 5, 6])
def test_pages_follow_each_other(table: TableStoreService, reverse: bool, limit: int) -> None:
    start, end = BACK if reverse else ALL
    direction = messages.BACKWARD if reverse else messages.FORWARD
    places: list[int] = []
    while True:
        answer = table.range(start, end, direction=direction, limit=limit)
        assert len(found(answer)) <= limit
        places += found(answer)
        if not answer.HasField("next_start_primary_key"):
            break
        start = plain(decode_row(answer.next_start_primary_key))  # type: ignore[assignment]
    assert places == ([4, 3, 2, 1, 0] if reverse else [0, 1, 2, 3, 4])


def test_the_next_key_is_that_of_the_first_row_not_read(table: TableStoreService) -> None:
    answer = table.range(*ALL, limit=2)
    assert plain(decode_row(answer.next_start_primary_key)) == {"p": "a", "i": 7}


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_positive(table: TableStoreService, limit: int) -> None:
    with pytest.raises(Refused) as told:
        table.range(*ALL, limit=limit)
    assert told.value.message == "The limit must be greater than 0."


def test_a_range_must_say_which_versions(table: TableStoreService) -> None:
    with pytest.raises(Refused) as told:
        table.range(*ALL, max_versions=None)
    assert told.value.message == "No version condition is specified."
    with pytest.raises(Refused):
        table.range(*ALL, max_versions=1, time_range=messages.TimeRange(specific_time=5))


def test_a_limit_counts_the_rows_that_pass_the_filter(table: TableStoreService) -> None:
    """The API page on GetRange: `limit` is the most rows that are returned (docs/explain/differences.md: no known recording)."""
    answer = table.range(*ALL, filter=single("n", messages.CT_GREATER_EQUAL, 2), limit=2)
    assert found(answer) == [2, 3]
    assert plain(decode_row(answer.next_start_primary_key)) == {"p": "c", "i": 2}


def test_a_filtered_page_may_be_empty_and_go_on(
    table: TableStoreService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RANGE_ROWS_MAX", 2)
    answer = table.range(*ALL, filter=single("n", messages.CT_EQUAL, 4))
    assert answer.rows == b""
    assert plain(decode_row(answer.next_start_primary_key)) == {"p": "a", "i": 7}


def test_a_full_scan_of_ten_thousand_rows_takes_two_pages(service: TableStoreService) -> None:
    service.create()
    for start in range(0, 10_000, 200):
        request = messages.BatchWriteRowRequest()
        part = request.tables.add(table_name="t")
        for number in range(start, start + 200):
            part.rows.add(
                type=messages.PUT,
                row_change=row({"pk": number}, {"n": number}),
                condition=messages.Condition(row_existence=messages.IGNORE),
            )
        service.ask("BatchWriteRow", request)
    bounds: Any = ({"pk": MIN}, {"pk": MAX})
    first = service.range(*bounds, filter=single("n", messages.CT_EQUAL, 9_999))
    assert plain(decode_row(first.next_start_primary_key)) == {"pk": 5_000}
    second = service.range({"pk": 5_000}, bounds[1], filter=single("n", messages.CT_EQUAL, 9_999))
    assert found(second) == [9_999]
    assert not second.HasField("next_start_primary_key")
    assert units_of(first) == (-(-5_000 * (2 + 8 + 1 + 8) // 4096), 0)


def test_a_page_ends_at_four_megabytes(service: TableStoreService) -> None:
    service.create()
    for number in range(5):
        service.put({"pk": number}, {"n": number, "blob": b"x" * 1_000_000})
    answer = service.range({"pk": MIN}, {"pk": MAX})
    assert found(answer) == [0, 1, 2, 3]
    assert plain(decode_row(answer.next_start_primary_key)) == {"pk": 4}
    assert found(service.range({"pk": MIN}, {"pk": MAX}, columns_to_get=["n"])) == [0, 1, 2, 3, 4]


def test_every_scanned_row_is_charged_for_its_key_and_its_selected_cells(service: TableStoreService) -> None:
    service.create()
    for number in range(3):
        service.put({"pk": number}, {"a": b"x" * 4_000, "b": b"x" * 4_000})
    bounds: Any = ({"pk": MIN}, {"pk": MAX})
    assert units_of(service.range(*bounds)) == (-(-3 * (10 + 8_002) // 4096), 0)
    assert units_of(service.range(*bounds, columns_to_get=["a"])) == (3, 0)
    assert units_of(service.range(*bounds, filter=single("a", messages.CT_EQUAL, "no"))) == (6, 0)
    assert units_of(service.range(*bounds, columns_to_get=["c"])) == (1, 0)


def test_unrequested_key_columns_can_be_omitted(table: TableStoreService) -> None:
    answer = table.range(*ALL, columns_to_get=["i", "n"], limit=1, return_entire_primary_keys=False)
    assert rows_of(answer) == [{"i": -5, "n": 0}]
    answer = table.range(*ALL, columns_to_get=["i", "n"], limit=1)
    assert rows_of(answer) == [{"p": "a", "i": -5, "n": 0}]


def test_the_answer_says_how_rows_are_packed(table: TableStoreService) -> None:
    answer = table.range(*ALL)
    assert answer.HasField("data_block_type")
    assert answer.data_block_type == messages.DBT_PLAIN_BUFFER
    assert answer.HasField("compress_type")


# The matrix


def unpacked(data: bytes, has_whole_keys: bool = True) -> tuple[list[str], list[list[Any]]]:
    """Return the names and values of a matrix, read as in docs/protocols/table-store.md section 3.6 and as in Java.

    Java reads rows from data_offset until only the checksum is left.
    """
    magic, data_offset, option_offset, keys, attributes = struct.unpack_from("<iiiii", data)
    assert magic == operations.MAGIC
    names, at = [], 20
    for _ in range(keys + attributes):
        (length,) = struct.unpack_from("<h", data, at)
        names.append(data[at + 2 : at + 2 + length].decode())
        at += 2 + length
    assert at == option_offset
    assert data[at : at + 3] == bytes((0x0A, has_whole_keys, 0x03))
    (count,) = struct.unpack_from("<i", data, at + 3)
    assert data_offset == at + 7
    at = data_offset
    lines = []
    while at < len(data) - 2:
        assert data[at] == 2
        at += 1
        line = []
        for _ in names:
            code = data[at]
            width = {0: 9, 1: 9, 2: 2, 6: 1}.get(code) or 5 + struct.unpack_from("<I", data, at + 1)[0]
            value = None if code == 6 else decode_value(data[at : at + width])
            line.append(None if value is None else value.data)  # type: ignore[union-attr]
            at += width
        lines.append(line)
    assert len(lines) == count
    assert data[at : at + 1] == b"\x01"
    assert data[at + 1 :] == bytes((crc8(data[: at + 1]),))
    return names, lines


MATRIX = messages.DBT_SIMPLE_ROW_MATRIX


def test_rows_as_a_matrix(table: TableStoreService) -> None:
    table.put({"p": "b", "i": 1}, {"other": b"\x00", "n": 1.5})
    answer = table.range(
        {"p": "a", "i": 7},
        {"p": "b", "i": MAX},
        columns_to_get=["n", "other", "p"],
        data_block_type_hint=MATRIX,
    )
    assert answer.data_block_type == MATRIX
    assert unpacked(answer.rows) == (["p", "i", "n", "other"], [["a", 7, 2, None], ["b", 1, 1.5, b"\x00"]])


def test_a_matrix_needs_columns(table: TableStoreService) -> None:
    with pytest.raises(Refused) as told:
        table.range(*ALL, data_block_type_hint=MATRIX)
    assert told.value.message == "DBT_SIMPLE_ROW_MATRIX need at least one column to get."
    with pytest.raises(Refused) as told:
        export(table)
    assert told.value.message == "DBT_SIMPLE_ROW_MATRIX need at least one column to get."


def export(table: TableStoreService, **members: Any) -> Any:
    return table.call(
        "BulkExport",
        table_name="t",
        inclusive_start_primary_key=row(ALL[0]),
        exclusive_end_primary_key=row(ALL[1]),
        **members,
    )


def test_bulk_export_returns_a_matrix_of_values(table: TableStoreService) -> None:
    answer = export(table, columns_to_get=["n"])
    assert unpacked(answer.rows, has_whole_keys=False) == (["n"], [[0], [1], [2], [3], [4]])
    assert units_of(answer) == (0, 0)
    size = answer.consumed.capacity_data_size
    assert (size.read_size, size.write_size) == (5 * (1 + 1 + 1 + 8 + 1 + 8), 0)
    names, lines = unpacked(export(table, columns_to_get=["n", "i", "p"]).rows)
    assert (names, lines[4]) == (["p", "i", "n"], ["c", 2, 4])
    plain_buffer = export(
        table,
        data_block_type_hint=messages.DBT_PLAIN_BUFFER,
        filter=single("n", messages.CT_GREATER_THAN, 2),
    )
    assert found(plain_buffer) == [3, 4]
