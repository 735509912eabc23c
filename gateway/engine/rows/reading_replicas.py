"""Reads that may be old, from a replica where there is one that has what they must see.

A list is read from a replica as a whole, so that it is of one moment like any other, and only if all of it may be old. What a
replica cannot answer - it fails, or has a table in another version - is left for the primary; it is never an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tablegate.gateway.engine.rows import reading
from tablegate.gateway.engine.rows.reading import Outcome, Reading
from tablegate.gateway.model.errors import StaleTable
from tablegate.gateway.store.opening.replicas import Standbys


def may_be_old(commands: list[Reading]) -> bool:
    """Whether a replica may answer a list of reads."""
    return all(command.may_be_old for command in commands)


def read(
    replicas: Standbys, commands: list[Reading], now_ms: int, written: int
) -> list[Outcome | StaleTable]:
    """The outcome of each command; StaleTable: the primary is to be asked. `written`: how far the primary's log was when
    whoever reads last wrote."""
    replica = replicas.choose(written, reader=0)
    if replica is not None:
        try:
            return [*reading.read(replica, commands, now_ms)]
        except Exception as error:
            replicas.leave_alone(replica, error)
    return [StaleTable() for _ in commands]


def read_in_slices(
    replicas: Standbys,
    commands: list[Reading],
    now_ms: int,
    outcomes: dict[int, Any],
    reader: int,
    written: int,
) -> Iterator[None]:
    """Do what `reading.read_in_slices` does. What has no outcome at the end is for the primary."""
    replica = replicas.choose(written, reader)
    if replica is None:
        return
    found: dict[int, Any] = {}
    known = 0
    try:
        for _ in reading.read_in_slices(replica, commands, now_ms, found, reader):
            for at in [*found][known:]:
                if not isinstance(found[at], StaleTable):
                    outcomes[at] = found[at]
            known = len(found)
            yield
    except Exception as error:
        replicas.leave_alone(replica, error)
    else:
        for at in [*found][known:]:
            if not isinstance(found[at], StaleTable):
                outcomes[at] = found[at]
