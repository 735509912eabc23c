"""Both entries give equal answers: the tick of the gateway's own server, and Flask under another WSGI server.

Two gateways with separate data and a fixed clock get the same requests (entry_requests/) in the same order. Random
values are the same for both. Status, headers and body are compared unchanged, except for headers that the servers add.
"""

from __future__ import annotations

import http.client
import itertools
import secrets
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from email.utils import formatdate
from types import ModuleType
from typing import Any

import pytest

from tablegate.adapters.dynamodb.operation_table import OPERATIONS as DYNAMODB
from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.gateway.app import application_of
from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.engine.engine import EngineOptions
from tablegate.gateway.http import messages as gateway_http
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.authorization.permissions import READING, WRITING
from tablegate.gateway.model.errors import Busy, StaleTable
from tablegate.gateway.observability import audit
from tablegate.gateway.observability.audit import AuditScope, AuditSink, AuditTrail, KeyForm
from tablegate.gateway.security.credentials import Credentials
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.store import Store
from tablegate.gateway.wiring import connect
from tests.entry_requests import NOW_MS, Case, azure, dynamodb, tablestore
from tests.support.running import EVERY_DIALECT, Running, plain_app, start_app, start_plain
from tests.support.waiting import PATIENCE_S

DIALECTS = {"dynamodb": dynamodb, "tablestore": tablestore, "azuretable": azure}
LIMIT_BYTES = 1 << 20
# Headers that a server adds. They are compared if a dialect sets them.
OF_CONNECTIONS = {"connection", "keep-alive", "transfer-encoding"}
OF_SERVERS = {"date", "server"}
AT = formatdate(NOW_MS // 1000, usegmt=True)
STREAMS = {"ListStreams", "ListStream", "DescribeStream", "GetShardIterator", "GetRecords", "GetStreamRecord"}
TRANSACTIONS = {"StartLocalTransaction", "CommitTransaction", "AbortTransaction"}


class Pair:
    """The same gateway twice, once under each server."""

    def __init__(self) -> None:
        self.gateways = [_gateway(), _gateway()]
        ours, others = (plain_app(gateway, *EVERY_DIALECT) for gateway in self.gateways)
        self.dialects = application_of(ours).dialects
        self.servers: list[Running] = [start_app(ours), start_plain(others)]

    def send(self, case: Case) -> Reply:
        """Send a request to both gateways and assert that the answers are equal. Returns one of them."""
        ours, others = (_ask(server, case.request) for server in self.servers)
        assert (case.name, *ours) == (case.name, *others)
        return Reply(ours[0], ours[1], ours[2])

    def stop(self) -> None:
        for server, used in zip(self.servers, self.gateways, strict=True):
            server.stop()
            used.engine.close()


def _gateway() -> Gateway:
    settings = load({"memory": True, "port": 0, "max_body_bytes": LIMIT_BYTES}, {})
    database = connect(settings)
    migrate(database)
    engine = new_engine(Store(database), EngineOptions(sweep_period_s=0), lambda: NOW_MS * 1_000_000)
    return Gateway(engine, Credentials(settings), settings, lambda: NOW_MS, lambda: NOW_MS)


def _ask(server: Running, request: Request) -> tuple[int, list[tuple[str, str]], bytes]:
    """Status, headers and body of an answer. Whatever is random is the same each time this is called."""
    gateway_http._ready_ids[:] = ["A" * 52] * 16
    drawn = itertools.count(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=next(drawn)))
        patch.setattr(secrets, "token_hex", lambda size: f"{next(drawn):0{size * 2}x}")
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers:
                connection.putheader(name, value.encode("latin-1"))
            if request.body or request.method not in ("GET", "HEAD"):
                connection.putheader("content-length", str(len(request.body)))
            connection.endheaders(request.body or None)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
            gateway_http._ready_ids.clear()
    headers = [(name.lower(), value) for name, value in answer.getheaders()]
    return answer.status, sorted(header for header in headers if not _is_a_servers_own(header)), body


def _is_a_servers_own(header: tuple[str, str]) -> bool:
    name, value = header
    if name in OF_SERVERS:
        return not (value.startswith("Windows-Azure") or value == AT)
    return name in OF_CONNECTIONS


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.stop()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_answers_are_equal(pair: Pair, dialect: str) -> None:
    known: ModuleType = DIALECTS[dialect]
    statuses = {pair.send(case).status for case in known.CASES}
    for name in ("transactions", "streams"):
        if hasattr(known, name):
            getattr(known, name)(pair.send)
    assert {200, 400, 403, 404} & statuses > {400}
    assert not any(status >= 500 for status in statuses - {501})


def test_every_operation_on_rows_is_among_the_requests() -> None:
    sent = {name: {case.operation for case in known.CASES} for name, known in DIALECTS.items()}
    on_rows = {
        name for name, row in DYNAMODB.items() if (READING | WRITING).issuperset(row.purpose.permissions)
    }
    assert on_rows <= sent["dynamodb"]
    assert OPERATIONS.keys() - STREAMS - TRANSACTIONS <= sent["tablestore"]


# Errors of the gateway


def stale(commands: list[Any], nowait: bool = False) -> list[Any]:
    """Tables that never stop changing."""
    return [StaleTable() for _ in commands]


def busy(commands: list[Any], nowait: bool = False) -> list[Any]:
    return [Busy("the database does not answer") for _ in commands]


def broken(commands: list[Any], nowait: bool = False) -> list[Any]:
    raise RuntimeError("a bug")


READS = {
    "dynamodb": "Scan finds",
    "tablestore": "GetRow finds",
    "azuretable": "GET /people() finds",
}


@pytest.mark.parametrize("fault", [stale, busy, broken], ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_fault_is_worded_alike(
    pair: Pair, dialect: str, fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for used in pair.gateways:
        monkeypatch.setattr(used.engine, "run", fault)
    [case] = [case for case in DIALECTS[dialect].CASES if case.name == READS[dialect]]
    assert pair.send(case).status >= 500


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_body_that_is_too_long_is_refused_alike(pair: Pair, dialect: str) -> None:
    case = next(case for case in DIALECTS[dialect].CASES if case.request.method == "POST")
    long = replace(case.request, body=b" " * (LIMIT_BYTES + 1))
    assert pair.send(Case("too long", case.operation, long)).status == 413


class Nowhere(AuditSink):
    """A sink that keeps nothing."""

    def write(self, lines: Sequence[bytes]) -> None:
        pass


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_body_that_is_too_long_is_refused_alike_with_an_audit_log(pair: Pair, dialect: str) -> None:
    audit.start(AuditTrail(Nowhere(), KeyForm(True, ""), AuditScope(writes=True, requests=True)))
    try:
        test_a_body_that_is_too_long_is_refused_alike(pair, dialect)
    finally:
        audit.stop()
