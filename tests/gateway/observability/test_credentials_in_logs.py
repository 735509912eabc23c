"""Each kind of credential is sent through every log of a server, and is found in none of them.

The logs: the access log and the line of a slow request, the line of a failed request, the audit log, the request log of the
control API, spans, recordings, and the log of the event loop.
"""

from __future__ import annotations

import base64
import http.client
import io
import json
import logging
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tablegate.gateway.app import application_of, create_app
from tablegate.gateway.application import Application
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.observability import telemetry
from tablegate.gateway.observability.logs import JsonFormatter
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.wiring import connect, open_store
from tablegate.transfer.traffic import recording
from tests.entry_matrix.servers import Recorder
from tests.support.running import start_app
from tests.support.waiting import PATIENCE_S

SECRET = "c2VjcmV0c2ln"
"""The beginning of each secret. It has no character that any encoding changes."""
_SIGNED = f"{SECRET}/+mQ=="
_QUOTED = quote(_SIGNED, safe="")
_JWT = f"eyJhbGciOiJSUzI1NiJ9.eyJzdWIi{SECRET}.{SECRET}"
_BASIC = base64.b64encode(f"user:{SECRET}".encode()).decode()
_NESTED = quote(f"https://h/t?sv=1&sig={_QUOTED}&se=2", safe="")

TARGETS = (
    f"/devstoreaccount1/people()?sv=2019-02-02&tn=people&sp=r&sig={_QUOTED}",
    f"/devstoreaccount1/people()?sv=2019-02-02&tn=people&sp=r&%73ig={_QUOTED}",
    f"/devstoreaccount1/people()?SIG={_SIGNED}&sv=1",
    f"/devstoreaccount1/people%3Fsv=1%26sig%3D{_QUOTED}",
    f"/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature={SECRET}&X-Amz-Security-Token={_QUOTED}",
    f"/?Action=AssumeRoleWithWebIdentity&WebIdentityToken={_JWT}",
    f"/?AWSAccessKeyId=AK&Signature={_QUOTED}&Expires=1",
    f"/GetRow?OSSAccessKeyId=AK&Signature={_QUOTED}&SecurityToken={_QUOTED}",
    f"/_tablegate/console/sign-in/issuer/return?code={SECRET}&state={SECRET}&session_state={SECRET}",
    f"/_tablegate/console/sign-in/issuer/return?error=x&id_token={_JWT}",
    f"/_tablegate/requests?access_token={SECRET}",
    f"/_tablegate/absent?client_secret={SECRET}&code_verifier={SECRET}&nonce={SECRET}",
    f"/metrics?token={SECRET}",
    f"/healthz?api_key={SECRET}&password={SECRET}",
    f"/absent?next={_NESTED}",
    f"/absent?next={quote(_NESTED)}&key={SECRET}",
    f"/absent?sig={SECRET};x=1",
    f"http://user:{SECRET}@h/absent",
    f"http://user:{SECRET}@h/devstoreaccount1/people()?sig={SECRET}",
)
HEADERS = (
    ("authorization", f"Bearer {_JWT}"),
    ("authorization", f"Basic {_BASIC}"),
    ("authorization", f"SharedKey devstoreaccount1:{_SIGNED}"),
    ("authorization", f"AWS4-HMAC-SHA256 Credential=AK/20260101/r/dynamodb/aws4_request, SignedHeaders=host, Signature={SECRET}"),
    ("authorization", f"OTS AK:{_SIGNED}"),
    ("authorization", _SIGNED),
    ("proxy-authorization", f"Basic {_BASIC}"),
    ("cookie", f"tablegate-console=aws|9|{SECRET}|AK; tablegate-sign-in={SECRET}"),
    ("x-amz-security-token", _SIGNED),
    ("x-ots-signature", _SIGNED),
    ("x-ots-ststoken", _SIGNED),
    ("x-api-key", SECRET),
    ("referer", f"http://h/t?code={SECRET}"),
)  # fmt: skip

PATHS = (
    "/devstoreaccount1/people()",
    "/GetRow",
    "/",
    "/metrics",
    "/_tablegate/requests",
    "/_tablegate/console/",
)
"""The entries that read headers."""


class Logs:
    """All logs of one server."""

    def __init__(self, app: Any, spans: InMemorySpanExporter, figures: InMemoryMetricReader) -> None:
        self._app = app
        self._spans, self._figures = spans, figures
        self.audit = Recorder()
        self.text = io.StringIO()
        self._recorded: list[str] = []

    def send_all(self, port: int, requests: Iterable[Request]) -> None:
        """Send each request on a connection of its own, and record it. Refusals are delayed, so all are sent first."""
        sent = []
        for request in requests:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
            connection.putrequest("GET", request.target, skip_host=True)
            for name, value in (("host", "localhost"), *request.headers):
                connection.putheader(name, value)
            connection.endheaders()
            sent.append((request, connection))
        for request, connection in sent:
            answer = connection.getresponse()
            reply = Reply(answer.status, answer.getheaders(), answer.read())
            connection.close()
            kept = recording.without_secrets(request)
            told = recording.answer_without_secrets(request, reply, recording.secrets_of(request))
            self._recorded += [kept.target, repr(kept.headers), repr(told)]

    def contents(self) -> dict[str, str]:
        """Return log -> its contents."""
        lines = application_of(self._app).interceptor.requests.listed({})["requests"]
        figures = self._figures.get_metrics_data()
        assert figures is not None
        return {
            "log": self.text.getvalue(),
            "audit": json.dumps(self.audit.drained()),
            "request log": json.dumps([orjson.loads(orjson.dumps(line)) for line in lines]),
            "spans": "".join(span.to_json() for span in self._spans.get_finished_spans()),
            "figures": figures.to_json(),
            "recording": "\n".join(self._recorded),
        }


@pytest.fixture
def handler() -> Iterator[logging.StreamHandler[io.StringIO]]:
    """The handler of the log, as `tablegate serve` sets it."""
    made = logging.StreamHandler(io.StringIO())
    made.setFormatter(JsonFormatter())
    root = logging.getLogger()
    level = root.level
    root.addHandler(made)
    root.setLevel(logging.INFO)
    yield made
    root.removeHandler(made)
    root.setLevel(level)


@pytest.mark.parametrize("slow_request_ms", [0, 600_000], ids=["slow request", "access log"])
def test_no_credential_is_in_any_log(
    slow_request_ms: int, handler: logging.StreamHandler[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    spans, figures = InMemorySpanExporter(), InMemoryMetricReader()
    monkeypatch.setattr(telemetry, "OTLPSpanExporter", lambda: spans)
    monkeypatch.setattr(telemetry, "OTLPMetricExporter", lambda: None)
    monkeypatch.setattr(telemetry, "PeriodicExportingMetricReader", lambda exporter: figures)
    flags = {
        "memory": True,
        "port": 0,
        "auth": "strict",
        "admin_token": "the token",
        "recorded_requests": 1000,
    }
    settings = load({**flags, "access_log": True, "slow_request_ms": slow_request_ms}, {})
    database = connect(settings)
    migrate(database)
    opened = open_store(settings, database)
    app, traced = create_app(settings, opened), telemetry.Telemetry()
    logs = Logs(app, spans, figures)
    running = start_app(app, trail=logs.audit, telemetry=traced, finish=opened.close)
    requests = [Request("GET", target, (), b"") for target in TARGETS]
    requests += [Request("GET", path, (header,), b"") for path in PATHS for header in HEADERS]
    try:
        logs.send_all(running.port, requests)
        _fail(application_of(app), requests)
    finally:
        running.stop()
    traced.close()
    logs.text = handler.stream
    contents = logs.contents()
    assert contents["log"].count(
        '"message":"slow request"' if not slow_request_ms else '"message":"request"'
    ) == len(requests)
    assert contents["log"].count("a request failed") == len(requests)
    assert all(contents.values()), "a log is empty"
    assert {name: _around(text) for name, text in contents.items() if SECRET in text or _BASIC in text} == {}


def _fail(application: Application, requests: Iterable[Request]) -> None:
    """Log a failure of each request, with its URL and its headers in the text of the error."""
    for request in requests:
        try:
            raise RuntimeError(f"cannot reach https://user:{SECRET}@h{request.target}: {request.headers}")
        except RuntimeError as error:
            application.refuse_and_log(request, error)
        logging.getLogger("asyncio").error("Exception in callback %r", (print, request))


def _around(text: str) -> str:
    """Return the text around the first secret."""
    at = max(text.find(SECRET), text.find(_BASIC))
    return text[max(0, at - 200) : at + 40]
