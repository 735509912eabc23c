"""Search of a vector index. Every entry is compared, so the result is exact, unless an approximate graph is used.

A search reads one snapshot, like any page, and runs in slices. It scans the index's image in memory (index_images.py),
updated by the changes since. Entries are read from the database instead if no image fits into memory, or the database
has no snapshot over all nodes. This module needs numpy, so the first search imports it (reading.py).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from tablegate.gateway.features.vectors import exact_search, index_images, vector_store
from tablegate.gateway.features.vectors.exact_search import (
    BlockPart,
    NearestSoFar,
    StoredEntry,
    VectorBlock,
    VectorSearch,
)
from tablegate.gateway.features.vectors.index_images import IndexImage, IndexImages, Rows
from tablegate.gateway.features.vectors.vector_store import IndexVersions
from tablegate.gateway.features.vectors.vectors import (
    COMPONENT_BYTES,
    SearchVectors,
    VectorIndex,
    VectorMatch,
    digest_of,
)
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store

_CHUNK_BYTES = 1 << 20
_MIN_ROWS, _MAX_ROWS = 16, 4_096
_MAX_WIDTH = 1 << 20
_MAX_VERSION = 1 << 62
# A partition of at most this many entries is read from the database if no image exists. That is faster than building
# one.
_SMALL_PARTITION_ENTRIES = 2_000
# Candidates requested from a graph: a multiple of the result size, and a minimum. More candidates improve recall.
_CANDIDATES_PER_RESULT, _MIN_CANDIDATES = 10, 400
# Cost of a vector found by a graph, relative to one that is scanned in sequence.
_GRAPH_COST = 20
# Matching candidates needed for each result. If there are fewer, the matching vectors lie outside of the candidates.
_MATCHES_PER_RESULT = 2
# Versions are compared with those in the database by ranges of this width, and this number of ranges at a time.
_RANGE_WIDTH, _RANGES = 4_096, 64


def search(
    images: IndexImages, store: Store, session: Session, command: SearchVectors, now_ms: int
) -> Generator[None, None, list[VectorMatch]]:
    """Yield after each slice of a search, and return the nearest rows."""
    index = command.index
    partition = None if command.partition is None else digest_of(command.partition)
    versions = vector_store.versions(session, index.id)
    target = exact_search.search_near(
        index.metric, command.vector, command.count, _digests(command, partition)
    )
    best = NearestSoFar(target)
    image = None
    cached_image = images.get(index.id, versions.server_start)
    has_snapshot = store.database.has_snapshots
    if has_snapshot and (
        partition is None or cached_image is not None or not _is_small(session, index, partition)
    ):
        image = yield from _current_image(session, images, index, versions)
    if image is not None:
        from_graph = yield from _search_graph(image, target, images.approximate_from)
        if from_graph is not None:
            best = from_graph
        else:
            for part in image.parts:
                best.scan(part)
                yield
    else:
        # A commit over several nodes is not visible at all of them at once. The counter therefore does not bound the
        # entries.
        last_version = versions.last if has_snapshot else _MAX_VERSION
        version = 0
        chunks = _EntryChunks(session, index, versions.last, partition, last_version)
        while version < last_version:
            entries, version = chunks.after(version)
            if entries:
                block = VectorBlock.of(entries)
                best.scan(BlockPart(block, block.length))
            yield
    return _matches(session, command, best.results(), now_ms)


def _digests(command: SearchVectors, partition: bytes | None) -> list[tuple[int, bytes]]:
    """Return the digests that entries must have: (column number, digest), sorted."""
    digests = {} if partition is None else {0: partition}
    for at, column in enumerate(command.index.columns):
        if column.name in command.filters:
            digests[at] = digest_of(command.filters[column.name])
    return sorted(digests.items())


def _is_small(session: Session, index: VectorIndex, partition: bytes) -> bool:
    return vector_store.has_at_most(session, index.id, partition, _SMALL_PARTITION_ENTRIES)


def _search_graph(
    image: IndexImage, target: VectorSearch, at_least: int
) -> Generator[None, None, NearestSoFar | None]:
    """Return the nearest entries that an image's graph finds, or None if a full scan is needed.

    A scan is needed if fewer than `at_least` entries pass the filters, if the graph would not be cheaper, or if it
    found too few that pass.
    """
    graph = image.graph
    if graph is None or not index_images.is_searchable(target.vector):
        return None
    best = NearestSoFar(target)
    matching_count = 0
    for part in image.parts:
        matching_count += best.count_matching(part)
        yield
    # The share of passing entries is not higher among the candidates than among all.
    number = (
        max(_MIN_CANDIDATES, _CANDIDATES_PER_RESULT * target.limit) * image.length // max(1, matching_count)
    )
    if matching_count < at_least or number * _GRAPH_COST > matching_count:
        return None
    candidates = graph.candidates(target.vector, number)
    yield
    candidate_count = _scan_rows(best, image, candidates.near)
    yield
    if candidate_count < _MATCHES_PER_RESULT * target.limit:
        return None
    _scan_rows(best, image, candidates.excluded)
    for part, unindexed in candidates.not_indexed(image.parts):
        best.scan(part, unindexed)
        yield
    return best


def _scan_rows(best: NearestSoFar, image: IndexImage, places: Mapping[int, Rows]) -> int:
    """Scan some rows of an image, without those beyond it. Return the number that match."""
    parts = image.parts
    return sum(
        best.scan(parts[at], rows[rows < parts[at].length]) for at, rows in places.items() if at < len(parts)
    )


class _EntryChunks:
    """The entries of an index, or of one of its partitions, up to a version, in chunks of about a megabyte.

    Each query is bounded by two versions, so that a database without statistics does not sort all entries for a few.
    The distance of the versions follows from the size of the last chunk. The entries after `last` up to `until` form
    one chunk, which `until=0` omits.
    """

    def __init__(
        self, session: Session, index: VectorIndex, last: int, partition: bytes | None = None, until: int = 0
    ) -> None:
        self._session = session
        self._index_id = index.id
        self._last = last
        self._until = until
        self._partition = partition
        bytes_each = COMPONENT_BYTES * index.dimensions
        self._limit = self._width = max(_MIN_ROWS, min(_MAX_ROWS, _CHUNK_BYTES // bytes_each))

    def after(self, version: int) -> tuple[Sequence[StoredEntry], int]:
        """Return some of the entries after a version, and the version up to which they are complete."""
        end = self._until if version >= self._last else min(version + self._width, self._last)
        entries = vector_store.between(
            self._session, self._index_id, version, end, self._limit, self._partition
        )
        if len(entries) == self._limit:
            self._width = max(self._limit, self._width // 2)
            return entries, entries[-1][0]
        if 2 * len(entries) < self._limit:
            self._width = min(_MAX_WIDTH, 2 * self._width)
        return entries, end


def _matches(
    session: Session, command: SearchVectors, results: Sequence[tuple[int, float]], now_ms: int
) -> list[VectorMatch]:
    if not results:
        return []
    table = command.table
    entries = vector_store.by_version(session, command.index.id, [version for version, _ in results])
    keys = [(table.id, position) for position, _ in entries.values()]
    rows_by_key = rows.fetch_many(session, sorted(keys))
    nearest_rows = []
    for version, score in results:
        if version not in entries:
            continue  # replaced meanwhile, if there is no snapshot over all nodes
        position, vector = entries[version]
        row = table.visible(rows_by_key.get((table.id, position)), now_ms)
        if row is not None:
            nearest_rows.append(VectorMatch(row, score, vector))
    return nearest_rows


# The image


def _current_image(
    session: Session, images: IndexImages, index: VectorIndex, versions: IndexVersions
) -> Generator[None, None, IndexImage | None]:
    """Return the image of an index as the session sees it. None if it must be read from the database."""
    last, replaced, server_start = versions
    if images.get(index.id, server_start) is None:
        number, _ = vector_store.INDEX_KIND.count(session, index.id)
        if not images.fits(index, number):
            return None
    chunks = _EntryChunks(session, index, last)
    while True:
        image = images.get(index.id, server_start)
        if image is not None and image.seen_at > last:
            return None  # another reader has updated it to a later snapshot
        if image is not None and image.version >= last:
            break
        entries, version = chunks.after(0 if image is None else image.version)
        if not images.add(index, image, entries, version, versions):
            return None
        yield
    if image.clean_at < replaced:
        removed = yield from _removed_versions(session, index, image)
        return images.clean(index, image, removed)
    return image


def _removed_versions(
    session: Session, index: VectorIndex, image: IndexImage
) -> Generator[None, None, list[int]]:
    """Return the versions in an image that no longer exist. An image has all existing entries, so equal counts mean
    equal entries."""
    removed: list[int] = []
    image_counts = index_images.counts_by_range(image, _RANGE_WIDTH)
    ranges = [*image_counts]
    for start in range(0, len(ranges), _RANGES):
        batch = ranges[start : start + _RANGES]
        first, end = batch[0] * _RANGE_WIDTH, (batch[-1] + 1) * _RANGE_WIDTH
        stored_counts = vector_store.counts_by_range(session, index.id, first, end - 1, _RANGE_WIDTH)
        for at in batch:
            if stored_counts.get(at, 0) != image_counts[at]:
                between = at * _RANGE_WIDTH, (at + 1) * _RANGE_WIDTH - 1
                stored_versions = vector_store.versions_between(session, index.id, *between)
                removed += sorted({*index_images.versions_between(image, *between)} - {*stored_versions})
        yield
    return removed
