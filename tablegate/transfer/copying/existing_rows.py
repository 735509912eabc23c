"""Rows that a target has before a copy: they are counted, and refused, deleted or kept."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any

from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.endpoint import Endpoint
from tablegate.transfer.errors import AccessRefused, BadAddress, RequestRefused, TransferError
from tablegate.transfer.mapping.mapping import Mapping

COUNTED_ROWS = 10_000
"""Maximum number of rows that are counted. Reading more could take hours."""


class IfExists(Enum):
    """The user's choice for a target that has rows. The value is its name on the command line."""

    FAIL = "fail"
    REPLACE = "replace"
    """Delete all its rows first. A file is replaced when the copy is complete."""
    APPEND = "append"
    """Keep its rows, except those that have the key of a copied row."""


class ExistingRows:
    """The rows of a target before a copy.

    `number` is at most COUNTED_ROWS + 1, None if there is no table or file, or if its rows may not be read.
    """

    def __init__(self, target: Endpoint) -> None:
        """Count the rows. Raises TransferError."""
        self._target = target
        self._refusal: TransferError | None = None
        self.number: int | None = None
        try:
            self.number = target.count_existing(COUNTED_ROWS + 1)
        except (AccessRefused, RequestRefused) as error:
            self._refusal = error

    def require_allowed(self, choice: IfExists) -> str:
        """Return a sentence about the rows, "" if there are none. Raises TransferError if the copy must not begin."""
        is_file = not self._target.takes_changes
        if self._refusal is not None:
            words = f"{self._refusal}. The rows of the target cannot be counted"
            if choice is not IfExists.APPEND:
                raise TransferError(
                    f"{words}. Allow a scan, or use --if-exists append without knowing their number"
                )
            return f"{words}, and stay. Rows with the same key are replaced"
        if self.number is None or not (self.number or is_file):
            return ""
        words = f"{self._target.shown} exists already with {self._shown_number}"
        match choice:
            case IfExists.REPLACE:
                when = "which is replaced when the copy is complete" if is_file else "which are deleted first"
                return f"{words}, {when}"
            case IfExists.APPEND if not is_file:
                return f"{words}, which stay. Rows with the same key are replaced"
            case IfExists.APPEND:
                raise TransferError(
                    f"{words}. Rows cannot be appended to a file. Name another file, or use --if-exists replace"
                )
            case _ if is_file:
                raise TransferError(
                    f"{words}. Name another file, remove it, or replace it with --if-exists replace"
                )
            case _:
                raise TransferError(
                    f"{words}. Use --if-exists append to keep them (rows with the same key are replaced), or"
                    " --if-exists replace to delete them first"
                )

    @property
    def known(self) -> int:
        """The number of rows, 1 if they cannot be counted."""
        return 1 if self._refusal is not None else self.number or 0

    @property
    def _shown_number(self) -> str:
        if self.number == 1:
            return "1 row"
        if self.number is not None and self.number <= COUNTED_ROWS:
            return f"{self.number:,} rows"
        about = self._target.describe().rows or 0
        return f"more than {COUNTED_ROWS:,} rows" + (f" (about {about:,})" if about > COUNTED_ROWS else "")


_KEY_DATA: dict[Kind, Callable[[], Any]] = {
    Kind.TEXT: lambda: secrets.token_hex(16),
    Kind.BYTES: lambda: secrets.token_bytes(16),
    Kind.DECIMAL: lambda: Decimal(secrets.randbits(62)),
    Kind.INT64: lambda: secrets.randbits(62),
}
"""Random data of each kind that key columns have."""


def require_other_table(source: Endpoint, target: Endpoint, mapping: Mapping) -> None:
    """Raise BadAddress if the target is the source under another address. Its rows must not be deleted.

    Equal rows are no evidence, because the target may have an older copy. So a row with a random key is written at the
    target, and read at the source. No existing row is changed.
    """
    if not source.looks_up or not target.looks_up:
        return
    definition = source.describe()
    schema = definition.key_schema
    values = {column.name: Value(column.kind, _KEY_DATA[column.kind]()) for column in schema.columns}
    key = schema.key(values)
    contents = Contents.of_cells(values, {}) if definition.rules.stamped else Contents.of_values(values)
    row, target_key = mapping.map(Row(key.position, contents, 0)).row, mapping.key(key)
    if row is None or target_key is None:
        return
    try:
        is_same = not target.write([row]) and source.get([key])[0] is not None
    finally:
        target.delete([target_key])
    if is_same:
        raise BadAddress(f"{source.shown} and {target.shown} are the same table")
