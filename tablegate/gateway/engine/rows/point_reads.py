"""Outcomes of point reads, and reads of several rows of one moment on a database without snapshots."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import Get, Read, ReadAll, RowKey
from tablegate.gateway.model.tables.indexes import BaseIndex
from tablegate.gateway.model.tables.pages import Page
from tablegate.gateway.model.tables.tables import BUSY_STATES, State, Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store

# Rows fetched before their total size is checked.
_ROWS_PER_FETCH = 10

Outcome = Row | list[Any] | Page | errors.GatewayError | None


class _ClaimReleased(Exception):
    """Rolls back the claims of rows that were read and are not to be written."""


def read_without_snapshot(store: Store, commands: list[Command[Any]], now_ms: int) -> dict[int, Outcome]:
    """Read, without snapshots, the commands that need a consistent view. Return outcomes by index."""
    by_index = {at: command for at, command in enumerate(commands) if needs_snapshot(command)}
    if not by_index:
        return {}
    if not any(map(is_byte_limited, by_index.values())):
        outcomes = _read_and_verify(store, by_index, now_ms)
        if outcomes is not None:
            return outcomes
    return _read_claimed(store, by_index, now_ms)


def _read_and_verify(store: Store, commands: Mapping[int, ReadAll], now_ms: int) -> dict[int, Outcome] | None:
    """Read rows, and verify afterwards that they are of one moment. None if that is uncertain.

    A missing row cannot be verified, because it has no version.
    """
    keys = list({(get.table.id, get.position) for get in fetched_together(commands.values())})
    with store.database.read_one() as session:
        rows_by_key, versions = rows.look_up(session, keys)
        if len(rows_by_key) < len(keys) or not rows.are_unchanged(session, rows_by_key):
            return None
    stale = stale_tables(commands.values(), versions)
    for table_id in stale:
        store.catalog.cache.forget(table_id)
    return {
        at: refusal_of(command, stale, now_ms) or outcome_of(command, rows_by_key, now_ms)
        for at, command in commands.items()
    }


def _read_claimed(store: Store, commands: Mapping[int, ReadAll], now_ms: int) -> dict[int, Outcome]:
    """Claim the keys of commands as a writer does, read, and release them. Return outcomes by index."""
    gets = [get for command in commands.values() for get in command.gets]
    keys = sorted({(get.table.id, get.position) for get in gets})
    outcomes: dict[int, Outcome] = {}
    stale: set[int] = set()
    near = keys[0][1].partition
    with contextlib.suppress(_ClaimReleased), store.write(near=near) as session:
        stale_ids = store.catalog.check(session, [get.table for get in gets], lock=True, near=near)
        rows.claim(session, keys)
        stale = stale_ids()
        for at, command in commands.items():
            outcomes[at] = refusal_of(command, stale, now_ms) or outcome_within_limit(
                session, command, now_ms
            )
        raise _ClaimReleased
    for table_id in stale:
        store.catalog.cache.forget(table_id)
    return outcomes


def needs_snapshot(command: Command[Any]) -> TypeGuard[ReadAll]:
    """Return True if the rows of a command must be of one moment."""
    return type(command) is ReadAll and len(command.gets) > 1


def is_byte_limited(command: Command[Any]) -> TypeGuard[ReadAll]:
    """Return True if a command limits the bytes of its rows and is long enough to fetch them in steps."""
    return (
        isinstance(command, ReadAll) and command.max_bytes is not None and len(command.gets) > _ROWS_PER_FETCH
    )


def stale_tables(commands: Iterable[Command[Any]], versions: Mapping[int, int]) -> set[int]:
    """Return the ids of tables of point reads that have another version in the database, or are not in it."""
    gets = fetched_together(commands)
    return {get.table.id for get in gets if versions.get(get.table.id) != get.table.version}


def outcome_of(command: Get | ReadAll, rows_by_key: Mapping[RowKey, Row], now_ms: int) -> Outcome:
    """Return the outcome of a command from the rows that were read."""
    if isinstance(command, Get):
        return command.table.visible(rows_by_key.get((command.table.id, command.position)), now_ms)
    rows_of_command = [
        get.table.visible(rows_by_key.get((get.table.id, get.position)), now_ms) for get in command.gets
    ]
    return _too_large(rows_of_command, command) or rows_of_command


def outcome_within_limit(session: Session, command: ReadAll, now_ms: int) -> Outcome:
    """Return the rows of a command, and stop fetching when they exceed its byte limit."""
    rows_of_command: list[Row | None] = []
    for start in range(0, len(command.gets), _ROWS_PER_FETCH):
        gets = command.gets[start : start + _ROWS_PER_FETCH]
        rows_by_key = rows.fetch_many(session, list({(get.table.id, get.position) for get in gets}))
        rows_of_command += [
            get.table.visible(rows_by_key.get((get.table.id, get.position)), now_ms) for get in gets
        ]
        if (refusal := _too_large(rows_of_command, command)) is not None:
            return refusal
    return rows_of_command


def _too_large(rows_of_command: list[Row | None], command: ReadAll) -> errors.LimitExceeded | None:
    if command.max_bytes is None:
        return None
    size = sum([row.size_bytes for row in rows_of_command if row is not None])
    return (
        errors.LimitExceeded("rows-together", command.max_bytes, size) if size > command.max_bytes else None
    )


def fetched_together(commands: Iterable[Command[Any]]) -> list[Get]:
    """Return the point reads of commands, except those that are fetched in steps."""
    gets: list[Get] = []
    for command in commands:
        if type(command) is Get:
            gets.append(command)
        elif isinstance(command, ReadAll) and not is_byte_limited(command):
            gets += command.gets
    return gets


def tables_of(command: Command[Any]) -> list[Table]:
    """Return the tables of a command, repeatedly if it reads several rows."""
    if isinstance(command, ReadAll):
        return [get.table for get in command.gets]
    table: Table = command.table  # type: ignore[attr-defined]
    return [table]


def refusal_of(command: Command[Any], stale: set[int], now_ms: int) -> errors.GatewayError | None:
    """Return the error of a command whose table or index cannot be read now, or None."""
    for table in tables_of(command):
        if table.id in stale:
            return errors.StaleTable()
        state = table.state_at(now_ms)
        if state in BUSY_STATES:
            return errors.TableBusy(table.name, state.value)
    if isinstance(command, Read) and command.index is not None:
        name = command.index.name
        return refusal_of_index(command.table, name, command.table.index(name), now_ms)
    return None


def refusal_of_index(
    table: Table, name: str, index: BaseIndex | None, now_ms: int
) -> errors.GatewayError | None:
    """Return the error of a read of an index that is missing or not filled yet, or None."""
    if index is None:
        return errors.IndexMissing(table.name, name)
    if not index.is_active(now_ms):
        return errors.TableBusy(table.name, State.CREATING.value, name)
    return None
