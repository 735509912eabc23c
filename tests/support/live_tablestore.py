"""The Table Store wire client of the adapter's tests, against a live server.

It checks each reply's signature, as the SDKs do. The official SDK needs an older protobuf than the server, so tests use
it only from a separate process.
"""

from __future__ import annotations

import http.client
import itertools
import time
import urllib.request
from urllib.parse import urlsplit

from tablegate.adapters.tablestore.wire.auth import Caller, reply_signature
from tablegate.gateway.http.messages import Reply, Request
from tests.adapters.tablestore.client import INSTANCE, TableStoreCalls
from tests.adapters.tablestore.search_messages import match_all, search_query
from tests.support.waiting import PATIENCE_S, wait_until


class WallClock:
    """The time as it is."""

    @property
    def ms(self) -> int:
        return time.time_ns() // 1_000_000


class LiveTableStore(TableStoreCalls):
    """The instance of a server at `url`. `new_name` gives each test separate table names: `stem` and a number."""

    def __init__(self, url: str, stem: str = "t") -> None:
        self.url = url
        self.clock = WallClock()
        self._names = (f"{stem}{number}" for number in itertools.count())

    def new_name(self) -> str:
        return next(self._names)

    def handle(self, request: Request) -> Reply:
        """Send any request over a new connection and return the reply."""
        address = urlsplit(self.url)
        assert address.hostname
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE_S)
        try:
            connection.request(request.method, request.target, request.body, dict(request.headers))
            answer = connection.getresponse()
            headers = [(name.lower(), value) for name, value in answer.getheaders()]
            self.last = Reply(answer.status, headers, answer.read())
        finally:
            connection.close()
        given = dict(headers).get("authorization")
        if given is not None:
            self.check_signature(given, request.path.strip("/"), headers)
        return self.last

    def consumed(self, table: str, index: str = "") -> tuple[float, float]:
        """(read, write) units of a table in /metrics so far."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=PATIENCE_S) as reply:
            lines = reply.read().decode().splitlines()
        found = {"read": 0.0, "write": 0.0}
        for kind in found:
            labels = f'dialect="tablestore",index="{index}",kind="{kind}",table="{table}"'
            for line in lines:
                if line.startswith(f"tablegate_consumed_capacity_total{{{labels}}}"):
                    found[kind] = float(line.rpartition(" ")[2])
        return found["read"], found["write"]

    def check_signature(self, given: str, operation: str, headers: list[tuple[str, str]]) -> None:
        """A reply is signed with the key of its request."""
        caller = Caller("tablegate", INSTANCE, "", b"tablegate")
        own = [(name, value) for name, value in headers if name.startswith("x-ots-")]
        assert given == reply_signature(caller, operation, own)

    def wait_for_search_index(self, table: str, index: str, rows: int) -> None:
        """Wait until a search index has all rows of a table."""
        query = search_query(match_all(), limit=1, get_total_count=True)
        wait_until(
            lambda: (
                self.call("Search", table_name=table, index_name=index, search_query=query).total_hits == rows
            )
        )
