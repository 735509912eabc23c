"""Pooled SQLite connections. A thread keeps the connections it took until it ends. Then they can be reused."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable


class HeldConnection:
    """A connection in use. It becomes free when this object is garbage-collected."""

    __slots__ = ("_connections", "connection")

    def __init__(self, connection: sqlite3.Connection, connections: Connections) -> None:
        self.connection = connection
        self._connections: Connections | None = connections

    def discard(self) -> None:
        """Close the connection for good."""
        connections, self._connections = self._connections, None
        if connections is not None:
            connections.discard(self.connection)

    def __del__(self) -> None:
        if self._connections is not None:
            self._connections.free.append(self.connection)


class Connections:
    """All connections to one database. Thread-safe."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._all: set[sqlite3.Connection] = set()
        self.free: deque[sqlite3.Connection] = deque()

    def connect(self) -> sqlite3.Connection:
        """Return a new connection, which `close` also closes. Raises sqlite3.Error."""
        connection = self._connect()
        self._all.add(connection)
        return connection

    def take(self) -> HeldConnection:
        """Return a free or new connection. Raises sqlite3.Error."""
        try:
            connection = self.free.pop()
        except IndexError:
            connection = self.connect()
        return HeldConnection(connection, self)

    def discard(self, connection: sqlite3.Connection) -> None:
        self._all.discard(connection)
        connection.close()

    def close(self) -> None:
        """Close all connections, including those in use by threads, because they keep files open."""
        self.free.clear()
        while self._all:
            self._all.pop().close()
