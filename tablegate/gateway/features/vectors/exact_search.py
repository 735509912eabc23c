"""Exact nearest-neighbour search, in blocks of a few megabytes, with numpy.

Products are first computed with 32 bits, which is as fast as reading memory. Vectors that may be among the nearest,
within the rounding error, are computed again with 64 bits. The result is therefore that of 64 bits. This module does
not depend on tables, transactions or SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tablegate.gateway.features.vectors.vectors import COMPONENT_BYTES, DIGEST_BYTES, Metric

_BLOCK_BYTES = 8 << 20
_MIN_ROWS, _MAX_ROWS = 64, 16_384
# Half the distance of two neighbouring 32-bit numbers around 1, and the smallest positive one of full precision.
_ROUNDING = 2.0**-24
_SMALLEST = 1.2e-38
_GREATEST_SCORE = float(np.finfo(np.float32).max)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
StoredEntry = tuple[int, bytes | None, bytes, bytes]
"""Version, digest of the partition (None if the index has none), digests of the filters, vector."""


class VectorSearch(NamedTuple):
    """A search: the `limit` nearest vectors to `vector`, filtered by (column number, digest)."""

    metric: Metric
    vector: NDArray[np.float32]
    limit: int
    digests: tuple[tuple[int, bytes], ...] = ()


def search_near(
    metric: Metric, vector: bytes, limit: int, digests: Sequence[tuple[int, bytes]]
) -> VectorSearch:
    """Return a search near a vector that features/vectors/vectors.py has packed."""
    return VectorSearch(metric, np.frombuffer(vector, "<f4"), limit, tuple(digests))


def max_block_rows(dimensions: int) -> int:
    """Return the maximum number of vectors in a block."""
    return max(_MIN_ROWS, min(_MAX_ROWS, _BLOCK_BYTES // (COMPONENT_BYTES * dimensions)))


class VectorBlock:
    """Vectors and the data that a search needs of each. Append-only, so concurrent readers see a stable prefix."""

    __slots__ = ("digests", "length", "squares", "vectors", "versions")

    def __init__(self, capacity: int, dimensions: int, columns: int) -> None:
        self.length = 0
        self.vectors = np.empty((capacity, dimensions), np.float32)
        self.squares = np.empty(capacity, np.float64)
        self.versions = np.empty(capacity, np.int64)
        self.digests = np.empty((capacity, columns, DIGEST_BYTES // 8), np.uint64)

    @classmethod
    def of(cls, entries: Sequence[StoredEntry]) -> VectorBlock:
        """Return a block of exactly these entries, at least one."""
        _, partition, filters, vector = entries[0]
        columns = len((partition or b"") + filters) // DIGEST_BYTES
        block = cls(len(entries), len(vector) // COMPONENT_BYTES, columns)
        block.add(entries)
        return block

    @property
    def free_rows(self) -> int:
        return len(self.versions) - self.length

    @property
    def size_bytes(self) -> int:
        return self.vectors.nbytes + self.squares.nbytes + self.versions.nbytes + self.digests.nbytes

    def add(self, entries: Sequence[StoredEntry]) -> None:
        """Append entries, at most `free_rows`."""
        start, end = self.length, self.length + len(entries)
        versions, partitions, filters, vectors = zip(*entries, strict=True)
        new_vectors = np.frombuffer(b"".join(vectors), "<f4").reshape(len(entries), -1)
        self.vectors[start:end] = new_vectors
        self.squares[start:end] = np.einsum("ij,ij->i", new_vectors, new_vectors, dtype=np.float64)
        self.versions[start:end] = versions
        if self.digests.shape[1]:
            digests = b"".join(
                [
                    (partition or b"") + filter_digests
                    for partition, filter_digests in zip(partitions, filters, strict=True)
                ]
            )
            self.digests[start:end] = np.frombuffer(digests, "<u8").reshape(
                len(entries), *self.digests.shape[1:]
            )
        self.length = end


class BlockPart(NamedTuple):
    """The first `length` vectors of a block, and flags of the live ones (None if all are)."""

    block: VectorBlock
    length: int
    live: Flags | None = None


class NearestSoFar:
    """The nearest vectors found so far. Among equally near vectors, those written first win."""

    def __init__(self, target: VectorSearch) -> None:
        self._target = target
        self._vector = target.vector.astype(np.float64)
        self._square = float(self._vector @ self._vector)
        # A greater merit means a nearer vector.
        self._merits: Floats = np.empty(0, np.float64)
        self._versions: NDArray[np.int64] = np.empty(0, np.int64)

    def results(self) -> list[tuple[int, float]]:
        """Return (version, score) of each, the nearest first."""
        return list(zip(self._versions.tolist(), self._scores().tolist(), strict=True))

    def _scores(self) -> Floats:
        merits, metric = self._merits, self._target.metric
        if metric is Metric.COSINE:
            return np.clip(1.0 - merits, 0.0, 2.0)
        if metric is Metric.EUCLIDEAN:
            merits = np.sqrt(-merits)
        return np.clip(merits, -_GREATEST_SCORE, _GREATEST_SCORE)

    def count_matching(self, part: BlockPart) -> int:
        """Return the number of live vectors in a part that match the digests."""
        row_numbers = self._select_rows(part, None)
        return part.length if row_numbers is None else len(row_numbers)

    def scan(self, part: BlockPart, among: NDArray[np.intp] | None = None) -> int:
        """Add the nearer vectors of a part, or of these rows of it. Return the number of live ones that match the
        digests."""
        block, length = part.block, part.length
        row_numbers = self._select_rows(part, among)
        if row_numbers is None:
            approximate = self._products(block.vectors[:length])
            at = np.arange(length)
        elif 3 * len(row_numbers) > length:  # a product is faster than copying the chosen rows
            approximate, at = self._products(block.vectors[:length])[row_numbers], row_numbers
        else:
            approximate, at = self._products(block.vectors[row_numbers]), row_numbers
        count = len(at)
        at = at[self._may_be_among_best(approximate, block.squares[at])]
        if len(at):
            self._take(self._exact(block.vectors[at].astype(np.float64)), block.versions[at])
        return count

    def _select_rows(self, part: BlockPart, among: NDArray[np.intp] | None) -> NDArray[np.intp] | None:
        """Return the live rows that match the digests, of a part or of these rows of it. None if all do."""
        rows = slice(part.length) if among is None else among
        mask = None if part.live is None else part.live[rows]
        for place, digest in self._target.digests:
            first, second = np.frombuffer(digest, "<u8")
            digests = part.block.digests[rows, place]
            matches = (digests[:, 0] == first) & (digests[:, 1] == second)
            mask = matches if mask is None else mask & matches
        if mask is None:
            return among
        return np.flatnonzero(mask) if among is None else among[mask]

    def _products(self, vectors: NDArray[np.float32]) -> Floats:
        # Row by row, in this thread. A matrix-vector product would wait for all cores, which other threads use.
        with np.errstate(over="ignore", invalid="ignore"):
            return np.vecdot(vectors, self._target.vector).astype(np.float64)

    def _may_be_among_best(self, approximate: Floats, squares: Floats) -> Flags:
        """Return flags of the vectors that may be among the best, by approximate products."""
        lengths = np.sqrt(squares * self._square)
        error_bound = len(self._target.vector) * (1.01 * _ROUNDING * lengths + _SMALLEST)
        # An overflowed product gives no bound.
        error_bound[~np.isfinite(approximate)] = np.inf
        approximate = np.nan_to_num(approximate, nan=0.0, posinf=0.0, neginf=0.0)
        merits = approximate
        if self._target.metric is Metric.COSINE:
            divisors = np.where(lengths > 0.0, lengths, 1.0)
            merits = np.where(lengths > 0.0, approximate / divisors, 0.0)
            error_bound = np.where(lengths > 0.0, error_bound / divisors, 0.0) + 1e-12
        elif self._target.metric is Metric.EUCLIDEAN:
            merits = 2.0 * approximate - (squares + self._square)
            error_bound = 2.0 * error_bound + 1e-12 * (squares + self._square)
        needed = self._lowest_merit
        count = self._target.limit
        if len(merits) > count:
            at_least = merits - error_bound
            needed = max(needed, float(np.partition(at_least, -count)[-count]))
        return merits + error_bound >= needed

    @property
    def _lowest_merit(self) -> float:
        return -np.inf if len(self._merits) < self._target.limit else float(self._merits[-1])

    def _exact(self, vectors: Floats) -> Floats:
        if self._target.metric is Metric.EUCLIDEAN:
            vectors -= self._vector
            return -np.einsum("ij,ij->i", vectors, vectors)
        products = np.einsum("ij,j->i", vectors, self._vector)
        if self._target.metric is Metric.DOT_PRODUCT:
            return products
        # A zero vector is orthogonal to all others.
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors) * self._square)
        return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0.0)

    def _take(self, merits: Floats, versions: NDArray[np.int64]) -> None:
        merits = np.concatenate([self._merits, merits])
        versions = np.concatenate([self._versions, versions])
        order = np.lexsort((versions, -merits))[: self._target.limit]
        self._merits, self._versions = merits[order], versions[order]


def live_versions(parts: Sequence[BlockPart]) -> NDArray[np.int64]:
    """Return the versions of the live vectors of parts, sorted."""
    versions_by_part = [
        versions if part.live is None else versions[part.live]
        for part in parts
        for versions in (part.block.versions[: part.length],)
    ]
    return np.sort(np.concatenate(versions_by_part)) if versions_by_part else np.empty(0, np.int64)


def without_versions(parts: Sequence[BlockPart], removed_versions: Any) -> tuple[BlockPart, ...]:
    """Return parts in which vectors of these versions are no longer live."""
    remaining_parts = []
    for part in parts:
        dead = np.isin(part.block.versions[: part.length], removed_versions)
        if dead.any():
            live = ~dead if part.live is None else part.live & ~dead
            remaining_parts.append(part._replace(live=live))
        else:
            remaining_parts.append(part)
    return tuple(remaining_parts)
