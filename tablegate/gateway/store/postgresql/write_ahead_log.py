"""Positions of PostgreSQL's write-ahead log, written by a primary or replayed by a standby, in bytes.

Any role may call the functions used here. replicas.py decides what follows from the positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tablegate.gateway.store.sql.databases import Session

# Acknowledged commits have been flushed, unless commits do not wait for that. Standbys receive only what was flushed.
WRITTEN = """
SELECT (CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()
        ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn)::bigint, current_setting('wal_block_size')::int,
    ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int"""
_REPLAYED = """
SELECT CASE WHEN pg_is_in_recovery() THEN (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint END"""
_TIMELINE = """
SELECT greatest((SELECT timeline_id FROM pg_control_checkpoint()),
    (SELECT min_recovery_end_timeline FROM pg_control_recovery()))"""
# A position just after the header of a page means the beginning of the page, where the last record ends (PostgreSQL,
# src/backend/access/transam/xlog.c, XLogBytePosToRecPtr and XLogBytePosToEndRecPtr).
_PAGE_HEADERS = (24, 40)


def parse_written(rows: Sequence[tuple[Any, ...]]) -> tuple[int, int]:
    """Return the position and the timeline of a primary's log, from the result of WRITTEN."""
    [(position, block_size, timeline)] = rows
    header = position % block_size
    return position - (header if header in _PAGE_HEADERS else 0), timeline


def replayed_position(session: Session) -> int:
    """Return the position up to which a standby has replayed the log, or -1 if the server is not a standby."""
    [(position,)] = session.query(_REPLAYED)
    return -1 if position is None else int(position)


def timeline(session: Session) -> int:
    """Return the timeline of a standby, which may lag behind by a restart point."""
    [(number,)] = session.query(_TIMELINE)
    return int(number)
