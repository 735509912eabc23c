"""The SQL of PostgreSQL, and rows in the binary format of its COPY, which needs no parsing of text.

Rows are claimed before they are read. A set of two or more is sent as one array for each column, a set of one as the
plain statement, which is faster.

The format is described under "COPY", "Binary Format" in PostgreSQL's documentation.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

import psycopg

from tablegate.gateway.model.tables.pages import Concatenation
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.checksums import ROW_COLUMNS, ROW_WIDTH
from tablegate.gateway.store.sql.databases import (
    BodyPattern,
    Condition,
    Key,
    KeyOccupied,
    Pending,
    Row,
    Session,
    Statements,
    Wildcards,
)
from tablegate.gateway.store.sql.prefilters import spelled
from tablegate.gateway.store.tables import index_kinds

_HEADER = b"PGCOPY\n\xff\r\n\x00" + struct.pack(">ii", 0, 0)
_TRAILER = struct.pack(">h", -1)
_NULL = struct.pack(">i", -1)

_length = struct.Struct(">i").pack
# Each field is its length and its value. A row begins with the number of its columns. `_head` packs that number, the
# table id and the length of the partition. `_slot_and_time` packs the fields of the slot and of the time of the last
# write.
_head = struct.Struct(">hiqi").pack
_slot_and_time = struct.Struct(">ihiq").pack
_bigint = struct.Struct(">iq").pack
_integer = struct.Struct(">ii").pack


def encode(rows: Sequence[tuple[Any, ...]]) -> bytes:
    """Return rows, with columns in the order of rows.COLUMNS, as the input of a binary COPY."""
    parts = [_HEADER]
    for (
        table_id,
        partition,
        sort,
        slot,
        modified_at,
        expires_at_ms,
        size_bytes,
        kinds,
        body,
        full_key,
        checksum,
    ) in rows:
        parts += (
            _head(11, 8, table_id, len(partition)), partition,
            _length(len(sort)), sort,
            _slot_and_time(2, slot, 8, modified_at),
            _NULL if expires_at_ms is None else _bigint(8, expires_at_ms),
            _integer(4, size_bytes),
            _NULL if kinds is None else _length(len(kinds)) + kinds,
            _length(len(body)), body,
            _NULL if full_key is None else _length(len(full_key)) + full_key,
            _bigint(8, checksum),
        )  # fmt: skip
    parts.append(_TRAILER)
    return b"".join(parts)


# A transaction's id and the position of the log after its first lock. The transaction has a record before that
# position, and its commit can only be after it (PostgreSQL.committed).
TRANSACTION_ID = "pg_current_xact_id()::text || '/' || (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::text"
# A set of numbers. The sub-select hides its length from the planner. Otherwise the planner would plan each set of fewer
# than ten members anew, because the plan for an unknown number, kept with the prepared statement, assumes ten.
NUMBERS = "ANY((SELECT ?::bigint[])::bigint[])"

# Returns the transaction's id too, which saves a statement. The lock is a separate part, so that it comes before the id
# is assigned.
LOCK_VERSIONS = f"""
WITH locked AS MATERIALIZED (SELECT id, version FROM tables WHERE id = {NUMBERS} ORDER BY id FOR SHARE)
SELECT id, version, {TRANSACTION_ID} FROM locked"""
VERSIONS = f"SELECT id, version FROM tables WHERE id = {NUMBERS}"

# The first array is a sub-select, as in NUMBERS.
_KEYS = "unnest((SELECT ?::bigint[]), ?::bytea[], ?::bytea[], ?::smallint[])"
_ROWS = """unnest((SELECT ?::bigint[]), ?::bytea[], ?::bytea[], ?::smallint[], ?::bigint[], ?::bigint[], ?::int[], ?::bytea[],
    ?::bytea[], ?::bytea[], ?::bigint[])"""
_ENTRIES = """unnest((SELECT ?::bigint[]), ?::bytea[], ?::bytea[], ?::smallint[], ?::int[], ?::bytea[], ?::bytea[], ?::smallint[],
    ?::bytea[])"""

_TABLE_NAMES = """
SELECT relname FROM pg_class
WHERE relnamespace = to_regnamespace(current_schema()) AND relkind IN ('r', 'p') AND NOT EXISTS (
    SELECT FROM pg_depend
    WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND deptype = 'e')"""

# A search joins as many terms as match. Without their values and these joins its plan is quadratic.
_PLAN_BY_VALUES = """
SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_hashjoin', 'on', true),
    set_config('enable_mergejoin', 'on', true)"""

# LIMIT 1 keeps the planner from turning the look-ups into a join by scan.
_GET_MANY = f"""
SELECT {ROW_COLUMNS}, k.ordinal
FROM {_KEYS} WITH ORDINALITY AS k(table_id, partition, sort, slot, ordinal)
CROSS JOIN LATERAL (
    SELECT * FROM rows s
    WHERE s.table_id = k.table_id AND s.partition = k.partition AND s.sort = k.sort AND s.slot = k.slot LIMIT 1
) r WHERE r.body IS NOT NULL"""

_LOOK_UP_MANY = f"""
SELECT {ROW_COLUMNS}, t.version, k.ordinal
FROM {_KEYS} WITH ORDINALITY AS k(table_id, partition, sort, slot, ordinal)
JOIN tables t ON t.id = k.table_id
LEFT JOIN LATERAL (
    SELECT * FROM rows s
    WHERE s.table_id = k.table_id AND s.partition = k.partition AND s.sort = k.sort AND s.slot = k.slot LIMIT 1
) r ON true"""

# WHERE false: existing rows are locked and left unchanged. Missing ones are claimed with an empty row.
_CLAIM = """
INSERT INTO rows (table_id, partition, sort, slot, modified_at, size_bytes) VALUES (?, ?, ?, ?, 0, 0)
ON CONFLICT (table_id, partition, sort, slot) DO UPDATE SET size_bytes = 0 WHERE false"""
_CLAIM_MANY = f"""
INSERT INTO rows (table_id, partition, sort, slot, modified_at, size_bytes)
SELECT k.table_id, k.partition, k.sort, k.slot, 0, 0 FROM {_KEYS} AS k(table_id, partition, sort, slot)
ON CONFLICT (table_id, partition, sort, slot) DO UPDATE SET size_bytes = 0 WHERE false"""

_SAVE_MANY = f"""
UPDATE rows r SET modified_at = k.modified_at, expires_at_ms = k.expires_at_ms, size_bytes = k.size_bytes,
    kinds = k.kinds, body = k.body, full_key = k.full_key, checksum = k.checksum
FROM {_ROWS} AS k({rows.COLUMNS})
WHERE r.table_id = k.table_id AND r.partition = k.partition AND r.sort = k.sort AND r.slot = k.slot"""

_COPY = f"COPY rows ({rows.COLUMNS}) FROM STDIN (FORMAT binary)"

_REMOVE_MANY = f"""
DELETE FROM rows r USING {_KEYS} AS k(table_id, partition, sort, slot)
WHERE r.table_id = k.table_id AND r.partition = k.partition AND r.sort = k.sort AND r.slot = k.slot"""

# A row that another transaction has locked is skipped, so two transactions cannot wait for each other.
_REMOVE_UNCHANGED = """
DELETE FROM rows r USING (
    SELECT s.ctid FROM rows s
    JOIN unnest((SELECT ?::bigint[]), ?::bytea[], ?::bytea[], ?::smallint[], ?::bigint[])
        AS k(table_id, partition, sort, slot, modified_at)
    ON s.table_id = k.table_id AND s.partition = k.partition AND s.sort = k.sort AND s.slot = k.slot
        AND s.modified_at = k.modified_at
    FOR UPDATE OF s SKIP LOCKED
) unchanged WHERE r.ctid = unchanged.ctid"""

_ADD_ENTRIES = (
    f"INSERT INTO entries ({index_kinds.ENTRY_COLUMNS}) SELECT * FROM {_ENTRIES}" + index_kinds.RESIZE_ENTRY
)
_REMOVE_ENTRIES = f"""
DELETE FROM entries e USING {_KEYS} AS k(index_id, partition, sort, slot)
WHERE e.index_id = k.index_id AND e.partition = k.partition AND e.sort = k.sort AND e.slot = k.slot"""

_CLAIM_TOKEN = """
INSERT INTO tokens (scope, name, slot, digest, answer, expires_at_ms) VALUES (?, ?, ?, '', '', 0)
ON CONFLICT (scope, name, slot) DO UPDATE SET answer = '' WHERE false"""

_LIKE_WILD = {Wildcards.RUN: "%", Wildcards.STOP: "_"}
_LIKE_SPECIAL = re.compile(r"[\\%_]")


class PostgreSQLStatements(Statements):
    """The SQL of PostgreSQL. Statements documents the methods."""

    for_update = " FOR UPDATE"
    greatest = "GREATEST"
    big_number = "?::bigint"
    stripe = "(pg_backend_pid() % 32)::smallint"
    server_start = "pg_postmaster_start_time()::text"

    def has_table(self, session: Session, name: str) -> bool:
        return session.query("SELECT to_regclass(?::text) IS NOT NULL", (name,)) == [(True,)]

    def table_names(self, session: Session) -> list[str]:
        return [name for (name,) in session.query(_TABLE_NAMES)]

    def plan_by_values(self, session: Session) -> None:
        session.ask(_PLAN_BY_VALUES)

    def one_of(self, column: str, numbers: Sequence[int]) -> tuple[str, Sequence[Any]]:
        return f"{column} = {NUMBERS}", (numbers,)

    def versions(
        self, session: Session, table_ids: Sequence[int], lock: bool, near: bytes
    ) -> Pending[list[Row]]:
        return session.ask(LOCK_VERSIONS if lock else VERSIONS, (table_ids,))

    def lock_rows(self, session: Session, table: str, column: str, row_ids: Sequence[int]) -> None:
        condition, parameters = self.one_of(column, row_ids)
        session.send(
            f"SELECT {column} FROM {table} WHERE {condition} ORDER BY {column} FOR UPDATE", parameters
        )

    def claim_rows(self, session: Session, keys: Sequence[Key]) -> None:
        self._send_set(session, _CLAIM, _CLAIM_MANY, keys)

    def fetch_rows(self, session: Session, keys: Sequence[Key]) -> Pending[list[tuple[int, Row]]]:
        if len(keys) == 1:
            answer = session.ask(rows.GET, keys[0])
            return lambda: [(0, columns) for columns in answer() if columns[ROW_WIDTH - 1] is not None]
        answer = session.ask(_GET_MANY, columns_of(keys))
        return lambda: [(columns[ROW_WIDTH] - 1, columns) for columns in answer()]

    def look_up_rows(self, session: Session, keys: Sequence[Key]) -> Pending[list[tuple[int, Row]]]:
        if len(keys) == 1:
            table_id, *key_columns = keys[0]
            answer = session.ask(rows.LOOK_UP, (*key_columns, table_id))
            return lambda: [(0, columns) for columns in answer()]
        answer = session.ask(_LOOK_UP_MANY, columns_of(keys))
        return lambda: [(columns[ROW_WIDTH + 1] - 1, columns) for columns in answer()]

    def save_rows(self, session: Session, rows_to_save: Sequence[Row]) -> None:
        self._send_set(session, rows.SAVE, _SAVE_MANY, rows_to_save)

    def load_rows(self, session: Session, rows_to_load: Sequence[Row]) -> None:
        try:
            session.copy(_COPY, encode(rows_to_load))
        except psycopg.errors.UniqueViolation:
            raise KeyOccupied from None

    def remove_rows(self, session: Session, keys: Sequence[Key], claims: Sequence[Key]) -> None:
        self._send_set(session, rows.REMOVE, _REMOVE_MANY, [*keys, *claims])

    def remove_unchanged_rows(self, session: Session, versions: Sequence[Row]) -> int:
        return session.execute(_REMOVE_UNCHANGED, columns_of(versions))

    def _send_set(self, session: Session, of_one: str, of_many: str, sets: Sequence[tuple[Any, ...]]) -> None:
        """Send one statement about a set of rows or keys."""
        if len(sets) == 1:
            session.send(of_one, sets[0])
        else:
            session.send(of_many, columns_of(sets))

    def page_count(self, session: Session, table: str) -> int:
        [(pages,)] = session.query(
            f"SELECT pg_relation_size('{table}') / current_setting('block_size')::bigint"
        )
        return int(pages)

    def delete_pages(
        self, session: Session, table: str, owner: str, owner_id: int, pages: tuple[int, int]
    ) -> int:
        # The sum keeps the planner from an index of the owner, which would read all of its rows for each range.
        return session.execute(
            f"DELETE FROM {table} WHERE ctid >= ?::text::tid AND ctid < ?::text::tid AND {owner} + 0 = ?",
            (*(f"({page},0)" for page in pages), owner_id),
        )

    def add_entries(self, session: Session, entries_to_add: Sequence[Row]) -> None:
        self._send_set(session, index_kinds.ADD_ENTRY, _ADD_ENTRIES, entries_to_add)

    def remove_entries(self, session: Session, keys: Sequence[Key]) -> None:
        self._send_set(session, index_kinds.REMOVE_ENTRY, _REMOVE_ENTRIES, keys)

    def claim_token(self, session: Session, key: tuple[str, str, int]) -> None:
        session.send(_CLAIM_TOKEN, key)

    def concatenation(self, concatenation: Concatenation, reverse: bool) -> tuple[str, str, str]:
        order = f"ORDER BY s.sort{' DESC' if reverse else ''}"
        return (
            # bytea has no min and max before PostgreSQL 18.
            f"(array_agg(s.sort ORDER BY s.sort{'' if reverse else ' DESC'}))[1]",
            f"string_agg(s.modified_at::text, ',' {order})",
            f"string_agg(s.body, '{concatenation.separator}'::bytea {order})",
        )

    def pattern_condition(self, pattern: BodyPattern) -> Condition:
        """Return a LIKE condition, which compares bytes for a bytea column."""
        like = "".join(spelled(pattern, _LIKE_WILD, _LIKE_SPECIAL, "\\%s"))
        return "r.body LIKE ?", [f"%{like}%".encode()]

    def number_condition(self, name: str, above: bool, bound: float) -> Condition:
        """Return a condition that is true of every row, because PostgreSQL cannot read JSON from bytes."""
        return "(1 = 1)", []


def columns_of(rows_or_keys: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    """Return a set as one array for each column."""
    return [list(column) for column in zip(*rows_or_keys, strict=True)]
