"""Checksums of stored rows: computed when rows are encoded, verified when they are read.

A checksum covers the key, the billed size, the kinds and the body. It does not cover the id of the table, so that SQL
can copy rows between tables, nor the time of expiry, which is computed again before a row is deleted for it.
`modified_at` is checked against a second copy of it, `checksum_at`.

Servers of releases before 0014 may write to the same database (docs/operate/upgrade.md). They leave `checksum` and
`checksum_at` unchanged and store a later `modified_at`. Such a row counts as a row without a checksum.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from xxhash import xxh3_64_intdigest

from tablegate.gateway.model.errors import DataCorrupted

CHECKSUM = (
    "CASE WHEN r.checksum_at = r.modified_at THEN r.checksum WHEN r.checksum_at > r.modified_at THEN -2 END"
)
"""The checksum that a row must match. NULL: it has none. -2: no row matches it."""
ROW_COLUMNS = f"r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, {CHECKSUM}, r.body"
"""The columns in which rows leave the database, with the alias `r`. Each column costs about 80 ns for each row."""
ROW_WIDTH = 9

are_verified = True
"""False if this process verifies no checksums (--no-verify-checksums)."""


_joined = b"\0".join


def checksum_of(
    partition: bytes, sort: bytes, full_key: bytes | None, size_bytes: int, kinds: bytes | None, body: bytes
) -> int:
    """Return the checksum of a stored row: 63 bits, which fit an integer of every database.

    Return -1 if a damaged row has values of other types.
    """
    try:
        return (
            xxh3_64_intdigest(_joined((partition, sort, full_key or b"", kinds or b"", body)), size_bytes)
            >> 1
        )
    except (TypeError, OverflowError):
        return -1


def verify(partition: bytes, rows: Iterable[tuple[Any, ...]]) -> None:
    """Raise DataCorrupted if a row of a partition does not match its checksum.

    Rows are (sort, size_bytes, kinds, checksum, body, modified_at) and have no full key.
    """
    sort = b""
    try:
        for (
            sort,
            size_bytes,
            kinds,
            checksum,
            body,
            _,
        ) in rows:  # checksum_of inlined, to save a call for each row
            if checksum is not None:
                data = _joined((partition, sort, b"", kinds or b"", body))
                if xxh3_64_intdigest(data, size_bytes) >> 1 != checksum:
                    raise mismatch(partition, sort)
    except (TypeError, OverflowError):
        raise mismatch(partition, sort) from None


def mismatch(partition: bytes, sort: bytes) -> DataCorrupted:
    """Return the error for a row that does not match its checksum."""
    return DataCorrupted("a stored row does not match its checksum", (partition, sort))


def digest_of(partition: object, sort: object) -> str:
    """Return a short digest that identifies a row without disclosing its key."""
    return hashlib.sha256(repr((partition, sort)).encode()).hexdigest()[:16]
