"""Local transactions: StartLocalTransaction, CommitTransaction, AbortTransaction; and single commands run inside one."""

from __future__ import annotations

from gateway.model.commands import Get, Read, WriteGroup
from gateway.model.errors import SessionMissing
from gateway.model.keys import Position
from gateway.model.tables import Table


def get(table: Table, position: Position, transaction: str) -> Get:
    """The command that reads a row, inside a transaction if one is named."""
    if transaction:
        raise SessionMissing()
    return Get(table, position)


def stage(table: Table, group: WriteGroup, transaction: str) -> WriteGroup:
    """The command that writes a group, inside a transaction if one is named."""
    if transaction:
        raise SessionMissing()
    return group


def read(command: Read, transaction: str) -> Read:
    """The command that reads a page, inside a transaction if one is named."""
    if transaction:
        raise SessionMissing()
    return command
