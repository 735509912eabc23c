"""The answers of the control API have the members and types that its OpenAPI document describes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import requests

from tests.conftest import Serve
from tests.support.control import Control, make
from tests.support.live_dynamodb import Live
from tests.support.waiting import PATIENCE_S, wait_until

TOKEN = {"Authorization": "Bearer s3cret"}
DOCUMENT: dict[str, Any] = json.loads(Path("tablegate/gateway/control/openapi.json").read_text())
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
KEY = {"scheme": "tablestore", "access_id": "account"}
INDEX = {
    "IndexName": "by_at",
    "KeySchema": [{"AttributeName": "at", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}


def check(value: Any, schema: dict[str, Any], place: str) -> None:
    """Fail if a value has another type or other members than its schema."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kind = TYPES.get(type(value), "null")
    assert kind in kinds or (kind == "integer" and "number" in kinds), (place, value)
    if kind == "array":
        for each in value:
            check(each, schema["items"], place)
    elif kind == "object":
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        assert {*schema.get("required", ())} <= {*value}, place
        for name, inner in value.items():
            described = known.get(name) or others
            assert described, f"{place}.{name} is not described"
            if described is not True:
                check(inner, described, f"{place}.{name}")


class Checked:
    """The control API of a server. Each answer is checked."""

    def __init__(self, url: str) -> None:
        self._url, self._control = url, Control(url, **TOKEN)
        self.asked: set[tuple[str, str]] = set()

    def __call__(self, method: str, path: str, of: str = "", **document: Any) -> Any:
        """Ask for an operation. `of`: its path in the document, if it has parameters."""
        answer = self._control(method, path, **document)
        check(answer, self._content(method, of or path)["application/json"]["schema"], f"{method} {path}")
        return answer

    def file(self, method: str, path: str, of: str, data: bytes = b"") -> bytes:
        """Send or receive a file."""
        answer = requests.request(
            method, f"{self._url}/_tablegate{path}", data=data, headers=TOKEN, timeout=PATIENCE_S
        )
        assert answer.status_code == 200, answer.text
        content = self._content(method, of)
        if "application/json" in content:
            check(answer.json(), content["application/json"]["schema"], f"{method} {path}")
        return answer.content

    def _content(self, method: str, path: str) -> Any:
        self.asked.add((method.lower(), path))
        return DOCUMENT["paths"][path][method.lower()]["responses"]["200"]["content"]


def use_tables(ask: Checked, live: Live) -> None:
    make(live, "songs")
    live.client.update_table(
        TableName="songs",
        AttributeDefinitions=[
            {"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "at", "AttributeType": "N"},
        ],
        GlobalSecondaryIndexUpdates=[{"Create": INDEX}],
    )  # fmt: skip
    ask("GET", "/tables")
    ask("POST", "/sweep")
    ask("POST", "/tables/recount", table="songs")
    for days in ({"days": 3}, {}):
        ask("PUT", "/tables/history", table="songs", **days)
    backup = ask("POST", "/backups", table="songs")["id"]
    wait_until(lambda: ask("GET", "/backups")["backups"][0]["is_available"])
    ask("POST", "/tables/restore", table="songs", target="restored", backup=backup)
    live.client.get_waiter("table_exists").wait(
        TableName="restored", WaiterConfig={"Delay": 0.05, "MaxAttempts": 1200}
    )
    ask("DELETE", "/backups", id=backup)


def use_accounts(ask: Checked) -> None:
    ask("POST", "/credentials", **KEY)
    ask("PUT", "/credentials", **KEY, place="elsewhere")
    ask("PUT", "/credentials", **KEY, key=1)
    ask("GET", "/credentials")
    grant = ask("POST", "/grants", key="account", form="short", document=json.dumps({"read": ["songs"]}))[
        "id"
    ]
    ask("GET", "/grants")
    ask("DELETE", "/grants", id=grant)
    ask("PUT", "/quotas", **KEY, tables=3)
    ask("GET", "/quotas")
    ask("DELETE", "/quotas", **KEY)
    ask("DELETE", "/credentials", **KEY)


def use_tests(ask: Checked, live: Live) -> None:
    ask("PUT", "/requests", most=10)
    fault = ask("POST", "/faults", operation="GetItem", latency_ms=1, capacity={"units": 1000})["id"]
    live.client.get_item(TableName="songs", Key={"id": {"S": "0"}})
    ask("GET", "/faults")
    [recorded] = ask("GET", "/requests")["requests"]
    assert recorded["keys"]
    ask("DELETE", f"/faults/{fault}", "/faults/{fault_id}")
    ask("DELETE", "/faults")
    ask("DELETE", "/requests")
    ask("POST", "/snapshots", name="first")
    ask("GET", "/snapshots")
    ask("POST", "/snapshots/first/load", "/snapshots/{name}/load")
    ask("POST", "/snapshots/first/fork", "/snapshots/{name}/fork", namespace="aws/000000000000/us-east-1")
    file = ask.file("GET", "/snapshots/first/file", "/snapshots/{name}/file")
    ask.file("PUT", "/snapshots/second/file", "/snapshots/{name}/file", file)
    ask("DELETE", "/snapshots/first", "/snapshots/{name}")
    for document in ({"frozen": True}, {"frozen": False}):
        ask("PUT", "/clock", **document)
    ask("POST", "/clock/advance", seconds=1)
    ask("GET", "/clock")
    ask("POST", "/reset")
    ask("POST", "/seed", files=[])


def test_every_answer_is_as_described(serve: Serve, sqlite_url: str) -> None:
    server = serve(sqlite_url, admin_token="s3cret")
    ask, live = Checked(server.url), Live(server.url)
    use_tables(ask, live)
    use_accounts(ask)
    use_tests(ask, live)
    described = {(method, path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert described - ask.asked == {("get", "/openapi.json")}
