"""Approximate indexes of many vectors: graphs of near neighbours (usearch), which say where to look.

A graph knows vectors by their place, the number of the part and the row in it, and points at their blocks' own memory: nothing is
copied. It grows behind the image that it belongs to, some vectors at a time, and forgets none. What has gone, what a searcher's
snapshot does not have, and which digests an entry has, is known to the image; and scores are computed from the vectors
(exact_search.py). Knows nothing of tables, transactions and SQL.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tablegate.gateway.engine.vectors.exact_search import BlockPart, VectorBlock
from tablegate.gateway.model.tables.indexes import VectorIndex
from tablegate.gateway.model.values.vectors import Metric

BYTES_EACH = 256
"""Of a vector in a graph: its neighbours, and where it is. Held by a test."""

_KINDS = {Metric.COSINE: "cos", Metric.EUCLIDEAN: "l2sq", Metric.DOT_PRODUCT: "ip"}
# How many vectors are looked at for the neighbours of a new one: with 128, usearch's default, a graph took nearly twice as long
# to make and found no more (benchmarks/vectors.py).
_LOOKED_AT_WHEN_ADDED = 64
# Vectors that are added before whoever searches has a turn: some milliseconds at most.
_ADDED_TOGETHER = 4
# Of the square of a length: distances of vectors between these are numbers of 32 bits, and neither zero nor infinite.
_SHORTEST, _LONGEST = 1e-30, 1e36
_ROW_BITS = 32

Rows = NDArray[np.intp]


class Candidates(NamedTuple):
    """Where to look for the nearest vectors. `near`: those that the graph has found, by part. `aside`: those that no graph can
    have, by part. From (`part`, `row`) on the graph does not know yet what is there."""

    near: dict[int, Rows]
    aside: dict[int, Rows]
    part: int
    row: int

    def behind(self, parts: Sequence[BlockPart]) -> Iterator[tuple[BlockPart, Rows]]:
        """The rows of parts that the graph does not know yet."""
        for at in range(self.part, len(parts)):
            yield parts[at], np.arange(self.row if at == self.part else 0, parts[at].length)


class VectorGraph:
    """The graph of one image."""

    def __init__(self, index: VectorIndex) -> None:
        from usearch.index import Index

        # Nothing is looked up or removed by its key.
        self._index = Index(
            ndim=index.dimensions,
            metric=_KINDS[index.metric],
            dtype="f32",
            expansion_add=_LOOKED_AT_WHEN_ADDED,
            enable_key_lookups=False,
        )
        self._lock = threading.Lock()
        # The parts that have been begun, and how many rows of the last one have been gone over.
        self._blocks: list[VectorBlock] = []
        self._row = 0
        self._aside: list[tuple[int, int]] = []

    def grow(self, parts: Sequence[BlockPart]) -> int:
        """Add the next vectors of these parts, which are those that it has been given before, grown. How many it went over; 0: it
        has all of them."""
        with self._lock:
            at = len(self._blocks) - 1
            if at < 0 or self._row == parts[at].length:
                if at + 1 >= len(parts):
                    return 0
                at += 1
                self._blocks.append(parts[at].block)
                self._row = 0
            block, end = parts[at].block, min(self._row + _ADDED_TOGETHER, parts[at].length)
            for row in range(self._row, end):
                if _is_regular(float(block.squares[row])):
                    self._index.add(at << _ROW_BITS | row, block.vectors[row], copy=False, threads=1)
                else:
                    self._aside.append((at, row))
            found, self._row = end - self._row, end
            return found

    def candidates(self, vector: NDArray[np.float32], number: int) -> Candidates:
        """Where to look for the nearest to a vector: about so many of those that are in the graph, and all that are not."""
        with self._lock:
            keys = self._index.search(vector, number, threads=1).keys if len(self._index) else ()
            near = np.asarray(keys, np.int64)
            aside = np.array(self._aside, np.intp).reshape(-1, 2)
            last, row = len(self._blocks) - 1, self._row
        return Candidates(
            _by_part(near >> _ROW_BITS, near & ((1 << _ROW_BITS) - 1)),
            _by_part(aside[:, 0], aside[:, 1]),
            max(last, 0),
            row,
        )


def can_look_for(vector: NDArray[np.float32]) -> bool:
    """Whether distances to a vector are such that a graph can go by them."""
    return _is_regular(float(np.square(vector, dtype=np.float64).sum()))


def _is_regular(square: float) -> bool:
    return _SHORTEST < square < _LONGEST


def _by_part(parts: NDArray[np.int64], rows: NDArray[np.int64]) -> dict[int, Rows]:
    return {int(part): np.sort(rows[parts == part]).astype(np.intp) for part in np.unique(parts)}
