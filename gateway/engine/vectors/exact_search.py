"""The nearest of many vectors, exactly, in blocks of a few megabytes, with numpy.

Products are taken of 32-bit numbers, which is as fast as memory is read; whatever may be among the nearest by how far such a
product can be wrong is then computed again with 64 bits. So the answer is that of 64 bits throughout. Knows nothing of tables,
transactions and SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tablegate.gateway.model.values.vectors import COMPONENT_BYTES, DIGEST_BYTES, Metric

_BLOCK_BYTES = 8 << 20
_FEWEST_ROWS, _MOST_ROWS = 64, 16_384
# Half the distance of two neighbouring 32-bit numbers around 1; the smallest positive one of full precision.
_ROUNDING = 2.0**-24
_SMALLEST = 1.2e-38
_GREATEST_SCORE = float(np.finfo(np.float32).max)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
StoredEntry = tuple[int, bytes | None, bytes, bytes]
"""Version, digest of the partition (None: the index has none), digests of the filters, vector."""


class VectorSearch(NamedTuple):
    """What is looked for: so many vectors near to one, by a metric, of those whose digests at these places are these."""

    metric: Metric
    vector: NDArray[np.float32]
    most: int
    digests: tuple[tuple[int, bytes], ...] = ()


def target(metric: Metric, vector: bytes, most: int, digests: Sequence[tuple[int, bytes]]) -> VectorSearch:
    """A target near to a vector as model/values/vectors.py packs it."""
    return VectorSearch(metric, np.frombuffer(vector, "<f4"), most, tuple(digests))


def rows_in_a_block(dimensions: int) -> int:
    """How many vectors a block has at most."""
    return max(_FEWEST_ROWS, min(_MOST_ROWS, _BLOCK_BYTES // (COMPONENT_BYTES * dimensions)))


class VectorBlock:
    """Vectors with what a search must know of each. They are only ever added, behind those that readers know of already."""

    __slots__ = ("digests", "length", "squares", "vectors", "versions")

    def __init__(self, capacity: int, dimensions: int, columns: int) -> None:
        self.length = 0
        self.vectors = np.empty((capacity, dimensions), np.float32)
        self.squares = np.empty(capacity, np.float64)
        self.versions = np.empty(capacity, np.int64)
        self.digests = np.empty((capacity, columns, DIGEST_BYTES // 8), np.uint64)

    @classmethod
    def of(cls, entries: Sequence[StoredEntry]) -> VectorBlock:
        """A block of just these entries, one at least."""
        _, partition, filters, vector = entries[0]
        columns = len((partition or b"") + filters) // DIGEST_BYTES
        made = cls(len(entries), len(vector) // COMPONENT_BYTES, columns)
        made.add(entries)
        return made

    @property
    def room(self) -> int:
        """How many vectors can still be added."""
        return len(self.versions) - self.length

    @property
    def size_bytes(self) -> int:
        """How much memory it takes."""
        return self.vectors.nbytes + self.squares.nbytes + self.versions.nbytes + self.digests.nbytes

    def add(self, entries: Sequence[StoredEntry]) -> None:
        """Add entries, no more than there is room for."""
        start, end = self.length, self.length + len(entries)
        versions, partitions, filters, vectors = zip(*entries, strict=True)
        added = np.frombuffer(b"".join(vectors), "<f4").reshape(len(entries), -1)
        self.vectors[start:end] = added
        self.squares[start:end] = np.einsum("ij,ij->i", added, added, dtype=np.float64)
        self.versions[start:end] = versions
        if self.digests.shape[1]:
            joined = b"".join([(one or b"") + rest for one, rest in zip(partitions, filters, strict=True)])
            self.digests[start:end] = np.frombuffer(joined, "<u8").reshape(
                len(entries), *self.digests.shape[1:]
            )
        self.length = end


class BlockPart(NamedTuple):
    """So many vectors of a block; those that are live (None: all of them)."""

    block: VectorBlock
    length: int
    live: Flags | None = None


class NearestSoFar:
    """The nearest vectors that were met so far. Of equally near ones those that were written first."""

    def __init__(self, target: VectorSearch) -> None:
        self._target = target
        self._vector = target.vector.astype(np.float64)
        self._square = float(self._vector @ self._vector)
        # The greater a merit, the nearer is the vector.
        self._merits: Floats = np.empty(0, np.float64)
        self._versions: NDArray[np.int64] = np.empty(0, np.int64)

    def found(self) -> list[tuple[int, float]]:
        """(version, score) of each, the nearest first."""
        return list(zip(self._versions.tolist(), self._scores().tolist(), strict=True))

    def _scores(self) -> Floats:
        merits, metric = self._merits, self._target.metric
        if metric is Metric.COSINE:
            return np.clip(1.0 - merits, 0.0, 2.0)
        if metric is Metric.EUCLIDEAN:
            merits = np.sqrt(-merits)
        return np.clip(merits, -_GREATEST_SCORE, _GREATEST_SCORE)

    def passing(self, part: BlockPart) -> int:
        """How many of a part's vectors are live and have the digests that are looked for."""
        chosen = self._chosen(part, None)
        return part.length if chosen is None else len(chosen)

    def look_at(self, part: BlockPart, among: NDArray[np.intp] | None = None) -> int:
        """Take from a part, or from these vectors of it, what is nearer than what was met before. How many of them are live and
        have the digests that are looked for."""
        block, length = part.block, part.length
        chosen = self._chosen(part, among)
        if chosen is None:
            approximate = self._products(block.vectors[:length])
            at = np.arange(length)
        elif 3 * len(chosen) > length:  # a product is quicker than a copy of the chosen ones
            approximate, at = self._products(block.vectors[:length])[chosen], chosen
        else:
            approximate, at = self._products(block.vectors[chosen]), chosen
        found = len(at)
        at = at[self._may_be_among_best(approximate, block.squares[at])]
        if len(at):
            self._take(self._exact(block.vectors[at].astype(np.float64)), block.versions[at])
        return found

    def _chosen(self, part: BlockPart, among: NDArray[np.intp] | None) -> NDArray[np.intp] | None:
        """Which of a part's vectors, or of these of them, are live and have the digests that are looked for; None: all."""
        looked_at = slice(part.length) if among is None else among
        mask = None if part.live is None else part.live[looked_at]
        for place, digest in self._target.digests:
            first, second = np.frombuffer(digest, "<u8")
            digests = part.block.digests[looked_at, place]
            passing = (digests[:, 0] == first) & (digests[:, 1] == second)
            mask = passing if mask is None else mask & passing
        if mask is None:
            return among
        return np.flatnonzero(mask) if among is None else among[mask]

    def _products(self, vectors: NDArray[np.float32]) -> Floats:
        # Row by row, in this thread: a product of the whole with a vector would wait for all cores, which others use.
        with np.errstate(over="ignore", invalid="ignore"):
            return np.vecdot(vectors, self._target.vector).astype(np.float64)

    def _may_be_among_best(self, approximate: Floats, squares: Floats) -> Flags:
        """Which vectors may be among the best, by products that are about right."""
        lengths = np.sqrt(squares * self._square)
        wrong = len(self._target.vector) * (1.01 * _ROUNDING * lengths + _SMALLEST)
        # A product beyond 32 bits says nothing.
        wrong[~np.isfinite(approximate)] = np.inf
        approximate = np.nan_to_num(approximate, nan=0.0, posinf=0.0, neginf=0.0)
        merits = approximate
        if self._target.metric is Metric.COSINE:
            divisors = np.where(lengths > 0.0, lengths, 1.0)
            merits = np.where(lengths > 0.0, approximate / divisors, 0.0)
            wrong = np.where(lengths > 0.0, wrong / divisors, 0.0) + 1e-12
        elif self._target.metric is Metric.EUCLIDEAN:
            merits = 2.0 * approximate - (squares + self._square)
            wrong = 2.0 * wrong + 1e-12 * (squares + self._square)
        needed = self._least_merit
        most = self._target.most
        if len(merits) > most:
            at_least = merits - wrong
            needed = max(needed, float(np.partition(at_least, -most)[-most]))
        return merits + wrong >= needed

    @property
    def _least_merit(self) -> float:
        return -np.inf if len(self._merits) < self._target.most else float(self._merits[-1])

    def _exact(self, vectors: Floats) -> Floats:
        if self._target.metric is Metric.EUCLIDEAN:
            vectors -= self._vector
            return -np.einsum("ij,ij->i", vectors, vectors)
        products = np.einsum("ij,j->i", vectors, self._vector)
        if self._target.metric is Metric.DOT_PRODUCT:
            return products
        # A vector of no length is at a right angle to all.
        lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors) * self._square)
        return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0.0)

    def _take(self, merits: Floats, versions: NDArray[np.int64]) -> None:
        merits = np.concatenate([self._merits, merits])
        versions = np.concatenate([self._versions, versions])
        order = np.lexsort((versions, -merits))[: self._target.most]
        self._merits, self._versions = merits[order], versions[order]


def live_versions(parts: Sequence[BlockPart]) -> NDArray[np.int64]:
    """The versions of the live vectors of some parts, in order."""
    kept = [
        versions if part.live is None else versions[part.live]
        for part in parts
        for versions in (part.block.versions[: part.length],)
    ]
    return np.sort(np.concatenate(kept)) if kept else np.empty(0, np.int64)


def without(parts: Sequence[BlockPart], gone: Any) -> tuple[BlockPart, ...]:
    """Parts in which vectors of these versions are no longer live."""
    left = []
    for part in parts:
        dead = np.isin(part.block.versions[: part.length], gone)
        if dead.any():
            live = ~dead if part.live is None else part.live & ~dead
            left.append(part._replace(live=live))
        else:
            left.append(part)
    return tuple(left)
