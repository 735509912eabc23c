"""Sums of row hashes by bucket, which are equal for equal rows in any order and pages.

A row's bucket is the hash of its key modulo 4,096. A bucket has the number of its rows and the sum of their 128-bit
hashes modulo 2^128. Unlike XOR, a sum detects a duplicated row and two rows with swapped values. These sums protect
against accidents, not adversaries (Clarke et al., "Incremental Multiset Hash Functions", ASIACRYPT 2003).

If both ends are tablegate databases, or both are DynamoDB, and have the same key, the bytes of rows are hashed
(`fast_add_bodies`). Equal bytes are equal rows. Rows with different bytes are compared in canonical form afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import orjson
import xxhash

from tablegate.gateway.model.values.rows import Row

BUCKETS = 4096
_MODULUS = 1 << 128


class TableSums:
    """The sums of a table or a part of it."""

    def __init__(self) -> None:
        self.sums = [0] * BUCKETS
        self.counts = [0] * BUCKETS

    def add(self, bucket: int, row_hash: int) -> None:
        self.sums[bucket] += row_hash
        self.counts[bucket] += 1

    def merge(self, other: TableSums) -> None:
        self.sums = [mine + yours for mine, yours in zip(self.sums, other.sums, strict=True)]
        self.counts = [mine + yours for mine, yours in zip(self.counts, other.counts, strict=True)]

    @property
    def rows(self) -> int:
        return sum(self.counts)

    def unequal(self, other: TableSums) -> frozenset[int]:
        """Return the buckets in which two tables differ."""
        return frozenset(
            bucket
            for bucket in range(BUCKETS)
            if self.counts[bucket] != other.counts[bucket]
            or (self.sums[bucket] - other.sums[bucket]) % _MODULUS != 0
        )

    def digest(self) -> str:
        """Return one digest of all buckets as 64 hexadecimal digits."""
        hashed = hashlib.sha256()
        for total, count in zip(self.sums, self.counts, strict=True):
            hashed.update((total % _MODULUS).to_bytes(16, "big") + count.to_bytes(8, "big"))
        return hashed.hexdigest()


def bucket_of(key: bytes) -> int:
    """Return the bucket of a row from the bytes of its identity."""
    return xxhash.xxh3_64_intdigest(key) & (BUCKETS - 1)


def fast_add_bodies(sums: TableSums, rows: Iterable[Row], with_kinds: bool, sorts_members: bool) -> None:
    """Add rows by the hash of their bytes, the fast path of hashing canonical forms.

    `with_kinds` includes stamps and older versions of cells. `sorts_members` hashes the JSON with sorted members.
    """
    totals, counts = sums.sums, sums.counts
    hash_of, bucket_hash, mask = xxhash.xxh3_128_intdigest, xxhash.xxh3_64_intdigest, BUCKETS - 1
    for row in rows:
        contents = row.contents
        partition, sort = row.position
        bucket = bucket_hash(partition + sort) & mask
        body = orjson.dumps(contents.members, option=orjson.OPT_SORT_KEYS) if sorts_members else contents.body
        if with_kinds and contents.kinds is not None:
            body += contents.kinds
        totals[bucket] += hash_of(body)
        counts[bucket] += 1
