"""The WSGI application under servers that are not ours: what a request without a declared length counts in the memory budget."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tablegate.gateway.app import application_of, create_app
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.request_memory import RequestMemory

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
def test_what_a_request_counts_in_the_budget(
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
