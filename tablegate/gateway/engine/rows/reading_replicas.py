"""Stale reads from standbys that are recent enough.

A list is read from one standby, in one snapshot, and only if all its reads may be stale. The primary handles what the
standby cannot answer: on a failure, or if a table has another version there. The client gets no error for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tablegate.gateway.engine.rows import reading
from tablegate.gateway.engine.rows.point_reads import Outcome
from tablegate.gateway.engine.rows.reading import Readers
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.errors import StaleTable
from tablegate.gateway.store.replicas import Standbys


def may_be_old(commands: list[Command[Any]]) -> bool:
    """Return True if a standby may answer a list of reads."""
    return all(command.may_be_old for command in commands)


def read(
    replicas: Standbys, commands: list[Command[Any]], readers: Readers, now_ms: int, log_position: int
) -> list[Outcome | StaleTable]:
    """Return the outcome of each command. StaleTable marks those that the primary has to answer.

    `log_position`: position of the primary's log at the reader's last write.
    """
    replica = replicas.choose(log_position, reader=0)
    if replica is not None:
        try:
            return [*reading.read(replica, commands, readers, now_ms)]
        except Exception as error:
            replicas.set_aside(replica, error)
    return [StaleTable() for _ in commands]


def read_in_slices(
    replicas: Standbys,
    commands: list[Command[Any]],
    readers: Readers,
    now_ms: int,
    outcomes: dict[int, Any],
    reader: int,
    log_position: int,
) -> Iterator[None]:
    """Do what `reading.read_in_slices` does. Commands without an outcome at the end are for the primary."""
    replica = replicas.choose(log_position, reader)
    if replica is None:
        return
    outcomes_here: dict[int, Any] = {}
    number = 0
    try:
        for _ in reading.read_in_slices(replica, commands, readers, now_ms, outcomes_here, reader):
            for at in [*outcomes_here][number:]:
                if not isinstance(outcomes_here[at], StaleTable):
                    outcomes[at] = outcomes_here[at]
            number = len(outcomes_here)
            yield
    except Exception as error:
        replicas.set_aside(replica, error)
    else:
        for at in [*outcomes_here][number:]:
            if not isinstance(outcomes_here[at], StaleTable):
                outcomes[at] = outcomes_here[at]
