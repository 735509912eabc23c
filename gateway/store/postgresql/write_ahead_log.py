"""How far PostgreSQL's write-ahead log has been written by a primary, or replayed by a standby; positions are bytes.

Knows the functions that tell, all of which any role may call. What follows from positions is decided elsewhere (replicas.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tablegate.gateway.store.sql.databases import Session

# What has been acknowledged has been flushed, unless commits do not wait for that. What has not been flushed goes to no
# standby.
WRITTEN = """
SELECT (CASE current_setting('synchronous_commit') WHEN 'off' THEN pg_current_wal_insert_lsn()
        ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn)::bigint, current_setting('wal_block_size')::int,
    ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int"""
_REPLAYED = """
SELECT CASE WHEN pg_is_in_recovery() THEN (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint END"""
_TIMELINE = """
SELECT greatest((SELECT timeline_id FROM pg_control_checkpoint()),
    (SELECT min_recovery_end_timeline FROM pg_control_recovery()))"""
# A position just behind the header of a page means the page's beginning: what was written last ends there (PostgreSQL,
# src/backend/access/transam/xlog.c, XLogBytePosToRecPtr and XLogBytePosToEndRecPtr).
_PAGE_HEADERS = (24, 40)


def written(found: Sequence[tuple[Any, ...]]) -> tuple[int, int]:
    """How far a primary's log has been written and on which timeline, from what WRITTEN gave."""
    [(position, block_size, timeline)] = found
    header = position % block_size
    return position - (header if header in _PAGE_HEADERS else 0), timeline


def replayed(session: Session) -> int:
    """How far a standby has replayed its primary's log; -1: the server is no standby."""
    [(position,)] = session.query(_REPLAYED)
    return -1 if position is None else int(position)


def timeline(session: Session) -> int:
    """The timeline that a standby is on. May lag behind by a restart point."""
    [(number,)] = session.query(_TIMELINE)
    return int(number)
