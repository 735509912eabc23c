"""The kind of vector indexes, and SQL for their entries.

An entry has a vector, digests of the filter columns, and the key of its row.

Each written entry gets the next number of its index as its version. The counter stays locked until the transaction
ends, so a reader of all versions up to one has missed none below it. A second counter holds the version at which an
entry was last removed or replaced. Beyond that version, all entries are new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tablegate.gateway.features.vectors.vectors import Metric, VectorEntry, VectorIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.values.keys import KeySchema, Position, key_schema_document, key_schema_of
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows.row_counts import CountChanges
from tablegate.gateway.store.sql import counters
from tablegate.gateway.store.sql.databases import Row as Columns
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.sql.owned_rows import KINDS, OwnedRows
from tablegate.gateway.store.sql.positions import position_of, stored_position
from tablegate.gateway.store.tables.index_kinds import IndexKind, RowPair

COLUMNS = (
    "index_id, partition, sort, slot, version, size_bytes, partition_digest, filter_digests, full_key, vector"
)
_ADD = f"INSERT INTO vectors ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SAVE = _ADD + (
    " ON CONFLICT (index_id, partition, sort, slot) DO UPDATE SET version = excluded.version,"
    " size_bytes = excluded.size_bytes, partition_digest = excluded.partition_digest,"
    " filter_digests = excluded.filter_digests, vector = excluded.vector"
)
_FILL = _ADD + " ON CONFLICT DO NOTHING"
_REMOVE = "DELETE FROM vectors WHERE index_id = ? AND partition = ? AND sort = ? AND slot = ?"


class IndexVersions(NamedTuple):
    """The versions of an index: of the last change, and of the last removal or replacement.

    `server_start` identifies the server run in which versions are comparable (Statements.server_start).
    """

    last: int
    replaced: int
    server_start: str


class VectorIndexKind(IndexKind[VectorIndex]):
    """The vector indexes."""

    name = VectorIndex.kind
    member = "vector"
    columns = COLUMNS

    def definition_of(self, index: VectorIndex) -> dict[str, Any]:
        columns = KeySchema(() if index.partition is None else (index.partition,), index.filters)
        partition, filters = key_schema_document(columns)
        return {
            "vector": {
                "attribute": index.attribute,
                "dimensions": index.dimensions,
                "metric": index.metric.value,
                "partition": partition or None,
                "filters": filters,
            },
            "projection": index.projection.value,
            "included": index.included,
            "dialect": index.dialect,
        }

    def index_of(self, definition: Mapping[str, Any]) -> VectorIndex:
        vector = definition["vector"]
        columns = key_schema_of([vector["partition"] or (), vector["filters"]])
        return VectorIndex(
            id=0,
            name="",
            attribute=vector["attribute"],
            dimensions=vector["dimensions"],
            metric=Metric(vector["metric"]),
            projection=IndexProjection(definition["projection"]),
            included=tuple(definition["included"]),
            partition=next(iter(columns.partition), None),
            filters=columns.sort,
            dialect=definition["dialect"],
        )

    def update(
        self, session: Session, indexes: Sequence[VectorIndex], pairs: Sequence[RowPair], counts: CountChanges
    ) -> None:
        for index in indexes:
            new_entries: list[VectorEntry] = []
            changed_entries: list[VectorEntry] = []
            old_entries: list[VectorEntry] = []
            for old, new in pairs:
                before = None if old is None else index.entry(old)
                after = None if new is None else index.entry(new)
                counts.add(index.id, before, after)
                if after is None:
                    if before is not None:
                        old_entries.append(before)
                elif before is None:
                    new_entries.append(after)
                elif not after.is_stored_as(before):
                    changed_entries.append(after)
            if new_entries or changed_entries or old_entries:
                save_many(session, index.id, new_entries, changed_entries, old_entries)

    def fill(self, session: Session, index: VectorIndex, rows: Iterable[Row]) -> None:
        fill(session, index.id, [entry for row in rows if (entry := index.entry(row)) is not None])

    def copy(self, session: Session, index_id: int, to: int) -> None:
        super().copy(session, index_id, to)
        counters.advance(session, _counter(to), 0, floor=versions(session, index_id).last)


INDEX_KIND = VectorIndexKind()


# Writing


def save_many(
    session: Session,
    index_id: int,
    new_entries: Sequence[VectorEntry],
    changed_entries: Sequence[VectorEntry],
    removed_entries: Sequence[VectorEntry],
) -> None:
    """Insert new entries, update changed ones and delete removed ones."""
    entries = [*new_entries, *changed_entries]
    last = counters.advance(session, _counter(index_id), len(entries) + 1)
    if changed_entries or removed_entries:
        counters.advance(session, _replacement_counter(index_id), 0, floor=last)
    if entries:
        session.execute_many(_SAVE, _columns(index_id, entries, last - len(entries)))
    if removed_entries:
        keys = [(index_id, *stored_position(entry.row.position)[:3]) for entry in removed_entries]
        session.execute_many(_REMOVE, sorted(keys))


def fill(session: Session, index_id: int, entries: Sequence[VectorEntry]) -> None:
    """Insert entries for rows that had none. Entries that writers stored meanwhile are kept."""
    if entries:
        last = counters.advance(session, _counter(index_id), len(entries))
        session.execute_many(_FILL, _columns(index_id, entries, last - len(entries)))


def _columns(index_id: int, entries: Sequence[VectorEntry], before: int) -> list[Columns]:
    columns = []
    for number, entry in enumerate(entries, before + 1):
        partition, sort, slot, full_key = stored_position(entry.row.position)
        digest = entry.partition or None
        columns.append(
            (
                index_id,
                partition,
                sort,
                slot,
                number,
                entry.size_bytes,
                digest,
                entry.filters,
                full_key,
                entry.vector,
            )
        )
    return sorted(columns, key=lambda each: each[:4])


def _forget(session: Session, index_id: int, limit: int) -> int:
    """Delete the counters of a dropped index. Return 0, as they are only two."""
    counters.forget(session, _counter(index_id))
    counters.forget(session, _replacement_counter(index_id))
    return 0


KINDS[VectorIndex.kind] = OwnedRows(
    "vectors", "index_id", "partition, sort", "size_bytes", narrow="version >= 0", forget=_forget
)


# Reading


def versions(session: Session, index_id: int) -> IndexVersions:
    """Return the current versions of an index."""
    names = _counter(index_id), _replacement_counter(index_id)
    rows = session.query(
        f"SELECT name, value, {session.statements.server_start} FROM counters"
        " WHERE (name = ? AND slot = ?) OR (name = ? AND slot = ?)",
        [parameter for name in names for parameter in (name, counters.slot_of_counter(name))],
    )
    values = {name: int(value) for name, value, _ in rows}
    return IndexVersions(values.get(names[0], 0), values.get(names[1], 0), rows[0][2] if rows else "")


def has_at_most(session: Session, index_id: int, partition: bytes, limit: int) -> bool:
    """Return True if a partition of an index has at most `limit` entries."""
    [(number,)] = session.query(
        "SELECT count(*) FROM (SELECT 1 FROM vectors WHERE index_id = ? AND partition_digest = ? LIMIT ?) AS counted",
        (index_id, partition, limit + 1),
    )
    return bool(number <= limit)


def between(
    session: Session, index_id: int, after: int, last: int, limit: int, partition: bytes | None = None
) -> list[Columns]:
    """Return the next entries with versions in (after, last], of one partition or of all, in order of version.

    Each is (version, partition digest, filter digests, vector).
    """
    condition = ""
    parameters: list[int | bytes] = [index_id, after, last]
    if partition is not None:
        condition = " AND partition_digest = ?"
        parameters.append(partition)
    return session.query(
        "SELECT version, partition_digest, filter_digests, vector FROM vectors"
        f" WHERE index_id = ? AND version > ? AND version <= ?{condition} ORDER BY version LIMIT ?",
        (*parameters, limit),
    )


def counts_by_range(session: Session, index_id: int, first: int, last: int, width: int) -> dict[int, int]:
    """Return the number of entries with versions in [first, last] for each range of `width` versions.

    Range n begins at version n * width.
    """
    rows = session.query(
        "SELECT version / ? AS part, count(*) FROM vectors WHERE index_id = ? AND version >= ? AND version <= ?"
        " GROUP BY 1",
        (width, index_id, first, last),
    )
    return {int(part): int(number) for part, number in rows}


def versions_between(session: Session, index_id: int, first: int, last: int) -> list[int]:
    """Return the existing versions in [first, last], in order."""
    rows = session.query(
        "SELECT version FROM vectors WHERE index_id = ? AND version >= ? AND version <= ? ORDER BY version",
        (index_id, first, last),
    )
    return [version for (version,) in rows]


def by_version(session: Session, index_id: int, versions: Sequence[int]) -> dict[int, tuple[Position, bytes]]:
    """Return the row's position and the vector of each entry, by version."""
    condition, parameters = session.statements.one_of("version", versions)
    rows = session.query(
        f"SELECT version, partition, sort, full_key, vector FROM vectors WHERE index_id = ? AND {condition}",
        (index_id, *parameters),
    )
    return {version: (position_of(*key), vector) for version, *key, vector in rows}


def _counter(index_id: int) -> str:
    return f"vectors/{index_id}"


def _replacement_counter(index_id: int) -> str:
    return f"vectors-replaced/{index_id}"
