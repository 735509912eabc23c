"""Maps and lists with far too many members are shortened before they are parsed, and the answer stays the same."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from tablegate.adapters.dynamodb.validation import shortening
from tests.adapters.dynamodb import wasteful_requests
from tests.adapters.dynamodb.client import DynamoDBService

LONG = {
    "BatchExecuteStatement: many nothing",
    "BatchExecuteStatement: many statements",
    "BatchWriteItem: many empty writes",
    "BatchWriteItem: many puts",
    "BatchWriteItem: many wrong puts",
    "TransactWriteItems: transaction of nothing",
    "TransactWriteItems: transaction of puts",
    "TransactWriteItems: transaction of wrong puts",
    "DeleteItem: many Expected",
    "DeleteItem: many wrong Expected",
    "DeleteItem: many values",
    "GetItem: many names",
    "GetItem: many names without an expression",
    "Query: many QueryFilter",
    "Query: many wrong KeyConditions",
    "Scan: many ScanFilter",
    "UpdateItem: many AttributeUpdates",
    "UpdateItem: many wrong AttributeUpdates",
}


def test_shortening_does_not_change_answers(
    service: DynamoDBService, parsed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    service.table()
    seen = set()
    for name, operation, body in wasteful_requests.dynamodb(1_500_000, LONG):
        seen.add(f"{operation}: {name}")
        answers = []
        for min_bytes in (len(body) + 1, len(body)):
            parsed.clear()
            monkeypatch.setattr(shortening, "MIN_BYTES", min_bytes)
            reply = service.post(operation, body)
            answers.append((reply.status, reply.body))
        assert answers[0] == answers[1], (operation, name)
        assert answers[0][0] == 400
        assert 0 < parsed[0] < len(body), (operation, name)
    assert seen == LONG


def members(count: int) -> dict[str, Any]:
    return {f'"\\{number}\u00e9': {"L": [{"S": "},]{\\"}, {"N": "1"}]} for number in range(count)}


@pytest.fixture
def _whatever_the_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortening, "MIN_BYTES", 0)
    monkeypatch.setattr(shortening, "_BYTES_PER_PART", 1000)


@pytest.mark.usefixtures("_whatever_the_length")
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_only_members_beyond_the_limit_are_removed(indent: int | None, is_ascii: bool) -> None:
    most = {"Expected": 10, "Key": 5}
    body = {"TableName": "Expected", "Key": {"Expected": {"S": "1"}}, "Expected": members(11), "z": [1, "}"]}
    for count in (1, 10, 11, 12, 500):
        body["Expected"] = members(count)
        text = json.dumps(body, indent=indent, ensure_ascii=is_ascii).encode()
        expected = {**body, "Expected": dict([*members(count).items()][:11])}
        assert shortening.parse_shortened(text, most) == expected


@pytest.mark.usefixtures("_whatever_the_length")
def test_two_maps_are_shortened() -> None:
    text = json.dumps({"Expected": members(30), "Key": members(30)}).encode()
    found = shortening.parse_shortened(text, {"Expected": 10, "Key": 5})
    assert [len(found[name]) for name in ("Expected", "Key")] == [11, 6]


@pytest.mark.usefixtures("_whatever_the_length")
@pytest.mark.parametrize(
    "text",
    [
        b'{"Expected":{%s}}' % b",".join([b'"a":1', b'"a":2'] * 20),  # the last of equal names stands
        b'{"b":{"Expected":{"a":1,"b":2,"c":3,"d":4}}}',  # not the request's own
        b'{"Expected":{"a":1,"b":2,"c":3,"d":{"e":{"f":{"g":{"h":{"i":1}}}}}}}',  # too deep
        b'{"Item":{"\\"Expected":{"a":1,"b":2,"c":3,"d":4}}}',
    ],
)
def test_ambiguous_texts_are_parsed_whole(text: bytes) -> None:
    assert shortening.parse_shortened(text, {"Expected": 2}) == orjson.loads(text)


@pytest.mark.usefixtures("_whatever_the_length")
@pytest.mark.parametrize(
    "text",
    [b'{"Expected":{"a":1,"b":2,"c":3', b'{"Expected":{"a":1,"b":2,"c":3}', b'{"Expected":{"a":1,"b":2,,}}'],
)
def test_broken_json_stays_broken(text: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        shortening.parse_shortened(text, {"Expected": 1})


def hollow(operation: str, part: str) -> bytes:
    item = f'{{"v":{{"L":[{",".join([part] * (shortening.MIN_BYTES // len(part)))}]}}}}'
    return {
        "BatchWriteItem": f'{{"RequestItems":{{"orders":[{{"PutRequest":{{"Item":{item}}}}}]}}}}',
        "TransactWriteItems": f'{{"TransactItems":[{{"Put":{{"TableName":"orders","Item":{item}}}}}]}}',
        "ExecuteStatement": f'{{"Statement":"SELECT","Parameters":[{item}]}}',
    }[operation].encode()


@pytest.mark.parametrize("part", ["{}", "[]", "[[]]", "[{},{}]"])
@pytest.mark.parametrize("operation", ["BatchWriteItem", "TransactWriteItems", "ExecuteStatement"])
def test_lists_of_nothing_are_not_parsed(
    service: DynamoDBService, monkeypatch: pytest.MonkeyPatch, operation: str, part: str
) -> None:
    monkeypatch.setattr(orjson, "loads", lambda text: pytest.fail(f"parsed {len(text)} bytes"))
    reply = service.post(operation, hollow(operation, part))
    assert (reply.status, b"SerializationException" in reply.body) == (400, True)


@pytest.mark.extended
@pytest.mark.parametrize(
    "part",
    [
        {"S": ""},
        {"N": "1"},
        {"L": []},
        {"M": {}},
        {"BOOL": True},
        {"NS": ["1", "2"]},
        {"BS": [""]},
        {"L": [{"L": [{"M": {}}]}]},
        {"S": "{,["},
        {"S": "{,[" * 20_000},
        {"S": '"\\"{,[' * 10_000},
        {"M": {'"': {"S": '\\"'}}},
    ],
)
def test_legal_values_are_parsed(part: dict[str, Any]) -> None:
    put = {"PutRequest": {"Item": {"v": {"L": [part] * max(1, 60_000 // len(orjson.dumps(part)))}}}}
    body = {"RequestItems": {"orders": [put] * 25}}
    for text in (
        orjson.dumps(body),
        json.dumps(body).encode(),
        orjson.dumps(body, option=orjson.OPT_INDENT_2),
    ):
        assert len(text) > shortening.MIN_BYTES
        assert shortening.parse_shortened(text, {"RequestItems": 25}) == body
