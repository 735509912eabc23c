"""The WSGI application under servers that are not ours: what a request without a declared length counts in the memory budget,
and the health check of no dialect."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tablegate.gateway.app import application_of, create_app
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.http.messages import Request
from tablegate.gateway.http.request_bodies import RequestMemory

MAX_BODY_BYTES = load({}, {}).max_body_bytes


@pytest.mark.parametrize(
    ("environ", "counted"),
    [
        ({}, 0),  # RFC 9112, section 6.3: without Content-Length and Transfer-Encoding there is no body
        ({"HTTP_TRANSFER_ENCODING": "chunked"}, MAX_BODY_BYTES),
        ({"SERVER_PROTOCOL": "HTTP/2"}, MAX_BODY_BYTES),
        ({"CONTENT_LENGTH": "3"}, 3),
        ({"CONTENT_LENGTH": "abc"}, 0),
        ({"CONTENT_LENGTH": "-5"}, 0),
        ({"CONTENT_LENGTH": str(MAX_BODY_BYTES + 1)}, MAX_BODY_BYTES),
    ],
)
def test_a_request_counts_its_declared_length_in_the_budget(
    monkeypatch: pytest.MonkeyPatch,
    sqlite_template: Path,
    tmp_path: Path,
    environ: dict[str, str],
    counted: int,
) -> None:
    """gunicorn marks the input of each request as terminated (wsgi.input_terminated)."""
    shutil.copy(sqlite_template, tmp_path / "test.sqlite")
    app = create_app(load({"database": f"sqlite:///{tmp_path}/test.sqlite"}, {}))
    memory = application_of(app).gateway.memory
    received: list[int] = []
    monkeypatch.setattr(RequestMemory, "receive", lambda self, size_bytes: received.append(size_bytes))
    monkeypatch.setattr(RequestMemory, "discard", lambda self, size_bytes: received.append(-size_bytes))
    app.test_client().get(
        "/healthz", environ_overrides={"wsgi.input_terminated": True, "SERVER_PROTOCOL": "HTTP/1.1", **environ}
    )  # fmt: skip
    assert received == [counted, -counted]
    assert memory.received_bytes == 0


def test_health_of_no_dialect_has_the_words_of_dynamodb(sqlite_template: Path, tmp_path: Path) -> None:
    """scylladb/scylladb#26079: GET /health is 200 as well as GET /."""
    shutil.copy(sqlite_template, tmp_path / "test.sqlite")
    app = create_app(load({"database": f"sqlite:///{tmp_path}/test.sqlite"}, {}))
    request = Request("GET", "/health", (("host", "localhost:8000"),), b"")
    own = application_of(app).own_reply(request)
    assert own is not None
    reply = app.test_client().get("/health", headers={"Host": "localhost:8000"})
    assert (own.status, own.body) == (reply.status_code, reply.data) == (200, b"healthy: localhost:8000 \n")
    for target, header in (
        ("/health/", ("host", "localhost:8000")),
        ("/health", ("authorization", "SharedKey devstoreaccount1:AAAA")),
        ("/health?sv=2019-02-02&sig=AAAA", ("host", "devstoreaccount1.table.core.windows.net")),
    ):
        dialect = application_of(app).dialect_of(Request("GET", target, (header,), b""))
        assert dialect is not None
        assert dialect.name == "azuretable"
