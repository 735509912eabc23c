"""A strict gateway with an audit log, reachable through both entries: its own server's socket, and a WSGI server.

Audit lines are read after each request, without the audit's thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tablegate.adapters.azuretable import auth
from tablegate.adapters.azuretable.xml_documents import formatted
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.app import application_of, create_app
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.authorization.grants import DENY_ALL
from tablegate.gateway.model.authorization.quotas import Quota
from tablegate.gateway.observability import audit
from tablegate.gateway.observability.audit import AuditScope, AuditSink, AuditTrail, KeyForm
from tablegate.gateway.security.credentials import Scheme, TokenPolicies
from tablegate.gateway.security.grant_store import ALL
from tablegate.gateway.security.identities import Identity
from tablegate.gateway.store.store import Store
from tablegate.gateway.wiring import connect, open_store
from tablegate.migrations import schema
from tests.adapters.azuretable.test_delegation import signed
from tests.entry_matrix.requests import KNOWN, Derived
from tests.support.running import Running, call_plainly, start_app
from tests.support.strict import NOW_MS, Strict

ENTRIES = ("socket", "wsgi")
SETTINGS = {
    "auth": "strict",
    "secret_key": "a secret key that is long",
    "admin_token": "the token",
    "console_writes": True,
}
NONE, ELSEWHERE, OVER = "none", "elsewhere", "over"
MEMBER = Identity("member", ("blocked",))
"""An identity with all grants, in a group that is refused everything."""
WORKER = Identity("worker", ("small",))
"""An identity with all grants, in a group that may have a quota."""
_PATIENCE_S = 60.0


class _Lines(AuditSink):
    """The lines that were written."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def write(self, lines: Sequence[bytes]) -> None:
        self.lines += map(json.loads, lines)


class Recorder(AuditTrail):
    """An audit trail with lines that the test reads after each request."""

    def __init__(self) -> None:
        self._lines = _Lines()
        super().__init__(self._lines, KeyForm(True, ""), AuditScope(writes=True, requests=True))
        self._has_answered = threading.Event()

    def start(self) -> None:
        """Nothing: there is no thread."""

    def close(self) -> None:
        """Nothing: there is no thread."""

    def record_request(self, request: Request, reply: Reply, dialect: Any, operation: str) -> None:
        super().record_request(request, reply, dialect, operation)
        self._has_answered.set()

    def taken(self) -> list[dict[str, Any]]:
        """The lines since this was last called, after the one request since then."""
        assert self._has_answered.wait(_PATIENCE_S), "the audit was not called"
        self._has_answered.clear()
        return self.drained()

    def drained(self) -> list[dict[str, Any]]:
        """The lines since this or `taken` was last called."""
        while self._queue:
            self._write_batch()
        found, self._lines.lines = self._lines.lines, []
        return found


class Matrix:
    """The gateway. `strict` furnishes its tables and has its callers: all grants, none, those of another table, no quota left."""

    def __init__(self, database_url: str, folder: Path) -> None:
        places = {"s3_folder": str(folder), "kinesis_endpoint_url": "http://127.0.0.1:1"}
        settings = load({"database": database_url, "port": 0, **SETTINGS, **places}, {})
        (folder / "bucket").mkdir()
        self.opened = open_store(settings, connect(settings))
        self.app = create_app(settings, self.opened)
        self.gateway = application_of(self.app).gateway
        object.__setattr__(self.gateway, "real_now_ms", lambda: NOW_MS)
        self.strict = Strict(self.gateway)
        self.strict.grant(NONE)
        self.strict.grant(ELSEWHERE, {"admin": ["granted*"]}, {"read": ["granted*"], "write": ["granted*"]})
        self.strict.grant(OVER, ALL)
        self.gateway.quotas.now = lambda: 1_000.0
        self.gateway.quotas.replace({f"{scheme.value}/{OVER}": Quota(requests=1) for scheme in Scheme})
        for dialect in application_of(self.app).dialects:
            self._spend(dialect.name)
        of_tokens = TokenPolicies({MEMBER.grantee: None, WORKER.grantee: None, "group/blocked": DENY_ALL})
        self.gateway.credentials.token_policies = of_tokens
        self.recorder = Recorder()
        self._numbers = itertools.count(1)
        self._server: Running | None = None
        self._connection: http.client.HTTPConnection | None = None

    def next_number(self) -> int:
        """A number that no table has yet."""
        return next(self._numbers)

    def ask(self, entry: str, request: Request) -> tuple[Reply, list[dict[str, Any]]]:
        """The reply to a request through an entry, and the lines that it left."""
        self.recorder.drained()
        reply = self._over_socket(request) if entry == "socket" else call_plainly(self.app, request)
        return reply, self.recorder.taken()

    def derived(self, identity: Identity) -> Derived:
        """Return the caller with all credentials that are derived from a token of an identity."""
        gateway = self.gateway
        keys = gateway.sessions.issue(identity, 3600, NOW_MS / 1000)
        assert keys is not None
        start, expiry = (f"{formatted(gateway.now_ms() / 1000 + seconds)}" for seconds in (0, 3600))
        key = auth.issued_key(gateway, KNOWN, identity, start, expiry, "", auth.FIRST_DELEGATION_VERSION)
        document = ElementTree.fromstring(auth.key_document(key, key.value(gateway, KNOWN)))
        members = {child.tag: child.text or "" for child in document}
        return Derived(
            identity.grantee, keys, lambda table: signed(members, account=KNOWN, tn=table, sp="raud")
        )

    def _spend(self, dialect: str) -> None:
        """Use up the quota of the caller that has none left."""
        match dialect:
            case "dynamodb":
                self.strict.dynamodb(OVER, "ListTables")
            case "azuretable":
                self.strict.azure(OVER, "GET", "/Tables")
            case "tablestore":
                self.strict.tablestore(OVER, "ListTable", messages.ListTableRequest())

    def contents(self) -> str:
        """A digest of all that the database holds."""
        return contents_of(self.opened.store)

    def _over_socket(self, request: Request) -> Reply:
        assert self._connection is not None
        self._connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
        for name, value in (*request.headers, ("content-length", str(len(request.body)))):
            self._connection.putheader(name, value.encode("latin-1"))
        self._connection.endheaders(request.body or None)
        answer = self._connection.getresponse()
        return Reply(answer.status, answer.getheaders(), answer.read())

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Yield while the gateway accepts requests."""
        running = start_app(self.app, trail=self.recorder)
        audit.start(self.recorder)
        self._connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=_PATIENCE_S)
        try:
            yield
        finally:
            audit.stop()
            self._connection.close()
            running.stop()
            self.opened.close()


def contents_of(store: Store) -> str:
    """A digest of all that a database holds."""
    found = hashlib.sha256()
    with store.read() as session:
        for table in schema.metadata.sorted_tables:
            for line in sorted(map(repr, session.query(f"SELECT * FROM {table.name}"))):
                found.update(line.encode())
    return found.hexdigest()
