"""Sums of hashes by bucket: equal where the rows are, whatever their order and their pages.

A row's bucket is the hash of its key modulo 4,096; a bucket's value is the sum modulo 2^128 of the 128-bit hashes of its rows,
beside their number. A sum, unlike XOR, sees a row that is there twice and is changed by two rows that swap values. (Clarke et
al., "Incremental Multiset Hash Functions", ASIACRYPT 2003, say which sums withstand an adversary; this one is against accidents.)

Where both ends hold bodies of the same form (two databases of tablegate, the same key), the stored bytes are hashed as they are
(`fast_add_bodies`). Equal bytes are equal rows; rows of unequal bytes are compared in their canonical form afterwards.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import xxhash

from tablegate.gateway.model.values.rows import Row

BUCKETS = 4096
_MODULUS = 1 << 128


class TableSums:
    """The sums of a part of a table, or of all of it."""

    def __init__(self) -> None:
        self.sums = [0] * BUCKETS
        self.counts = [0] * BUCKETS

    def add(self, bucket: int, row_hash: int) -> None:
        """Take a row in."""
        self.sums[bucket] += row_hash
        self.counts[bucket] += 1

    def merge(self, other: TableSums) -> None:
        """Take in all rows of another part."""
        self.sums = [mine + yours for mine, yours in zip(self.sums, other.sums, strict=True)]
        self.counts = [mine + yours for mine, yours in zip(self.counts, other.counts, strict=True)]

    @property
    def rows(self) -> int:
        """How many rows were taken in."""
        return sum(self.counts)

    def unequal(self, other: TableSums) -> frozenset[int]:
        """The buckets in which two tables differ."""
        return frozenset(
            bucket
            for bucket in range(BUCKETS)
            if self.counts[bucket] != other.counts[bucket]
            or (self.sums[bucket] - other.sums[bucket]) % _MODULUS != 0
        )

    def digest(self) -> str:
        """One text for all buckets: 64 hexadecimal digits."""
        made = hashlib.sha256()
        for total, count in zip(self.sums, self.counts, strict=True):
            made.update((total % _MODULUS).to_bytes(16, "big") + count.to_bytes(8, "big"))
        return made.hexdigest()


def bucket_of(key: bytes) -> int:
    """The bucket of a row, of the bytes that say which row it is."""
    return xxhash.xxh3_64_intdigest(key) & (BUCKETS - 1)


def fast_add_bodies(sums: TableSums, rows: Iterable[Row], with_kinds: bool) -> None:
    """The fast path of hashing rows in their canonical form: take in rows by their stored bytes. `with_kinds`: stamps and older
    versions of cells count, too."""
    totals, counts = sums.sums, sums.counts
    hash_of, bucket_hash, mask = xxhash.xxh3_128_intdigest, xxhash.xxh3_64_intdigest, BUCKETS - 1
    for row in rows:
        contents = row.contents
        partition, sort = row.position
        bucket = bucket_hash(partition + sort) & mask
        body = contents.body
        if with_kinds and contents.kinds is not None:
            body += contents.kinds
        totals[bucket] += hash_of(body)
        counts[bucket] += 1
