"""Images of vector indexes in memory: what a search would otherwise read from the database each time.

An image has all entries of an index up to a version, and is brought up to date by reading what is newer. It is never changed:
who searches one is not disturbed by who makes the next one of it, with which it shares the blocks of vectors. All images together
have a bounded number of bytes; an index with more is read from the database whenever it is searched.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tablegate.gateway.engine.vectors import exact_search, vector_graphs
from tablegate.gateway.engine.vectors.exact_search import BlockPart, StoredEntry, VectorBlock
from tablegate.gateway.engine.vectors.vector_graphs import VectorGraph
from tablegate.gateway.model.tables.indexes import VectorIndex
from tablegate.gateway.model.values.vectors import COMPONENT_BYTES, DIGEST_BYTES
from tablegate.gateway.store.rows.vectors import IndexVersions

_FEWEST_ROWS = 64
_BESIDES_BYTES = 16
"""Of an entry, besides its vector and its digests."""


class IndexImage(NamedTuple):
    """All entries of an index up to a version. `seen_at`: the version of the newest snapshot of which any of it was read: nobody
    who sees an older one can use it. `clean_at`: as of this version no entry in it had gone or been replaced. `server_start`: of
    the database server that all of it was read from (Versions). `graph`: where to look for what is near, in this and all images
    that were made of it; None: searches look at all."""

    version: int
    seen_at: int
    clean_at: int
    server_start: str
    parts: tuple[BlockPart, ...] = ()
    graph: VectorGraph | None = None

    @property
    def length(self) -> int:
        """How many entries it has, with those that have gone."""
        return sum(part.length for part in self.parts)

    @property
    def size_bytes(self) -> int:
        """How much memory it takes, with the graph when that has all of it."""
        graph_bytes_each = 0 if self.graph is None else vector_graphs.BYTES_EACH
        return sum(part.block.size_bytes + len(part.block.versions) * graph_bytes_each for part in self.parts)

    @property
    def is_mostly_dead(self) -> bool:
        """Whether more of what it holds has gone than is live."""
        length = self.length
        live = sum(part.length if part.live is None else int(part.live.sum()) for part in self.parts)
        return length > _FEWEST_ROWS and 2 * live < length


class IndexImages:
    """The images of a database's indexes, of so many bytes at most. Those searched least recently go first. `approximate_from`:
    of how many entries on an image has a graph; 0: none has."""

    def __init__(self, most_bytes: int, approximate_from: int = 0) -> None:
        self.approximate_from = approximate_from
        self._most_bytes = most_bytes
        self._images: OrderedDict[int, IndexImage] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, index_id: int, server_start: str) -> IndexImage | None:
        """The image of an index, if there is one. One of a server that was started at another time goes."""
        with self._lock:
            image = self._images.get(index_id)
            if image is None:
                return None
            if image.server_start != server_start:
                del self._images[index_id]
                return None
            self._images.move_to_end(index_id)
            return image

    def has_room(self, index: VectorIndex, entries: int) -> bool:
        """Whether an index of so many entries can have an image."""
        bytes_each = COMPONENT_BYTES * index.dimensions + DIGEST_BYTES * len(index.columns) + _BESIDES_BYTES
        bytes_each += vector_graphs.BYTES_EACH if self.approximate_from else 0
        # The last block may be empty but for one.
        rows = entries + min(exact_search.rows_in_a_block(index.dimensions), max(_FEWEST_ROWS, entries))
        return rows * bytes_each <= self._most_bytes

    def add(
        self,
        index: VectorIndex,
        known: IndexImage | None,
        entries: Sequence[StoredEntry],
        version: int,
        seen: IndexVersions,
    ) -> bool:
        """Make an image of `known` and the next entries, which go up to a version and were read when these had been reached,
        unless somebody has made one meanwhile. False: there is no room, and no image is left."""
        with self._lock:
            if self._images.get(index.id) is not known:
                return True
            grown = known or IndexImage(
                0, seen.last, seen.last, seen.server_start, graph=self._new_graph(index)
            )
            parts = list(grown.parts)
            while entries:
                if not parts or not _can_grow(parts[-1]):
                    length = sum(part.length for part in parts)
                    capacity = min(exact_search.rows_in_a_block(index.dimensions), max(_FEWEST_ROWS, length))
                    parts.append(BlockPart(VectorBlock(capacity, index.dimensions, len(index.columns)), 0))
                parts[-1], entries = _grown(parts[-1], entries)
            seen_at = max(grown.seen_at, seen.last)
            self._images[index.id] = grown._replace(version=version, seen_at=seen_at, parts=tuple(parts))
            self._images.move_to_end(index.id)
            return self._make_room(index.id)

    def _new_graph(self, index: VectorIndex) -> VectorGraph | None:
        return VectorGraph(index) if self.approximate_from else None

    def grow_a_graph(self) -> int:
        """Add some vectors to a graph that lacks some, of images that are large enough; how many."""
        with self._lock:
            images = [*self._images.values()]
        for image in reversed(images):
            if image.graph is not None and image.length >= self.approximate_from:
                added = image.graph.grow(image.parts)
                if added:
                    return added
        return 0

    def clean(self, index: VectorIndex, known: IndexImage, gone: Sequence[int]) -> IndexImage | None:
        """An image of `known` without the entries of these versions, as of the version that it was last read at. None: somebody
        has made another one meanwhile, or most of it is gone, and no image is left."""
        parts = exact_search.without(known.parts, np.array(gone, np.int64)) if gone else known.parts
        made = known._replace(parts=parts, clean_at=known.seen_at)
        with self._lock:
            if self._images.get(index.id) is not known:
                return None
            if made.is_mostly_dead:
                del self._images[index.id]
                return None
            self._images[index.id] = made
            return made

    def _make_room(self, index_id: int) -> bool:
        used = sum(image.size_bytes for image in self._images.values())
        for other in [*self._images]:
            if used <= self._most_bytes:
                break
            used -= self._images.pop(other).size_bytes
        return index_id in self._images


def counts_by_range(image: IndexImage, width: int) -> dict[int, int]:
    """How many entries of an image have versions in each range of so many, in order."""
    ranges, counts = np.unique(exact_search.live_versions(image.parts) // width, return_counts=True)
    return dict(zip(ranges.tolist(), counts.tolist(), strict=True))


def versions_between(image: IndexImage, first: int, last: int) -> list[int]:
    """The versions of the entries of an image between two, both included, in order."""
    versions: NDArray[np.int64] = exact_search.live_versions(image.parts)
    found: list[int] = versions[
        np.searchsorted(versions, first) : np.searchsorted(versions, last, "right")
    ].tolist()
    return found


def _can_grow(part: BlockPart) -> bool:
    """Whether entries can be added behind a part, where nobody else has added any."""
    return part.length == part.block.length and part.block.room > 0


def _grown(part: BlockPart, entries: Sequence[StoredEntry]) -> tuple[BlockPart, Sequence[StoredEntry]]:
    """A part with as many more entries as there is room for, and those that are left."""
    block = part.block
    added = entries[: block.room]
    block.add(added)
    live = part.live if part.live is None else np.concatenate([part.live, np.ones(len(added), np.bool_)])
    return BlockPart(block, block.length, live), entries[len(added) :]
