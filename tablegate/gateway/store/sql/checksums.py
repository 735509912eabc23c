"""Checksums of stored rows: computed when rows are encoded, verified when they are read.

A checksum covers the key, the time of the last write, the billed size, the kinds and the body. It does not cover the id
of the table, so that SQL can copy rows between tables, nor the time of expiry, which is computed again before a row is
deleted for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from xxhash import xxh3_64_intdigest

from tablegate.gateway.model.errors import DataCorrupted

ROW_COLUMNS = "r.partition, r.sort, r.full_key, r.modified_at, r.expires_at_ms, r.size_bytes, r.kinds, r.checksum, r.body"
"""The columns in which rows leave the database, with the alias `r`. Each column costs about 80 ns for each row."""
ROW_WIDTH = 9

are_verified = True
"""False if this process verifies no checksums (--no-verify-checksums)."""


_joined = b"\0".join


def checksum_of(
    partition: bytes,
    sort: bytes,
    full_key: bytes | None,
    modified_at: int,
    size_bytes: int,
    kinds: bytes | None,
    body: bytes,
) -> int:
    """Return the checksum of a stored row: 63 bits, which fit an integer of every database.

    Return -1 if a damaged row has values of other types.
    """
    try:
        data = _joined((partition, sort, full_key or b"", kinds or b"", body))
        return xxh3_64_intdigest(data, modified_at ^ size_bytes) >> 1
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
            modified_at,
        ) in rows:  # checksum_of inlined, to save a call for each row
            data = _joined((partition, sort, b"", kinds or b"", body))
            if xxh3_64_intdigest(data, modified_at ^ size_bytes) >> 1 != checksum:
                raise mismatch(partition, sort)
    except (TypeError, OverflowError):
        raise mismatch(partition, sort) from None


def mismatch(partition: bytes, sort: bytes) -> DataCorrupted:
    """Return the error for a row that does not match its checksum."""
    return DataCorrupted("a stored row does not match its checksum", (partition, sort))


def digest_of(partition: object, sort: object) -> str:
    """Return a short digest that identifies a row without disclosing its key."""
    return hashlib.sha256(repr((partition, sort)).encode()).hexdigest()[:16]
