"""The rows that a copy has rejected, which a comparison can except (`verify --except-rejects`).

A row is excepted only while it is as the file of rejects has it. A row that was changed after the copy is a difference.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from tablegate.transfer.endpoints.endpoint import AnyRow, UnreadableRow
from tablegate.transfer.errors import TransferError


class RejectedRows:
    """The rejected rows of one table, by digests of their contents."""

    def __init__(self, digests: frozenset[bytes] = frozenset()) -> None:
        self._digests = digests

    def __len__(self) -> int:
        return len(self._digests)

    def __contains__(self, row: AnyRow) -> bool:
        return bool(self._digests) and _digest(orjson.loads(_contents(row))) in self._digests


def read_rejected_rows(path: Path, table: str) -> RejectedRows:
    """Return the rows of a table in a file of rejects. None if there is no file, because copy removes an empty one.

    `table`: the address of the table as the copy stores it. Raises TransferError if the file has rows of others only.
    """
    if not path.exists():
        return RejectedRows()
    digests, others = set(), set()
    for name, row in _lines(path):
        if name == table:
            digests.add(_digest(row))
        else:
            others.add(name)
    if others and not digests:
        raise TransferError(f"{path} has no rejected rows of {table}, but of {', '.join(sorted(others)[:3])}")
    return RejectedRows(frozenset(digests))


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield (table, row) of each line. Raises TransferError."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                document = orjson.loads(line)
                yield document["table"], document["row"]
            except (ValueError, KeyError, TypeError):
                raise TransferError(f"{path}: line {number} is no rejected row of `tablegate copy`") from None


def _contents(row: AnyRow) -> bytes:
    return row.wire if isinstance(row, UnreadableRow) else row.body


def _digest(document: Any) -> bytes:
    return hashlib.blake2b(orjson.dumps(document, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
