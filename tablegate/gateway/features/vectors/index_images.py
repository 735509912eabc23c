"""In-memory images of vector indexes, which save searches from reading the database, and their approximate graphs.

An image has all entries of an index up to a version, and is updated by reading newer ones. Images are immutable and
share the blocks of vectors, so an update does not disturb running searches. Their total size is bounded. An index that
does not fit is read from the database for every search.

A graph identifies a vector by its part number and row, and refers to the memory of the block without a copy. It grows
after its image in small batches and never removes a vector. The image filters deleted entries, entries outside of the
reader's snapshot and digests. Scores are computed from the vectors (exact_search.py). This module does not depend on
tables, transactions or SQL.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tablegate.gateway.features.vectors import exact_search
from tablegate.gateway.features.vectors.exact_search import BlockPart, StoredEntry, VectorBlock
from tablegate.gateway.features.vectors.vector_store import IndexVersions
from tablegate.gateway.features.vectors.vectors import COMPONENT_BYTES, DIGEST_BYTES, Metric, VectorIndex

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


_MIN_ROWS = 64
_OVERHEAD_BYTES = 16
"""Bytes of an entry besides its vector and its digests."""


class IndexImage(NamedTuple):
    """All entries of an index up to a version.

    - `seen_at`: the newest snapshot that an entry was read from. Readers of older snapshots cannot use the image.
    - `clean_at`: the version at which no entry of the image was deleted or replaced.
    - `server_start`: start of the database server that all entries were read from (IndexVersions).
    - `graph`: the approximate graph that this image shares with those made from it. None if searches scan all entries.
    """

    version: int
    seen_at: int
    clean_at: int
    server_start: str
    parts: tuple[BlockPart, ...] = ()
    graph: VectorGraph | None = None

    @property
    def length(self) -> int:
        """Number of entries, including deleted ones."""
        return sum(part.length for part in self.parts)

    @property
    def size_bytes(self) -> int:
        """Memory in bytes, including the graph at its full size."""
        graph_bytes_each = 0 if self.graph is None else BYTES_PER_VECTOR
        return sum(part.block.size_bytes + len(part.block.versions) * graph_bytes_each for part in self.parts)

    @property
    def is_mostly_dead(self) -> bool:
        length = self.length
        live = sum(part.length if part.live is None else int(part.live.sum()) for part in self.parts)
        return length > _MIN_ROWS and 2 * live < length


class IndexImages:
    """A cache of index images, bounded in bytes, that evicts the least recently searched first.

    `approximate_from` is the number of entries from which an image has a graph. 0 disables graphs.
    """

    def __init__(self, max_bytes: int, approximate_from: int = 0) -> None:
        self.approximate_from = approximate_from
        self._max_bytes = max_bytes
        self._images: OrderedDict[int, IndexImage] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, index_id: int, server_start: str) -> IndexImage | None:
        """Return the image of an index, or None. An image read before the database server restarted is dropped."""
        with self._lock:
            image = self._images.get(index_id)
            if image is None:
                return None
            if image.server_start != server_start:
                del self._images[index_id]
                return None
            self._images.move_to_end(index_id)
            return image

    def fits(self, index: VectorIndex, entries: int) -> bool:
        """Return True if an image with this number of entries fits into the cache."""
        bytes_each = COMPONENT_BYTES * index.dimensions + DIGEST_BYTES * len(index.columns) + _OVERHEAD_BYTES
        bytes_each += BYTES_PER_VECTOR if self.approximate_from else 0
        # The last block may hold one entry only.
        rows = entries + min(exact_search.max_block_rows(index.dimensions), max(_MIN_ROWS, entries))
        return rows * bytes_each <= self._max_bytes

    def add(
        self,
        index: VectorIndex,
        old_image: IndexImage | None,
        entries: Sequence[StoredEntry],
        version: int,
        versions: IndexVersions,
    ) -> bool:
        """Extend the image `old_image` by entries up to a version, unless another thread has replaced it.

        `versions` is what the reading snapshot showed. Return False if the image does not fit and was removed.
        """
        with self._lock:
            if self._images.get(index.id) is not old_image:
                return True
            image = old_image or IndexImage(
                0, versions.last, versions.last, versions.server_start, graph=self._new_graph(index)
            )
            parts = list(image.parts)
            while entries:
                if not parts or not _can_grow(parts[-1]):
                    length = sum(part.length for part in parts)
                    capacity = min(exact_search.max_block_rows(index.dimensions), max(_MIN_ROWS, length))
                    parts.append(BlockPart(VectorBlock(capacity, index.dimensions, len(index.columns)), 0))
                parts[-1], entries = _extend(parts[-1], entries)
            seen_at = max(image.seen_at, versions.last)
            self._images[index.id] = image._replace(version=version, seen_at=seen_at, parts=tuple(parts))
            self._images.move_to_end(index.id)
            return self._evict(index.id)

    def _new_graph(self, index: VectorIndex) -> VectorGraph | None:
        return VectorGraph(index) if self.approximate_from else None

    def grow_graph(self) -> int:
        """Add vectors to a graph that lacks some, of a large enough image. Return the number added."""
        with self._lock:
            images = [*self._images.values()]
        for image in reversed(images):
            if image.graph is not None and image.length >= self.approximate_from:
                count = image.graph.grow(image.parts)
                if count:
                    return count
        return 0

    def clean(
        self, index: VectorIndex, old_image: IndexImage, removed_versions: Sequence[int]
    ) -> IndexImage | None:
        """Return an image without the entries of these versions, clean as of the last snapshot read.

        None if another thread has replaced `old_image`, or if most entries are deleted. In the latter case the image is
        dropped.
        """
        parts = (
            exact_search.without_versions(old_image.parts, np.array(removed_versions, np.int64))
            if removed_versions
            else old_image.parts
        )
        image = old_image._replace(parts=parts, clean_at=old_image.seen_at)
        with self._lock:
            if self._images.get(index.id) is not old_image:
                return None
            if image.is_mostly_dead:
                del self._images[index.id]
                return None
            self._images[index.id] = image
            return image

    def _evict(self, index_id: int) -> bool:
        size_bytes = sum(image.size_bytes for image in self._images.values())
        for oldest_id in [*self._images]:
            if size_bytes <= self._max_bytes:
                break
            size_bytes -= self._images.pop(oldest_id).size_bytes
        return index_id in self._images


def counts_by_range(image: IndexImage, width: int) -> dict[int, int]:
    """Return the number of live entries in each range of versions of this width, in order."""
    ranges, counts = np.unique(exact_search.live_versions(image.parts) // width, return_counts=True)
    return dict(zip(ranges.tolist(), counts.tolist(), strict=True))


def versions_between(image: IndexImage, first: int, last: int) -> list[int]:
    """Return the versions of the live entries between two versions, both included, in order."""
    versions: NDArray[np.int64] = exact_search.live_versions(image.parts)
    versions_in_range: list[int] = versions[
        np.searchsorted(versions, first) : np.searchsorted(versions, last, "right")
    ].tolist()
    return versions_in_range


def _can_grow(part: BlockPart) -> bool:
    return part.length == part.block.length and part.block.free_rows > 0


def _extend(part: BlockPart, entries: Sequence[StoredEntry]) -> tuple[BlockPart, Sequence[StoredEntry]]:
    """Return a part extended by as many entries as fit, and the remaining entries."""
    block = part.block
    new_entries = entries[: block.free_rows]
    block.add(new_entries)
    live = (
        part.live if part.live is None else np.concatenate([part.live, np.ones(len(new_entries), np.bool_)])
    )
    return BlockPart(block, block.length, live), entries[len(new_entries) :]
