"""The control API over a live server: access rights, and the effect of each operation on tables as clients see them."""

from __future__ import annotations

import pytest
import requests

from tablegate.gateway.control.clocks import Clock
from tests.conftest import Serve
from tests.support.control import Control, count, make
from tests.support.live_dynamodb import Live
from tests.support.running import Running
from tests.support.waiting import PATIENCE_S

DAY = 86_400

# Access


def test_auth_dev_admits_this_machine_and_no_foreign_pages(control: Control, server: Running) -> None:
    assert control("GET", "/clock")["frozen"] is False
    refused = Control(server.url, Origin="http://localhost:3000")("GET", "/clock", status=403)
    assert refused["error"] == "NotAllowed"
    clock = f"{server.url}/_tablegate/clock"
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
        # The last is a name that was made to point here (DNS rebinding).
        assert requests.get(clock, headers=headers, timeout=PATIENCE_S).status_code == 403
    assert Control(server.url, Origin=server.url)("GET", "/clock")["frozen"] is False


def test_an_origin_that_is_no_url_is_a_foreign_one(serve: Serve, database_url: str) -> None:
    server = serve(database_url, cors_origin="*")
    for origin in ("http://[", "http://[::1", "//", ":"):
        Control(server.url, Origin=origin)("GET", "/clock")
    server = serve(database_url, auth="strict", admin_token="s3cret")
    for origin in ("http://[", "http://[::1"):
        for path in ("/clock", "/console/sign-in"):
            answer = requests.get(
                f"{server.url}/_tablegate{path}", headers={"Origin": origin}, timeout=PATIENCE_S
            )
            assert answer.status_code == 403


def test_auth_strict_admits_only_the_token(serve: Serve, database_url: str) -> None:
    server = serve(database_url, auth="strict", admin_token="s3cret")
    for headers in (
        {},
        {"Authorization": "Bearer s3cre"},
        {"Authorization": "s3cret"},
        {"Authorization": ""},
    ):
        refused = Control(server.url, **headers)("POST", "/reset", status=403)
        assert "--admin-token" in refused["message"]
    assert Control(server.url, Authorization="Bearer s3cret")("POST", "/reset") == {"tables": 0}


def test_without_a_token_strict_refuses_all_callers(serve: Serve, database_url: str) -> None:
    server = serve(database_url, auth="strict")
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": "Bearer"}):
        Control(server.url, **headers)("GET", "/snapshots", status=403)


def test_the_control_api_can_be_switched_off(serve: Serve, database_url: str) -> None:
    server = serve(database_url, control=False)
    assert requests.get(f"{server.url}/_tablegate/clock", timeout=PATIENCE_S).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/reset", b"{"),
        ("POST", "/reset", b"[]"),
        ("POST", "/reset", b'{"table": ["a"]}'),
        ("POST", "/reset", b'{"tables": "a"}'),
        ("POST", "/reset", b'{"tables": [1]}'),
        ("POST", "/reset", b'{"mode": "all"}'),
        ("POST", "/reset", b'{"namespace": ""}'),
        ("POST", "/reset", b'{"namespace": "snapshot/first/shared"}'),
        ("POST", "/reset", b'{"namespace": "a\\u0000"}'),
        ("POST", "/snapshots", b'{"name": "first", "namespace": "snapshot/other/shared"}'),
        ("POST", "/snapshots", b'{"name": "first", "namespace": "a\\u0000"}'),
        ("PUT", "/clock", b'{"at": "yesterday"}'),
        ("PUT", "/clock", b'{"at": "2040-01-01T00:00:00"}'),
        ("PUT", "/clock", b'{"at": 1000}'),
        ("PUT", "/clock", b'{"at": "2001-01-01T00:00:00Z"}'),
        ("PUT", "/clock", b'{"at": 253402300800000}'),
        ("PUT", "/clock", b'{"frozen": 1}'),
        ("POST", "/clock/advance", b"{}"),
        ("POST", "/clock/advance", b'{"seconds": -1}'),
        ("POST", "/clock/advance", b'{"seconds": true}'),
        ("POST", "/clock/advance", b'{"seconds": 1e308}'),
        ("POST", "/snapshots", b"{}"),
        ("POST", "/snapshots", b'{"name": "../x"}'),
        ("POST", "/snapshots", b'{"name": ""}'),
    ],
)
def test_an_unreadable_request_changes_nothing(
    live: Live, control: Control, server: Running, method: str, path: str, body: bytes
) -> None:
    make(live, "kept")
    before = control("GET", "/clock")
    answer = requests.request(method, f"{server.url}/_tablegate{path}", data=body, timeout=PATIENCE_S)
    assert (answer.status_code, answer.json()["error"]) == (400, "BadRequest")
    after = control("GET", "/clock")
    assert after["now_ms"] - before["now_ms"] < 60_000
    assert after["frozen"] is False
    assert control("GET", "/snapshots") == {"snapshots": {}}
    assert count(live, "kept") == 3


def test_paths_and_methods_that_are_not_there(control: Control, server: Running) -> None:
    assert requests.get(f"{server.url}/_tablegate/nothing", timeout=PATIENCE_S).status_code == 404
    assert requests.get(f"{server.url}/_tablegate/reset", timeout=PATIENCE_S).status_code == 405


# Reset


def test_reset_drops_or_empties(live: Live, control: Control) -> None:
    make(live, "table-a")
    make(live, "table-b")
    assert control("POST", "/reset", mode="rows", tables=["table-a"]) == {"tables": 1}
    assert (count(live, "table-a"), count(live, "table-b")) == (0, 3)
    live.client.put_item(TableName="table-a", Item={"id": {"S": "new"}})
    assert count(live, "table-a") == 1
    assert control("POST", "/reset", namespace="another") == {"tables": 0}
    unknown = control("POST", "/reset", status=404, tables=["table-a", "nothing"])
    assert unknown["message"] == "there is no table nothing"
    assert count(live, "table-a") == 1
    assert control("POST", "/reset") == {"tables": 2}
    assert live.client.list_tables()["TableNames"] == []
    make(live, "table-a")


# Clock


def test_expired_items_are_deleted_before_the_clock_answers(live: Live, control: Control) -> None:
    make(live, "table-a", items=0)
    live.client.update_time_to_live(
        TableName="table-a", TimeToLiveSpecification={"AttributeName": "at", "Enabled": True}
    )
    now_s = control("GET", "/clock")["now_ms"] // 1000
    for number in range(3):
        live.client.put_item(
            TableName="table-a",
            Item={"id": {"S": str(number)}, "at": {"N": str(now_s + 30 * DAY * (number + 1))}},
        )
    assert count(live, "table-a") == 3
    shown = control("POST", "/clock/advance", seconds=31 * DAY)
    assert 31 * DAY * 1000 <= shown["ahead_ms"] <= 31 * DAY * 1000 + 60_000
    assert count(live, "table-a") == 2
    control("POST", "/clock/advance", seconds=30 * DAY)
    assert count(live, "table-a") == 1


def test_a_clock_is_frozen_at_the_time_to_which_it_is_set() -> None:
    """Not at a moment after it."""
    clock = Clock()
    at_ns = clock.now_ns() + 10**15
    clock.set(at_ns, is_frozen=True)
    assert clock.now_ns() == at_ns
    clock.run()
    assert at_ns <= clock.now_ns() < at_ns + 10**15


def test_a_frozen_clock_stands_still(live: Live, control: Control) -> None:
    frozen = control("PUT", "/clock", at="2040-02-03T04:05:06.007Z", frozen=True)
    assert frozen["now"] == "2040-02-03T04:05:06.007Z"
    make(live, "table-a")
    created = live.client.describe_table(TableName="table-a")["Table"]["CreationDateTime"]
    assert created.isoformat().startswith("2040-02-03T")
    assert control("GET", "/clock")["now_ms"] == frozen["now_ms"]
    running = control("PUT", "/clock", frozen=False)
    assert not running["frozen"]
    assert running["now_ms"] >= frozen["now_ms"]


# Snapshots


def test_a_loaded_snapshot_replaces_later_changes(live: Live, control: Control) -> None:
    make(live, "table-a")
    saved = control("POST", "/snapshots", name="first")
    assert (saved["tables"], saved["whole"]) == (1, True)
    live.client.delete_item(TableName="table-a", Key={"id": {"S": "1"}})
    make(live, "table-b")
    assert control("POST", "/snapshots/first/load") == {"name": "first", "tables": 1}
    assert live.client.list_tables()["TableNames"] == ["table-a"]
    assert count(live, "table-a") == 3
    assert [*control("GET", "/snapshots")["snapshots"]] == ["first"]
    control("DELETE", "/snapshots/first")
    assert control("GET", "/snapshots") == {"snapshots": {}}
    control("POST", "/snapshots/first/load", status=404)
    assert count(live, "table-a") == 3


def test_an_empty_snapshot_empties(live: Live, control: Control) -> None:
    control("POST", "/snapshots", name="empty")
    make(live, "table-a")
    control("POST", "/snapshots/empty/load")
    assert live.client.list_tables()["TableNames"] == []


def test_a_snapshot_is_no_table_of_any_caller(live: Live, control: Control) -> None:
    make(live, "table-a")
    control("POST", "/snapshots", name="first")
    assert live.client.list_tables()["TableNames"] == ["table-a"]
    assert control("POST", "/reset") == {"tables": 1}
    assert control("POST", "/snapshots/first/load")["tables"] == 1
    assert count(live, "table-a") == 3


def test_a_fork_is_anothers(serve: Serve, database_url: str) -> None:
    server = serve(database_url, namespaces="separate")
    control, live = Control(server.url), Live(server.url)
    make(live, "table-a")
    [namespace] = control("POST", "/snapshots", name="first")["namespaces"]
    assert namespace.startswith("aws/")
    account = namespace.split("/")[1]
    fork = f"aws/{account}/sa-east-1"
    assert control("POST", "/snapshots/first/fork", namespace=fork) == {"name": "first", "tables": 1}
    other = live.session.client("dynamodb", region_name="sa-east-1", endpoint_url=server.url)
    assert other.scan(TableName="table-a")["Count"] == 3
    other.delete_item(TableName="table-a", Key={"id": {"S": "1"}})
    assert (count(live, "table-a"), other.scan(TableName="table-a")["Count"]) == (3, 2)
    for wrong in ("", "snapshot/x/y"):
        control("POST", "/snapshots/first/fork", status=400, namespace=wrong)
