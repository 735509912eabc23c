"""SQLite's connections: who holds one, and those that nobody holds at the moment.

A thread keeps the connections that it has taken; when it ends, they are there for the next one. Knows nothing of transactions.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable


class HeldConnection:
    """A connection in somebody's hand. It is free again when its holder is gone."""

    __slots__ = ("_connections", "connection")

    def __init__(self, connection: sqlite3.Connection, connections: Connections) -> None:
        self.connection = connection
        self._connections: Connections | None = connections

    def discard(self) -> None:
        """Close the connection; nobody gets it again."""
        connections, self._connections = self._connections, None
        if connections is not None:
            connections.discard(self.connection)

    def __del__(self) -> None:
        if self._connections is not None:
            self._connections.free.append(self.connection)


class Connections:
    """All connections to one database. Safe to use from several threads."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._all: set[sqlite3.Connection] = set()
        self.free: deque[sqlite3.Connection] = deque()

    def made(self) -> sqlite3.Connection:
        """A new connection, which is closed with all others if its holder does not do so. Raises sqlite3.Error."""
        connection = self._connect()
        self._all.add(connection)
        return connection

    def take(self) -> HeldConnection:
        """A connection that nobody else holds. Raises sqlite3.Error."""
        try:
            connection = self.free.pop()
        except IndexError:
            connection = self.made()
        return HeldConnection(connection, self)

    def discard(self, connection: sqlite3.Connection) -> None:
        """Close one."""
        self._all.discard(connection)
        connection.close()

    def close(self) -> None:
        """Close all, those too that threads hold: files stay open with them."""
        self.free.clear()
        while self._all:
            self._all.pop().close()
