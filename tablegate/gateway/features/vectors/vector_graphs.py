"""Approximate indexes of vectors: HNSW graphs (usearch) that propose candidates for a search.

A graph identifies a vector by its part number and row, and refers to the memory of the block without a copy. It grows
after its image in small batches and never removes a vector. The image filters deleted entries, entries outside of the
reader's snapshot and digests. Scores are computed from the vectors (exact_search.py). This module does not depend on
tables, transactions or SQL.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tablegate.gateway.features.vectors.exact_search import BlockPart, VectorBlock
from tablegate.gateway.features.vectors.vectors import Metric, VectorIndex

BYTES_PER_VECTOR = 256
"""Memory of a vector in a graph: its neighbours and its location. A test checks the figure."""

_KINDS = {Metric.COSINE: "cos", Metric.EUCLIDEAN: "l2sq", Metric.DOT_PRODUCT: "ip"}
# Number of candidates for the neighbours of a new vector. With 128, usearch's default, building took nearly twice as
# long without finding more (benchmarks/vectors.py).
_EXPANSION_ADD = 64
# Vectors added while the lock is held. This takes a few milliseconds, during which searches wait.
_ROWS_PER_LOCK = 4
# Bounds of a squared length. Between them, distances are finite, nonzero 32-bit numbers.
_SHORTEST, _LONGEST = 1e-30, 1e36
_ROW_BITS = 32

Rows = NDArray[np.intp]


class Candidates(NamedTuple):
    """The rows to scan for the nearest vectors.

    `near` are the rows that the graph proposes, by part. `excluded` are the rows that a graph cannot hold, by part.
    Rows from (`part`, `row`) on are not in the graph yet.
    """

    near: dict[int, Rows]
    excluded: dict[int, Rows]
    part: int
    row: int

    def not_indexed(self, parts: Sequence[BlockPart]) -> Iterator[tuple[BlockPart, Rows]]:
        """Yield the rows of each part that are not in the graph yet."""
        for at in range(self.part, len(parts)):
            yield parts[at], np.arange(self.row if at == self.part else 0, parts[at].length)


class VectorGraph:
    """The graph of one image."""

    def __init__(self, index: VectorIndex) -> None:
        from usearch.index import Index

        # No vector is looked up or removed by its key.
        self._index = Index(
            ndim=index.dimensions,
            metric=_KINDS[index.metric],
            dtype="f32",
            expansion_add=_EXPANSION_ADD,
            enable_key_lookups=False,
        )
        self._lock = threading.Lock()
        # The parts that were started, and the number of processed rows of the last one.
        self._blocks: list[VectorBlock] = []
        self._row = 0
        self._excluded: list[tuple[int, int]] = []

    def grow(self, parts: Sequence[BlockPart]) -> int:
        """Add the next vectors of these parts, which extend those of the previous call. Return the number of processed
        rows, or 0 if all are present."""
        with self._lock:
            at = len(self._blocks) - 1
            if at < 0 or self._row == parts[at].length:
                if at + 1 >= len(parts):
                    return 0
                at += 1
                self._blocks.append(parts[at].block)
                self._row = 0
            block, end = parts[at].block, min(self._row + _ROWS_PER_LOCK, parts[at].length)
            for row in range(self._row, end):
                if _is_regular(float(block.squares[row])):
                    self._index.add(at << _ROW_BITS | row, block.vectors[row], copy=False, threads=1)
                else:
                    self._excluded.append((at, row))
            count, self._row = end - self._row, end
            return count

    def candidates(self, vector: NDArray[np.float32], number: int) -> Candidates:
        """Return about `number` rows near a vector, and all rows that are not in the graph."""
        with self._lock:
            keys = self._index.search(vector, number, threads=1).keys if len(self._index) else ()
            near = np.asarray(keys, np.int64)
            excluded = np.array(self._excluded, np.intp).reshape(-1, 2)
            last, row = len(self._blocks) - 1, self._row
        return Candidates(
            _by_part(near >> _ROW_BITS, near & ((1 << _ROW_BITS) - 1)),
            _by_part(excluded[:, 0], excluded[:, 1]),
            max(last, 0),
            row,
        )


def is_searchable(vector: NDArray[np.float32]) -> bool:
    """Return True if a graph can compute distances to a vector."""
    return _is_regular(float(np.square(vector, dtype=np.float64).sum()))


def _is_regular(square: float) -> bool:
    return _SHORTEST < square < _LONGEST


def _by_part(parts: NDArray[np.int64], rows: NDArray[np.int64]) -> dict[int, Rows]:
    return {int(part): np.sort(rows[parts == part]).astype(np.intp) for part in np.unique(parts)}
