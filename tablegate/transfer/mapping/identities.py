"""The identity of a row under any key schema, and the exact detection of rows that have one key in the target.

An identity is the texts of the partition columns and of the sort columns. Escapes of a mapping are removed, so that a row
and its copy have the same identity.

Rows of a service have different keys, and a mapping that keeps keys keeps them different. All other rows are checked:
lines of a file can repeat a key, and conversions of keys are not trusted. A copy keeps the keys in its job file, so that
it can be resumed (copying/job.py). Lint keeps them here, in a temporary file of bounded memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from enum import Enum

from tablegate.gateway.model.values.composites import composite_text, text_of
from tablegate.gateway.model.values.keys import KeySchema, Position
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.endpoint import Endpoint, Service
from tablegate.transfer.mapping.mapping import KEY_ESCAPES, Mapping, MappingOptions

Identity = tuple[str, str]
"""(text of the partition columns, text of the sort columns)"""


def identifier(
    service: Service, schema: KeySchema, options: MappingOptions
) -> Callable[[Sequence[Value]], Identity]:
    """Return a function from the key values of a row, in the schema's order, to its identity."""
    width = len(schema.partition)
    escapes = KEY_ESCAPES.get(service) if options.escape_keys else None
    read = [
        escapes.unspelled
        if escapes is not None and [column.kind for column in columns] == [Kind.TEXT]
        else None
        for columns in (schema.partition, schema.sort)
    ]

    def identity(values: Sequence[Value]) -> Identity:
        partition, sort = composite_text(values[:width]), composite_text(values[width:])
        return (
            partition if read[0] is None else read[0](partition),
            sort if read[1] is None else read[1](sort),
        )

    def of_pair(values: Sequence[Value]) -> Identity:
        return text_of(values[0]), text_of(values[1])

    return of_pair if width == 1 and len(schema.sort) == 1 and read == [None, None] else identity


def identity_bytes(identity: Identity) -> bytes:
    """Return the identity as bytes that no other identity has."""
    partition, sort = identity[0].encode(), identity[1].encode()
    return len(partition).to_bytes(4, "big") + partition + len(sort).to_bytes(4, "big") + sort


class Duplicates(Enum):
    """The user's choice for several rows with one key in the target. The value is its name on the command line."""

    FAIL = "fail"
    """End with an error."""
    LAST = "last"
    """Keep the row that is read last, and count the others."""


def may_repeat_keys(source: Endpoint, mapping: Mapping) -> bool:
    """True if two rows of the source could have one key in the target, so that keys must be checked."""
    return source.repeats_keys or not mapping.keeps_keys


def packed(position: Position) -> bytes:
    """Return a position as one byte string, different for each position."""
    return len(position.partition).to_bytes(4, "big") + position.partition + position.sort


class SeenKeys:
    """The keys that were seen so far, in a temporary SQLite file. The caller serializes calls."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", check_same_thread=False)  # "": a temporary file
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE keys (key BLOB PRIMARY KEY) WITHOUT ROWID")

    def repeated(self, positions: Sequence[Position]) -> list[bool]:
        """Add positions. Return for each one True if it was seen before."""
        with self._database:
            return [
                not self._database.execute("INSERT OR IGNORE INTO keys VALUES (?)", (packed(each),)).rowcount
                for each in positions
            ]

    def close(self) -> None:
        """Close and remove the file."""
        self._database.close()
