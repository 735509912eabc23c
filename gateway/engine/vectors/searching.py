"""Searching a vector index: all of it is looked at, so that the nearest are found, always; unless a graph may say where to look.

A search is of one snapshot, like any page, and read in slices. What it looks at is the index's image in memory
(index_images.py), brought up to date by what has changed since; or, where there is no room for one, or no snapshot of all nodes
of a database, the entries as they come from there. Needs numpy, and so is imported by the first search (reading.py).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from tablegate.gateway.engine.vectors import exact_search, index_images, vector_graphs
from tablegate.gateway.engine.vectors.exact_search import (
    BlockPart,
    NearestSoFar,
    StoredEntry,
    VectorBlock,
    VectorSearch,
)
from tablegate.gateway.engine.vectors.index_images import IndexImage, IndexImages
from tablegate.gateway.engine.vectors.vector_graphs import Rows
from tablegate.gateway.model.commands.vector_commands import SearchVectors, VectorMatch
from tablegate.gateway.model.tables.indexes import VectorIndex
from tablegate.gateway.model.values.vectors import COMPONENT_BYTES, digest_of
from tablegate.gateway.store.rows import rows, vectors
from tablegate.gateway.store.rows.vectors import IndexVersions
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store

_PIECE_BYTES = 1 << 20
_FEWEST_ROWS, _MOST_ROWS = 16, 4_096
_MOST_VERSIONS = 1 << 20
_BEYOND_ALL = 1 << 62
# A partition of no more entries is read from the database where there is no image yet: that is sooner done than making one.
_FEW_ENTRIES = 2_000
# A graph is asked for so many times as many as are wanted, and for so many at least: it misses fewer of the nearest of more.
_CANDIDATES_FOR_EACH, _FEWEST_CANDIDATES = 10, 400
# Looking at a vector by way of a graph takes as long as looking at so many in a row.
_GRAPH_COST = 20
# Where a graph has found fewer that pass for each that is wanted, those that pass are elsewhere.
_ENOUGH_FOR_EACH = 2
# Versions are compared with those in the database by ranges of so many, so many ranges at a time.
_RANGE_WIDTH, _RANGES = 4_096, 64


def search(
    store: Store, session: Session, command: SearchVectors, now_ms: int
) -> Generator[None, None, list[VectorMatch]]:
    """The nearest rows, as a search that stops after each slice."""
    if store.vector_images is None:
        store.vector_images = IndexImages(store.vector_memory_bytes, store.vector_approximate_from)
    images: IndexImages = store.vector_images
    index = command.index
    partition = None if command.partition is None else digest_of(command.partition)
    versions = vectors.versions(session, index.id)
    target = exact_search.target(index.metric, command.vector, command.count, _digests(command, partition))
    best = NearestSoFar(target)
    image = None
    known = images.get(index.id, versions.server_start)
    is_of_one_moment = store.database.has_snapshots
    if is_of_one_moment and (
        partition is None or known is not None or not _is_small(session, index, partition)
    ):
        image = yield from _image(session, images, index, versions)
    if image is not None:
        approximate = yield from _by_graph(image, target, images.approximate_from)
        if approximate is not None:
            best = approximate
        else:
            for part in image.parts:
                best.look_at(part)
                yield
    else:
        # What is committed at several nodes is at one of them before another, so the counter says nothing of the entries.
        until = versions.last if is_of_one_moment else _BEYOND_ALL
        version = 0
        pieces = _EntryChunks(session, index, versions.last, partition, until)
        while version < until:
            entries, version = pieces.behind(version)
            if entries:
                block = VectorBlock.of(entries)
                best.look_at(BlockPart(block, block.length))
            yield
    return _found(session, command, best.found(), now_ms)


def _digests(command: SearchVectors, partition: bytes | None) -> list[tuple[int, bytes]]:
    """The digests that entries must have: (place among the columns of the index, digest)."""
    wanted = {} if partition is None else {0: partition}
    for at, column in enumerate(command.index.columns):
        if column.name in command.filters:
            wanted[at] = digest_of(command.filters[column.name])
    return sorted(wanted.items())


def _is_small(session: Session, index: VectorIndex, partition: bytes) -> bool:
    return vectors.has_at_most(session, index.id, partition, _FEW_ENTRIES)


def _by_graph(
    image: IndexImage, target: VectorSearch, at_least: int
) -> Generator[None, None, NearestSoFar | None]:
    """What is nearest as far as an image's graph knows. None: all is to be looked at, because fewer than `at_least` entries pass
    the filters, or there would be no less to do, or the graph has found too few that pass."""
    graph = image.graph
    if graph is None or not vector_graphs.can_look_for(target.vector):
        return None
    best = NearestSoFar(target)
    passing = 0
    for part in image.parts:
        passing += best.passing(part)
        yield
    # Of what is found no more may pass than of all.
    number = max(_FEWEST_CANDIDATES, _CANDIDATES_FOR_EACH * target.most) * image.length // max(1, passing)
    if passing < at_least or number * _GRAPH_COST > passing:
        return None
    candidates = graph.candidates(target.vector, number)
    yield
    found = _look_at(best, image, candidates.near)
    yield
    if found < _ENOUGH_FOR_EACH * target.most:
        return None
    _look_at(best, image, candidates.aside)
    for part, rows_behind in candidates.behind(image.parts):
        best.look_at(part, rows_behind)
        yield
    return best


def _look_at(best: NearestSoFar, image: IndexImage, places: Mapping[int, Rows]) -> int:
    """Look at some of the entries of an image; those that it does not have yet are left out. How many pass."""
    parts = image.parts
    return sum(
        best.look_at(parts[at], rows[rows < parts[at].length])
        for at, rows in places.items()
        if at < len(parts)
    )


class _EntryChunks:
    """The entries of an index, or of a partition of it, up to a version, in pieces of about a megabyte.

    Each is asked for between two versions, so that a database that knows nothing yet of how many entries there are does not sort
    all of them for a few. Between which, is found by how many the last one had. `until`: what is behind `last` up to there makes
    one piece; 0: nothing is looked for there."""

    def __init__(
        self, session: Session, index: VectorIndex, last: int, partition: bytes | None = None, until: int = 0
    ) -> None:
        self._session = session
        self._index_id = index.id
        self._last = last
        self._until = until
        self._partition = partition
        bytes_each = COMPONENT_BYTES * index.dimensions
        self._limit = self._width = max(_FEWEST_ROWS, min(_MOST_ROWS, _PIECE_BYTES // bytes_each))

    def behind(self, version: int) -> tuple[Sequence[StoredEntry], int]:
        """Some of the entries behind a version, and up to which version these are all."""
        end = self._until if version >= self._last else min(version + self._width, self._last)
        found = vectors.between(self._session, self._index_id, version, end, self._limit, self._partition)
        if len(found) == self._limit:
            self._width = max(self._limit, self._width // 2)
            return found, found[-1][0]
        if 2 * len(found) < self._limit:
            self._width = min(_MOST_VERSIONS, 2 * self._width)
        return found, end


def _found(
    session: Session, command: SearchVectors, found: Sequence[tuple[int, float]], now_ms: int
) -> list[VectorMatch]:
    if not found:
        return []
    table = command.table
    entries = vectors.by_version(session, command.index.id, [version for version, _ in found])
    keys = [(table.id, position) for position, _ in entries.values()]
    there = rows.fetch_many(session, sorted(keys))
    nearest_rows = []
    for version, score in found:
        if version not in entries:
            continue  # without a snapshot of all nodes: it was replaced meanwhile
        position, vector = entries[version]
        row = table.visible(there.get((table.id, position)), now_ms)
        if row is not None:
            nearest_rows.append(VectorMatch(row, score, vector))
    return nearest_rows


# The image


def _image(
    session: Session, images: IndexImages, index: VectorIndex, versions: IndexVersions
) -> Generator[None, None, IndexImage | None]:
    """The image of an index as the session sees it, brought up to date; None: it is to be read from the database."""
    last, replaced, server_start = versions
    if images.get(index.id, server_start) is None:
        number, _ = vectors.count(session, index.id)
        if not images.has_room(index, number):
            return None
    pieces = _EntryChunks(session, index, last)
    while True:
        image = images.get(index.id, server_start)
        if image is not None and image.seen_at > last:
            return None  # somebody who sees more has been here
        if image is not None and image.version >= last:
            break
        entries, version = pieces.behind(0 if image is None else image.version)
        if not images.add(index, image, entries, version, versions):
            return None
        yield
    if image.clean_at < replaced:
        gone = yield from _gone(session, index, image)
        return images.clean(index, image, gone)
    return image


def _gone(session: Session, index: VectorIndex, image: IndexImage) -> Generator[None, None, list[int]]:
    """The versions of entries of an image that are no longer there. What is there is in the image, so where the numbers are equal
    the entries are."""
    gone: list[int] = []
    counted = index_images.counts_by_range(image, _RANGE_WIDTH)
    ranges = [*counted]
    for start in range(0, len(ranges), _RANGES):
        some = ranges[start : start + _RANGES]
        first, end = some[0] * _RANGE_WIDTH, (some[-1] + 1) * _RANGE_WIDTH
        there = vectors.counts_by_range(session, index.id, first, end - 1, _RANGE_WIDTH)
        for at in some:
            if there.get(at, 0) != counted[at]:
                between = at * _RANGE_WIDTH, (at + 1) * _RANGE_WIDTH - 1
                known = vectors.versions_between(session, index.id, *between)
                gone += sorted({*index_images.versions_between(image, *between)} - {*known})
        yield
    return gone
