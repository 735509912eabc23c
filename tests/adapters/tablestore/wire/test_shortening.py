"""Serialized messages are cut to what a request may have, and no legal message is changed."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from google.protobuf.message import Message

from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.adapters.tablestore.wire import limits, parsing
from tablegate.adapters.tablestore.wire.errors import ServiceError
from tablegate.adapters.tablestore.wire.parsing import TooManyFields, parse, shorten_fields
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.support.tables import each_row

MANY = 1_000_000


def framed(number: int, content: bytes) -> bytes:
    return parsing._frame(number << 3 | 2, content)


def counted(message: Message) -> int:
    """The fields of a message that have been parsed, with those of the messages in it."""
    count = 0
    for descriptor, value in message.ListFields():
        for each in value if descriptor.label == descriptor.LABEL_REPEATED else [value]:
            count += 1 + (counted(each) if isinstance(each, Message) else 0)
    return count


LARGEST = (limits.BATCH_GET_ROWS_MAX + 1) * (parsing._MOST_FIELDS + 1)
DENSE: dict[str, tuple[type[Message], bytes]] = {
    "tables to get": (messages.BatchGetRowRequest, framed(1, b"") * MANY),
    "tables to write": (messages.BatchWriteRowRequest, framed(1, b"") * MANY),
    "rows of a table": (messages.BatchWriteRowRequest, framed(1, framed(2, b"") * MANY)),
    "rows of many tables": (messages.BatchWriteRowRequest, framed(1, framed(2, b"") * 10_000) * 100),
    "keys of a table": (messages.BatchGetRowRequest, framed(1, framed(2, b"") * MANY)),
    "columns of tables": (messages.BatchGetRowRequest, framed(1, framed(4, b"") * 10_000) * 1000),
    "columns": (messages.GetRowRequest, framed(3, b"") * MANY),
    "rows of an import": (messages.BulkImportRequest, framed(2, b"") * MANY),
    "indexes": (messages.CreateTableRequest, framed(7, b"") * MANY),
    "indexes of the table": (messages.CreateTableRequest, framed(1, framed(4, b"") * MANY)),
    "keys": (messages.CreateTableRequest, framed(1, framed(2, b"") * MANY)),
    "partitions": (messages.CreateTableRequest, framed(4, b"") * MANY),
    "the same again": (messages.GetRowRequest, framed(1, b"a") * MANY),
    "numbers": (messages.GetRowRequest, b"\x28\x01" * MANY),
    "unknown fields": (messages.GetRowRequest, framed(99, b"") * MANY),
    "parts of a message": (messages.PutRowRequest, framed(3, b"") * MANY),
}


@each_row("name", DENSE)
def test_fields_that_no_request_has_are_not_parsed(name: str) -> None:
    kind, data = DENSE[name]
    message = kind()
    with contextlib.suppress(TooManyFields):
        message.MergeFromString(shorten_fields(data, kind.DESCRIPTOR))  # type: ignore[arg-type]
    assert counted(message) <= LARGEST
    with pytest.raises(ServiceError):
        parse(kind, data, "the message")


def test_the_largest_valid_request_is_not_shortened() -> None:
    columns = [f"column{number}" for number in range(limits.COLUMNS_MAX)]
    get: Any = messages.BatchGetRowRequest()
    write: Any = messages.BatchWriteRowRequest()
    for number in range(limits.BATCH_GET_ROWS_MAX):
        table = get.tables.add(table_name=f"t{number}", columns_to_get=columns, max_versions=1)
        table.primary_key.append(b"k" * 100)
    for number in range(limits.BATCH_WRITE_ROWS_MAX):
        table = write.tables.add(table_name=f"t{number}")
        row = table.rows.add(type=messages.PUT, row_change=b"r" * 20_000)
        row.condition.row_existence = messages.IGNORE
        row.return_content.return_column_names.extend(columns)
    for message in (get, write):
        data = message.SerializeToString()
        assert len(data) > 1_000_000
        assert shorten_fields(data, message.DESCRIPTOR) is data


@each_row("operation", OPERATIONS)
@each_row("data", [b"\x0b" * 70_000, b"\xff" * 70_000, b"\x0a\xff\xff\x7f" + bytes(66_000), bytes(70_000)])
def test_bytes_that_are_no_message_are_refused(operation: str, data: bytes) -> None:
    with pytest.raises(ServiceError):
        parse(OPERATIONS[operation].request, data, "the message")
