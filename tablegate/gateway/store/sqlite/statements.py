"""The SQL of SQLite.

A write transaction locks the whole database, so nothing is claimed. Sets are written row by row, which costs no round
trip.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from tablegate.gateway.model.tables.pages import Concatenation
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.checksums import ROW_WIDTH
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

# Earlier versions aggregate rows in the order of the ordered subquery.
_HAS_ORDERED_AGGREGATES = sqlite3.sqlite_version_info >= (3, 44)
_HAS_JSON = sqlite3.sqlite_version_info >= (3, 38)

_GLOB_WILD = {Wildcards.RUN: "*", Wildcards.STOP: '[".]'}
_GLOB_SPECIAL = re.compile(r"[*?\[]")


class SQLiteStatements(Statements):
    """The SQL of SQLite. Statements documents the methods."""

    for_update = ""
    greatest = "max"
    big_number = "?"
    stripe = "0"
    server_start = "''"

    def has_table(self, session: Session, name: str) -> bool:
        return bool(session.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)))

    def table_names(self, session: Session) -> list[str]:
        rows = session.query(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        return [name for (name,) in rows]

    def plan_by_values(self, session: Session) -> None:
        """SQLite has one kind of plan."""

    def one_of(self, column: str, numbers: Sequence[int]) -> tuple[str, Sequence[Any]]:
        return f"{column} IN ({', '.join('?' * len(numbers))})", numbers

    def versions(
        self, session: Session, table_ids: Sequence[int], lock: bool, near: bytes
    ) -> Pending[list[Row]]:
        condition, parameters = self.one_of("id", table_ids)
        return session.ask(f"SELECT id, version FROM tables WHERE {condition}", parameters)

    def lock_rows(self, session: Session, table: str, column: str, row_ids: Sequence[int]) -> None:
        pass

    def claim_rows(self, session: Session, keys: Sequence[Key]) -> None:
        pass

    def fetch_rows(self, session: Session, keys: Sequence[Key]) -> Pending[list[tuple[int, Row]]]:
        columns_of_rows = [
            (at, columns)
            for at, key in enumerate(keys)
            for columns in session.query(rows.GET, key)
            if columns[ROW_WIDTH - 1] is not None
        ]
        return lambda: columns_of_rows

    def look_up_rows(self, session: Session, keys: Sequence[Key]) -> Pending[list[tuple[int, Row]]]:
        columns_of_rows = [
            (at, columns)
            for at, (table_id, *key_columns) in enumerate(keys)
            for columns in session.query(rows.LOOK_UP, (*key_columns, table_id))
        ]
        return lambda: columns_of_rows

    def save_rows(self, session: Session, rows_to_save: Sequence[Row]) -> None:
        session.execute_many(rows.SAVE, rows_to_save)

    def load_rows(self, session: Session, rows_to_load: Sequence[Row]) -> None:
        if session.execute_many(rows.INSERT, rows_to_load) < len(rows_to_load):
            raise KeyOccupied

    def remove_rows(self, session: Session, keys: Sequence[Key], claims: Sequence[Key]) -> None:
        if keys:
            session.execute_many(rows.REMOVE, keys)

    def remove_unchanged_rows(self, session: Session, versions: Sequence[Row]) -> int:
        return session.execute_many(rows.REMOVE_UNCHANGED, versions)

    def add_entries(self, session: Session, entries_to_add: Sequence[Row]) -> None:
        session.execute_many(index_kinds.ADD_ENTRY, entries_to_add)

    def remove_entries(self, session: Session, keys: Sequence[Key]) -> None:
        session.execute_many(index_kinds.REMOVE_ENTRY, keys)

    def claim_token(self, session: Session, key: tuple[str, str, int]) -> None:
        pass

    def concatenation(self, concatenation: Concatenation, reverse: bool) -> tuple[str, str, str]:
        order = f" ORDER BY s.sort{' DESC' if reverse else ''}" if _HAS_ORDERED_AGGREGATES else ""
        return (
            f"{'min' if reverse else 'max'}(s.sort)",
            f"group_concat(s.modified_at, ','{order})",
            f"CAST(group_concat(s.body, '{concatenation.separator}'{order}) AS BLOB)",
        )

    def pattern_condition(self, pattern: BodyPattern) -> Condition:
        """Return a GLOB condition, which is four times as fast as instr and case-sensitive, unlike LIKE."""
        glob = f"*{''.join(spelled(pattern, _GLOB_WILD, _GLOB_SPECIAL, '[%s]'))}*"
        return "CAST(r.body AS TEXT) GLOB ?", [glob]

    def number_condition(self, name: str, above: bool, bound: float) -> Condition:
        """Return a comparison with the number in the body's JSON, which SQLite reads faster than Python decodes rows.

        Rows with a DOUBLE always pass, because SQLite cannot read all of its spellings as numbers.
        """
        if not _HAS_JSON:
            return "(1 = 1)", []
        at = "json_extract(CAST(r.body AS TEXT), ?)"
        number = f"CAST(COALESCE({at}, {at}, {at}) AS REAL) {'>=' if above else '<='} ?"
        paths = [f"$.{name}.{tag}" for tag in ("N", "I32", "I64", "D")]
        return f"({number} OR (r.kinds IS NOT NULL AND {at} IS NOT NULL))", [*paths[:3], bound, paths[3]]
