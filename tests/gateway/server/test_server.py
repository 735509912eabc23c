"""The way through the server: Flask's side of it, the gateway's own paths, what is written down, and stopping."""

from __future__ import annotations

import gc
import logging
import socket
from pathlib import Path

import orjson
import pytest
import requests

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.http.flask_bridge import request_of
from tablegate.gateway.server.connection import Connection
from tablegate.gateway.server.listening import Listener
from tests.gateway.server.conftest import FakeEngine
from tests.support.running import Running
from tests.support.waiting import PATIENCE_S, wait_until


def test_a_request_that_may_block_has_its_raw_target(toy, wire) -> None:
    connection = wire(toy())
    target = "/flask/a%2Fb//c+d?q=%20&q=+"
    reply = connection.send(
        f"POST {target} HTTP/1.1", "Content-Length: 2", "X-Twice: 1", "x-twice: 2", body=b"hi"
    )
    status, headers, body = reply.reply()
    method, seen, seen_body, seen_headers = orjson.loads(body)
    assert (status, method, seen, seen_body) == (200, "POST", target, "hi")
    assert [value for name, value in seen_headers if name == "x-twice"] == ["1", "2"]
    assert headers["content-type"] == "application/json"


def test_flask_answers_head_with_the_length_and_no_body(toy, wire) -> None:
    connection = wire(toy())
    _, headers, _ = connection.send("HEAD /flask/x HTTP/1.1").reply(has_body=False)
    assert int(headers["content-length"]) > 0
    assert connection.send("GET /at-once HTTP/1.1").reply()[2] == b"no engine"


def test_an_exception_in_flask_is_answered_by_the_dialect(toy, wire) -> None:
    assert wire(toy()).post("/flask/raise").reply()[::2] == (500, b"toy: in Flask")


def test_a_foreign_wsgi_server_gives_the_same_request(toy) -> None:
    # The application is a standard WSGI application. werkzeug and gunicorn set RAW_URI to the target.
    client = toy().app.test_client()
    answer = client.post("/flask/a", data=b"hi", environ_overrides={"RAW_URI": "/flask/%61?x=%20"})
    assert answer.json[:3] == ["POST", "/flask/%61?x=%20", "hi"]


def test_a_wsgi_server_without_raw_targets_gives_the_best_there_is() -> None:
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/a b/\u00c3\u00a9'(", "QUERY_STRING": "x=1"}
    assert request_of(environ, b"").target == "/a%20b/%C3%A9'(?x=1"


def test_the_gateways_own_paths(toy, engine: FakeEngine) -> None:
    url = toy().url
    assert requests.get(f"{url}/healthz").text == "ok\n"
    assert requests.get(f"{url}/readyz").text == "ready\n"
    requests.post(f"{url}/say", data=b"x")
    assert (
        'tablegate_requests_total{dialect="toy",operation="/say",status="200"}'
        in requests.get(f"{url}/metrics").text
    )


def test_a_server_is_not_ready_when_the_database_does_not_answer(
    toy, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone() -> None:
        raise ConnectionError("gone")

    monkeypatch.setattr(engine, "ping", gone)
    url = toy().url
    assert requests.get(f"{url}/readyz").status_code == 503
    assert requests.get(f"{url}/healthz").status_code == 200


@pytest.mark.parametrize(
    ("settings", "authorization", "status"),
    [
        ({"auth": "dev"}, None, 200),
        ({"auth": "strict"}, None, 403),
        ({"auth": "strict"}, "Bearer ", 403),
        ({"auth": "strict", "metrics_token": "open sesame"}, None, 401),
        ({"auth": "strict", "metrics_token": "open sesame"}, "Bearer open sesam", 401),
        ({"auth": "strict", "metrics_token": "open sesame"}, "Bearer \xff", 401),
        ({"auth": "strict", "metrics_token": "open sesame"}, "Bearer open sesame", 200),
        ({"auth": "dev", "metrics_token": "open sesame"}, None, 401),
        ({"auth": "dev", "metrics_token": "open sesame"}, "Bearer open sesame", 200),
    ],
)
def test_metrics_name_tables_and_want_a_token_in_strict(
    toy, settings: dict[str, str], authorization: str | None, status: int
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization.encode("latin-1")}
    reply = requests.get(f"{toy(**settings).url}/metrics", headers=headers)
    assert (reply.status_code, "tablegate_requests_total" in reply.text) == (status, status == 200)


def test_the_metrics_token_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("open sesame\n")
    assert load({"metrics_token_file": tmp_path / "token"}, {}).metrics_token == "open sesame"
    assert "open sesame" not in repr(load({"metrics_token_file": tmp_path / "token"}, {}))
    (tmp_path / "token").write_text("\n")
    with pytest.raises(BadSetting, match="--metrics-token-file"):
        load({"metrics_token_file": tmp_path / "token"}, {})


def test_metrics_on_a_port_of_their_own_are_not_on_the_main_one(toy) -> None:
    assert requests.get(f"{toy(metrics_port=1).url}/metrics").status_code == 404


def lines(caplog: pytest.LogCaptureFixture) -> list[dict]:
    return [{"message": record.message, **getattr(record, "facts", {})} for record in caplog.records]


@pytest.mark.parametrize("path", ["/raise-later", "/flask/raise"])
def test_a_failure_is_one_line_with_the_id_of_the_request(
    toy, wire, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    """Covers failures in the server's tick and in Flask."""
    server = toy()
    wire(server).post(path).reply()
    server.stop()
    [line] = lines(caplog)
    assert (line["message"], line["path"]) == ("a request failed", path)
    assert len(line["request_id"]) == 52


@pytest.mark.parametrize(
    ("settings", "messages"),
    [({}, []), ({"access_log": True}, ["request"]), ({"slow_request_ms": 0}, ["slow request"])],
)
def test_the_settings_select_the_logged_requests(
    toy, wire, caplog: pytest.LogCaptureFixture, settings, messages
) -> None:
    caplog.set_level(logging.INFO)
    server = toy(**settings)
    _, headers, _ = wire(server).post("/echo", b"abc").reply()
    server.stop()
    assert [line["message"] for line in lines(caplog)] == messages
    for line in lines(caplog):
        assert (line["request_id"], line["status"]) == (headers["x-id"], 200)
        assert (line["dialect"], line["operation"], line["bytes_in"]) == ("toy", "/echo", 3)


def refuses(server: Running) -> bool:
    """Return True if a server refuses connections.

    Without CAP_NET_ADMIN the server may accept connections until it closes the socket (`hold_handshakes`).
    """
    try:
        socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S).close()
    except ConnectionError:
        return True
    return False


def test_a_stopping_server_answers_accepted_requests(toy, wire, engine: FakeEngine) -> None:
    server = toy("thread")
    idle = wire(server)
    assert idle.post("/say", b"x").reply()[2] == b"x"
    assert engine.entered.acquire(timeout=PATIENCE_S)
    engine.gate.clear()
    waiting = wire(server).post("/say", b"accepted")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    server.request_stop()
    assert idle.is_closed()
    wait_until(lambda: refuses(server))
    engine.gate.set()
    _, headers, body = waiting.reply()
    assert (body, headers["connection"]) == (b"accepted", "close")
    server.stop()


def test_connections_that_a_stopping_server_has_closed_take_no_memory(
    toy, wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where `hold_handshakes` has no effect, clients connect until the end of the drain period."""
    monkeypatch.setattr(Listener, "hold_handshakes", lambda listener: None)
    server = toy("thread", drain_seconds=600.0)
    idle = wire(server)
    assert idle.post("/say", b"x").reply()[2] == b"x"
    gc.collect()
    before = sum(isinstance(each, Connection) for each in gc.get_objects())
    server.request_stop()
    for _ in range(20):
        client = wire(server).post("/say", b"x")
        assert client.reply()[2] == b"x"
        client.close()
    gc.collect()
    assert sum(isinstance(each, Connection) for each in gc.get_objects()) < before + 10
    idle.close()
    server.stop()


def test_stopping_does_not_wait_for_ever(toy, wire, engine: FakeEngine) -> None:
    server = toy("thread", stop_seconds=0.1)
    engine.gate.clear()
    waiting = wire(server).post("/say", b"never")
    assert engine.entered.acquire(timeout=PATIENCE_S)
    server.request_stop()
    assert waiting.is_closed()
    engine.gate.set()
    server.stop()
