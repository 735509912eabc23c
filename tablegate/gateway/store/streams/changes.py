"""SQL for streams, shards and changes.

A change takes its sequence from its shard's counter. The counter is locked until the write's transaction ends. So
sequence order is commit order in a shard, and a reader never passes an uncommitted change. A distributed database keeps
both on one node, because both have the counter's slot. Otherwise a reader could see a later change on one node before
an earlier one on another, and pass it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from tablegate.gateway.model.commands.writes import ChangeKind
from tablegate.gateway.model.expressions.updates import Action, DeleteCell, DeleteCells, PutCell
from tablegate.gateway.model.tables.changes import Change, Shard, Stream
from tablegate.gateway.model.tables.tables import StreamRule, Table
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.keys import LOWEST, Position, key_schema_document, key_schema_of
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.store.sql import counters
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.tables.descriptors import stream_rule

_STREAM = "id, table_id, namespace, table_name, key_schema, rule, opened_at_ms, ended_at_ms"
_SHARD = "number, first_hash, last_hash, parents, opened_at_ms, closed_at_ms, last_sequence, trimmed"
_CHANGE = (
    "shard, sequence, at_ms, kind, noop, actor, key, old_modified_at, old_kinds, old_body,"
    " new_modified_at, new_kinds, new_body, actions"
)

# Maximum size of the images deleted in one batch.
_TRIMMED_BYTES = 4_000_000

ShardKey = tuple[int, int]
"""(stream id, shard number)."""


# Streams


def add_stream(session: Session, stream: Stream) -> None:
    """Insert a new stream."""
    session.execute(
        f"INSERT INTO streams ({_STREAM}, label) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            stream.id,
            stream.table_id,
            stream.namespace,
            stream.table_name,
            orjson.dumps(key_schema_document(stream.key_schema)).decode(),
            _rule_json(stream.rule),
            stream.opened_at_ms,
            stream.ended_at_ms,
            stream.label,
        ),
    )


def update_rule(session: Session, rule: StreamRule) -> None:
    """Update the rule of a stream."""
    session.execute("UPDATE streams SET rule = ? WHERE id = ?", (_rule_json(rule), rule.id))


def end_stream(session: Session, stream_id: int, now_ms: int) -> None:
    """End a stream and close its shards."""
    session.execute(
        "UPDATE streams SET ended_at_ms = ? WHERE id = ? AND ended_at_ms IS NULL", (now_ms, stream_id)
    )
    for shard in shards_of(session, stream_id):
        if shard.closed_at_ms is None:
            close_shard(session, (stream_id, shard.number), now_ms)


def find_streams(
    session: Session, namespace: str, table_name: str | None = None, label: str | None = None
) -> list[Stream]:
    """Return the streams of a namespace, optionally of one table or with one label, ordered by table name and age."""
    condition, values = "namespace = ?", [namespace]
    for column, value in (("table_name", table_name), ("label", label)):
        if value is not None:
            if "\0" in value:  # no name has a NUL, and PostgreSQL accepts no text with one
                return []
            condition += f" AND {column} = ?"
            values.append(value)
    rows = session.query(f"SELECT {_STREAM} FROM streams WHERE {condition} ORDER BY table_name, id", values)
    return [_stream(columns) for columns in rows]


def all_streams(session: Session) -> list[Stream]:
    """Return all streams, for the command line."""
    return [_stream(columns) for columns in session.query(f"SELECT {_STREAM} FROM streams ORDER BY id")]


def stream_by_id(session: Session, stream_id: int) -> Stream | None:
    """Return the stream with this id, or None. Permissions are not checked."""
    rows = session.query(f"SELECT {_STREAM} FROM streams WHERE id = ?", (stream_id,))
    return _stream(rows[0]) if rows else None


def next_stream(session: Session, table_id: int, stream_id: int) -> Stream | None:
    """Return the next later stream of a table, or None."""
    rows = session.query(
        f"SELECT {_STREAM} FROM streams WHERE table_id = ? AND id > ? ORDER BY id LIMIT 1",
        (table_id, stream_id),
    )
    return _stream(rows[0]) if rows else None


def streams_after(session: Session, stream_id: int, limit: int) -> list[Stream]:
    """Return the next streams by id."""
    rows = session.query(
        f"SELECT {_STREAM} FROM streams WHERE id > ? ORDER BY id LIMIT ?", (stream_id, limit)
    )
    return [_stream(columns) for columns in rows]


def remove_stream(session: Session, stream_id: int) -> None:
    """Delete a stream and its shards. Its changes must be deleted already."""
    session.execute("DELETE FROM shards WHERE stream_id = ?", (stream_id,))
    session.execute("DELETE FROM streams WHERE id = ?", (stream_id,))
    counters.forget_stream(session, stream_id)


def _stream(columns: Sequence[Any]) -> Stream:
    stream_id, table_id, namespace, table_name, schema, rule, opened_at_ms, ended_at_ms = columns
    return Stream(
        stream_id,
        table_id,
        namespace,
        table_name,
        key_schema_of(orjson.loads(schema)),
        stream_rule(orjson.loads(rule)),
        opened_at_ms,
        ended_at_ms,
    )


def _rule_json(rule: StreamRule) -> str:
    return orjson.dumps(rule).decode()


# Shards


def add_shard(session: Session, stream_id: int, shard: Shard) -> None:
    """Insert a shard. Its first change comes after `trimmed_sequence`."""
    session.execute(
        f"INSERT INTO shards (stream_id, {_SHARD}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            stream_id,
            shard.number,
            *shard.hashes,
            orjson.dumps(shard.parents).decode(),
            shard.opened_at_ms,
            shard.closed_at_ms,
            shard.last_sequence,
            shard.trimmed_sequence,
        ),
    )
    if shard.trimmed_sequence:
        counters.advance(
            session, counters.shard_counter(stream_id, shard.number), 0, floor=shard.trimmed_sequence
        )


def close_shard(session: Session, shard: ShardKey, now_ms: int) -> int:
    """Close a shard and return its last sequence. The caller must have locked the table, so that no change can follow."""
    last = last_sequence(session, shard)
    session.execute(
        "UPDATE shards SET closed_at_ms = ?, last_sequence = ? WHERE stream_id = ? AND number = ?",
        (now_ms, last, *shard),
    )
    return last


def shards_of(session: Session, stream_id: int) -> list[Shard]:
    """Return the shards of a stream that are not deleted, by number. Parents come before their children."""
    rows = session.query(f"SELECT {_SHARD} FROM shards WHERE stream_id = ? ORDER BY number", (stream_id,))
    return [_shard(columns) for columns in rows]


def remove_shard(session: Session, shard: ShardKey) -> None:
    """Delete a closed shard. Its changes must be deleted already."""
    session.execute("DELETE FROM shards WHERE stream_id = ? AND number = ?", shard)
    counters.forget(session, counters.shard_counter(*shard))


def find_shard(session: Session, shard: ShardKey) -> Shard | None:
    """Return a shard, or None."""
    rows = session.query(f"SELECT {_SHARD} FROM shards WHERE stream_id = ? AND number = ?", shard)
    return _shard(rows[0]) if rows else None


def _shard(columns: Sequence[Any]) -> Shard:
    number, first_hash, last_hash, parents, *times_and_sequences = columns
    return Shard(number, (first_hash, last_hash), tuple(orjson.loads(parents)), *times_and_sequences)


def last_sequence(session: Session, shard: ShardKey) -> int:
    """Return the sequence of the last committed change of a shard, or 0."""
    return counters.value_of(session, counters.shard_counter(*shard))


def next_sequences(session: Session, stream_id: int) -> dict[int, int]:
    """Return the next sequence of each shard of a stream, by shard number."""
    return {
        shard.number: last_sequence(session, (stream_id, shard.number)) + 1
        for shard in shards_of(session, stream_id)
    }


def _at_slot(shard: ShardKey) -> tuple[int, int, int]:
    """Return (stream id, shard number, slot), the key prefix of a shard's changes."""
    return (*shard, counters.slot_of_counter(counters.shard_counter(*shard)))


# Changes


def append(session: Session, shard: ShardKey, changes: Sequence[Change]) -> None:
    """Append changes to a shard in this order. Their own sequences are ignored."""
    name = counters.shard_counter(*shard)
    slot = counters.slot_of_counter(name)
    first = counters.advance(session, name, len(changes)) - len(changes) + 1
    session.execute_many(
        f"INSERT INTO changes (slot, stream_id, {_CHANGE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(slot, *_columns(shard, sequence, change)) for sequence, change in enumerate(changes, first)],
    )


def page(session: Session, shard: ShardKey, sequence: int, limit: int) -> list[Change]:
    """Return up to `limit` changes of a shard from a sequence on."""
    rows = session.query(
        f"SELECT {_CHANGE} FROM changes WHERE stream_id = ? AND shard = ? AND slot = ? AND sequence >= ?"
        " ORDER BY sequence LIMIT ?",
        (*_at_slot(shard), sequence, limit),
    )
    return [_change(columns) for columns in rows]


def first_since(session: Session, shard: ShardKey, at_ms: int) -> int | None:
    """Return the sequence of the first change made at this time or later, or None."""
    [(sequence,)] = session.query(
        "SELECT min(sequence) FROM changes WHERE stream_id = ? AND shard = ? AND slot = ? AND at_ms >= ?",
        (*_at_slot(shard), at_ms),
    )
    return None if sequence is None else int(sequence)


def trim(session: Session, shard: ShardKey, before_ms: int, limit: int, below: int | None = None) -> int:
    """Delete up to `limit` of the oldest changes of a shard that were made before a time. Return their number.

    If `below` is given, only changes with lower sequences are deleted.
    """
    oldest = session.query(
        "SELECT sequence, at_ms, COALESCE(length(old_body), 0) + COALESCE(length(new_body), 0)"
        " FROM changes WHERE stream_id = ? AND shard = ? AND slot = ? ORDER BY sequence LIMIT ?",
        (*_at_slot(shard), limit),
    )
    sequences: list[int] = []
    size = 0
    for sequence, at_ms, size_bytes in oldest:
        size += size_bytes
        is_held = below is not None and sequence >= below
        if at_ms >= before_ms or is_held or (sequences and size > _TRIMMED_BYTES):
            break
        sequences.append(sequence)
    if not sequences:
        return 0
    session.execute(
        "DELETE FROM changes WHERE stream_id = ? AND shard = ? AND slot = ? AND sequence <= ?",
        (*_at_slot(shard), sequences[-1]),
    )
    session.execute(
        "UPDATE shards SET trimmed = ? WHERE stream_id = ? AND number = ?", (sequences[-1], *shard)
    )
    return len(sequences)


def has_older(session: Session, shard: ShardKey, before_ms: int) -> bool:
    """Return True if a shard has changes made before this time."""
    return bool(
        session.query(
            "SELECT 1 FROM changes WHERE stream_id = ? AND shard = ? AND slot = ? AND at_ms < ? LIMIT 1",
            (*_at_slot(shard), before_ms),
        )
    )


def count_older(
    session: Session, shard: ShardKey, before_ms: int, at_most: int, below: int | None = None
) -> int:
    """Return the number of changes that `trim` would delete. Stops counting at a number."""
    condition, parameters = ("", ()) if below is None else (" AND sequence < ?", (below,))
    [(number,)] = session.query(
        "SELECT count(*) FROM (SELECT 1 FROM changes WHERE stream_id = ? AND shard = ? AND slot = ? AND at_ms < ?"
        f"{condition} LIMIT ?) AS counted",
        (*_at_slot(shard), before_ms, *parameters, at_most),
    )
    return int(number)


def _columns(shard: ShardKey, sequence: int, change: Change) -> tuple[Any, ...]:
    return (
        *shard,
        sequence,
        change.at_ms,
        change.kind.value,
        int(change.is_noop),
        change.actor,
        bodies.encode(change.key_values),
        *_row_columns(change.old),
        *_row_columns(change.new),
        actions_json(change.actions) if change.actions else None,
    )


def _row_columns(row: Row | None) -> tuple[Any, ...]:
    return (None, None, None) if row is None else (row.modified_at, row.contents.kinds, row.body)


def _change(columns: Sequence[Any]) -> Change:
    shard, sequence, at_ms, kind, noop, actor, key, *rows, actions = columns
    return Change(
        shard,
        sequence,
        ChangeKind(kind),
        bodies.decode(key),
        _row(*rows[:3]),
        _row(*rows[3:]),
        actions_of(actions) if actions else (),
        actor,
        at_ms,
        bool(noop),
    )


def _row(modified_at: int | None, kinds: bytes | None, body: bytes | None) -> Row | None:
    """Return a previous version of a row. It has no position, because the change has the key."""
    if modified_at is None:
        return None
    return Row(Position(LOWEST, LOWEST), Contents(body, kinds, 0), modified_at)


def actions_json(actions: Iterable[Action]) -> bytes:
    """Return actions on cells as JSON."""
    documents: list[list[Any]] = []
    for action in actions:
        match action:
            case PutCell(name, value, stamp_ms):
                documents.append([name, stamp_ms, bodies.tagged(value)])
            case DeleteCell(name, stamp_ms):
                documents.append([name, stamp_ms])
            case DeleteCells(name):
                documents.append([name])
    return orjson.dumps(documents)


def actions_of(data: bytes) -> tuple[Action, ...]:
    """Return the actions of a JSON text from actions_json."""
    actions: list[Action] = []
    for document in orjson.loads(data):
        match document:
            case [name, stamp_ms, value]:
                actions.append(PutCell(name, bodies.untagged(value), stamp_ms))
            case [name, stamp_ms]:
                actions.append(DeleteCell(name, stamp_ms))
            case [name]:
                actions.append(DeleteCells(name))
    return tuple(actions)


def stream_of(table: Table, rule: StreamRule, stream_id: int, now_ms: int) -> Stream:
    """Return the stream that a rule begins."""
    return Stream(stream_id, table.id, table.namespace, table.name, table.key_schema, rule, now_ms, None)
