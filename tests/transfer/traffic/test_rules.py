"""The table of rules, and what comparing makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablegate.gateway.http.messages import Reply, Request
from tablegate.transfer.traffic.comparing import (
    BODY,
    CODE,
    HEADER,
    ORDER,
    STATUS,
    Divergence,
    ParsedReply,
    ReplyComparison,
    Tokens,
)
from tablegate.transfer.traffic.dialects.azuretable import AzureTable
from tablegate.transfer.traffic.dialects.dialect import UnknownToken
from tablegate.transfer.traffic.dialects.dynamodb import DynamoDB
from tablegate.transfer.traffic.reports import DivergenceReport, SkipReason
from tablegate.transfer.traffic.rules import AZURE_TABLE, DYNAMODB, RULES, TABLE_STORE, Treatment
from tablegate.transfer.traffic.sessions import ReplaySession, SentRequest
from tablegate.transfer.traffic.traces import RecordedRequest
from tests.support.running import ROOT

SPANS = ((1_000_000_000.0, 1_000_000_100.0), (1_700_000_000.0, 1_700_000_100.0))


def compared(
    recorded: Any, live: Any, dialect: str = DYNAMODB, operation: str = "Query", tokens: Tokens | None = None
) -> tuple[list[Divergence], dict[str, int]]:
    """The divergences of two bodies, and the rules that were used."""
    comparison = ReplyComparison(dialect, operation, tokens or Tokens(), ("", ""), SPANS)
    found = comparison.divergences(ParsedReply(200, "", {}, recorded), ParsedReply(200, "", {}, live))
    return found, dict(comparison.used)


def test_rules_have_names_and_stand_in_the_document() -> None:
    names = [(rule.dialect, rule.name) for rule in RULES]
    assert len(names) == len(set(names))
    assert all((rule.treatment is Treatment.MAPPED) or not rule.sent_as for rule in RULES)
    text = (ROOT / "docs/migrate/replaying.md").read_text()
    lines = [f"| {rule.dialect} | {rule.name} | {rule.treatment.value} | {rule.reason} |" for rule in RULES]
    assert text.endswith("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    "name", ["TableArn", "ItemCount", "SS", "Items", "ConsumedCapacity", "ShardIterator", "message"]
)
def test_an_attribute_may_be_called_as_anything(name: str) -> None:
    """Rules are about the service's members, never about those of an item that have the same names."""
    for value, other in (
        ({"S": "a"}, {"S": "b"}),
        ({"L": [{"N": "1"}, {"N": "2"}]}, {"L": [{"N": "2"}, {"N": "1"}]}),
    ):
        for wrap in (lambda tree: tree, lambda tree: {"M": {name: tree}}):
            recorded, live = ({"Items": [{name: wrap(each)}]} for each in (value, other))
            found, used = compared(recorded, live)
            assert len(found) == 1, (value, other)
            assert not used


def test_the_first_difference_is_reported_alone() -> None:
    comparison = ReplyComparison(DYNAMODB, "GetItem", Tokens(), ("", ""), SPANS)
    good = ParsedReply(200, "", {"content-type": "a"}, {"Item": {"n": {"N": "1"}}})
    assert comparison.divergences(good, good) == []
    [status] = comparison.divergences(good, ParsedReply(400, "Wrong", {}, {"message": "x"}))
    assert (status.what, status.recorded, status.live) == (STATUS, "200", "400 Wrong")
    wrong = [ParsedReply(400, code, {}, {"message": code}) for code in ("One", "Other")]
    assert [each.what for each in comparison.divergences(*wrong)] == [CODE]
    other = ParsedReply(200, "", {"content-type": "b"}, {"Item": {"n": {"N": "2"}}})
    assert [(each.what, each.place) for each in comparison.divergences(good, other)] == [
        (HEADER, "headers/content-type"),
        (BODY, "body/Item/n/N"),
    ]


def test_a_missing_and_an_additional_member_are_reported() -> None:
    found, _ = compared({"Item": {"a": {"S": "x"}}}, {"Item": {"b": {"S": "x"}}})
    assert [(each.place, each.recorded, each.live) for each in found] == [
        ("body/Item/a", '{"S": "x"}', "(absent)"),
        ("body/Item/b", "(absent)", '{"S": "x"}'),
    ]
    assert compared({"n": True}, {"n": 1})[0]


def test_order_counts_but_where_none_is_promised() -> None:
    items = [{"n": {"N": "1"}}, {"n": {"N": "2"}}]
    recorded, live = {"Items": items}, {"Items": items[::-1]}
    assert [each.what for each in compared(recorded, live)[0]] == [ORDER]
    assert compared(recorded, live, operation="Scan") == ([], {"scan-order": 1})
    fewer = {"Items": items[:1]}
    [found] = compared(recorded, fewer, operation="Scan")[0]
    assert (found.place, found.recorded, found.live) == ("body/Items", "2 elements", "1 elements")
    other = {"Items": [{"n": {"N": "1"}}, {"n": {"N": "3"}}]}
    assert [each.place for each in compared(recorded, other, operation="Scan")[0]] == ["body/Items[1]/n/N"]
    assert compared({"Item": {"t": {"SS": ["a", "b"]}}}, {"Item": {"t": {"SS": ["b", "a"]}}})[0] == []


def test_an_etag_must_stay_the_same_as_long_as_the_recorded_one_does() -> None:
    tokens = Tokens()

    def read(recorded: str, live: str, key: str = "r") -> list[Divergence]:
        trees = ({"odata.etag": etag, "PartitionKey": "p", "RowKey": key} for etag in (recorded, live))
        return compared(*trees, AZURE_TABLE, "GET Entity", tokens)[0]  # type: ignore[call-arg]

    assert read("one", "uno") == []
    assert read("one", "uno") == []
    assert read("one", "altro", "another entity, written in the same moment") == []
    assert read("two", "due") == []
    [found] = read("two", "tre")
    assert (found.place, found.recorded, found.live) == ("body/odata.etag", "due", "tre")


def test_a_cell_has_the_time_of_its_run_or_of_the_client() -> None:
    def cell(stamp_ms: int) -> dict[str, Any]:
        return {"row": [{"key": [], "cells": [{"name": "c", "stamp_ms": stamp_ms}]}]}

    def told(recorded: int, live: int) -> int:
        return len(compared(cell(recorded), cell(live), TABLE_STORE, "GetRow")[0])

    assert told(1_000_000_050_000, 1_700_000_050_000) == 0
    assert told(5_000, 5_000) == 0
    assert told(5_000, 5_001) == 1
    # The recorded time is the client's. The live time is that of the write.
    assert told(1_500_000_000_000, 1_700_000_050_000) == 1
    assert told(1_000_000_050_000, 1_000_000_050_001) == 1


def test_links_and_error_texts_may_name_another_service() -> None:
    text = "The entity is not there.\nRequestId:{}\nTime:{}"
    trees = [
        {"odata.error": {"code": "X", "message": {"value": text.format(*each)}}}
        for each in (("a", "b"), ("c", "d"))
    ]
    assert compared(*trees, AZURE_TABLE, "GET Entity")[0] == []  # type: ignore[call-arg]
    trees[1]["odata.error"]["message"]["value"] += " Or is it?"  # type: ignore[index]
    assert len(compared(*trees, AZURE_TABLE, "GET Entity")[0]) == 1  # type: ignore[call-arg]
    comparison = ReplyComparison(AZURE_TABLE, "GET EntitySet", Tokens(), ("/one", "/two"), SPANS)

    def links(*urls: str) -> int:
        bodies = ({"odata.metadata": url} for url in urls)
        return len(comparison.divergences(*(ParsedReply(200, "", {}, body) for body in bodies)))

    assert links("http://a:1/one/$metadata#T", "https://b/two/$metadata#T") == 0
    assert links("http://a:1/one/$metadata#T", "https://b/two/$metadata#U") == 1


def scan(**asked: Any) -> Request:
    headers = (("x-amz-target", "DynamoDB_20120810.Scan"),)
    return Request("POST", "/", headers, json.dumps(asked).encode())


def test_a_request_gets_the_live_services_tokens() -> None:
    dynamodb, tokens = DynamoDB(), Tokens()
    tokens.learn("shard-iterator", "", "recorded", "live")
    headers = (("x-amz-target", "DynamoDBStreams_20120810.GetRecords"),)
    request = Request("POST", "/", headers, b'{"ShardIterator": "recorded", "Limit": 5}')
    live = dynamodb.with_live_tokens(request, tokens, is_done=True)
    assert json.loads(live.body) == {"ShardIterator": "live", "Limit": 5}
    unknown = Request("POST", "/", headers, b'{"ShardIterator": "from before"}')
    with pytest.raises(UnknownToken):
        dynamodb.with_live_tokens(unknown, tokens, is_done=True)
    # The live service must reject a token that the recorded service rejected.
    assert dynamodb.with_live_tokens(unknown, tokens, is_done=False) is unknown
    item = Request(
        "POST",
        "/",
        (("x-amz-target", "DynamoDB_20120810.PutItem"),),
        b'{"Item": {"ShardIterator": {"S": "recorded"}}}',
    )
    assert dynamodb.with_live_tokens(item, tokens, is_done=True) is item


def test_tokens_deep_in_a_request_are_found_and_attributes_of_their_names_are_not() -> None:
    dynamodb, tokens = DynamoDB(), Tokens()
    tokens.learn("shard-id", "", "shard-recorded", "shard-live")
    headers = (("x-amz-target", "DynamoDBStreams_20120810.DescribeStream"),)
    request = Request("POST", "/", headers, b'{"ShardFilter": {"ShardId": "shard-recorded"}}')
    assert b'"shard-live"' in dynamodb.with_live_tokens(request, tokens, is_done=True).body
    item = b'{"Item": {"ShardId": {"S": "shard-recorded"}, "m": {"M": {"ShardId": {"S": "shard-recorded"}}}}}'
    request = Request("POST", "/", (("x-amz-target", "DynamoDB_20120810.PutItem"),), item)
    assert dynamodb.with_live_tokens(request, tokens, is_done=True) is request


def test_documents_that_are_too_deep_are_compared_as_bytes() -> None:
    session = ReplaySession(None, None, SPANS[0], 0.0)  # type: ignore[arg-type]
    deep = b'{"Item":{"a":' + b'{"L":[' * 400 + b"%d" + b"]}" * 400 + b"}}"
    about = RecordedRequest(1, 1, 0.0, DYNAMODB, "GetItem")
    request = Request("POST", "/", (("x-amz-target", "DynamoDB_20120810.GetItem"),), b"{}")
    for number, live in ((1, 1), (2, 3)):
        replies = [Reply(200, [], deep % value) for value in (number, live)]
        session.compare(about, request, replies[0], SentRequest(request, replies[1]), is_raced=False)
    assert (session.report.equal.total(), session.report.diverged.total()) == (1, 1)


def test_etags_in_a_batch_are_those_of_their_entities() -> None:
    azure, tokens = AzureTable(), Tokens()
    for key in ("1", "2"):
        tokens.learn("etag", f"t\np\n{key}", "same", f"live {key}")
    parts = "".join(
        f"--b\r\nContent-Type: application/http\r\n\r\nPUT http://h/acc/T(PartitionKey='p',RowKey='{key}') HTTP/1.1\r\n"
        f"If-Match: {etag}\r\nContent-Type: application/json\r\n\r\n{{}}\r\n"
        for key, etag in (("2", "same"), ("1", "same"), ("3", "older"), ("1", "*"))
    )
    changeset = f"--a\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n{parts}--b--\r\n--a--\r\n"
    headers = (("content-type", "multipart/mixed; boundary=a"), ("host", "h"))
    request = Request("POST", "/acc/$batch", headers, changeset.encode())
    live = azure.with_live_tokens(request, tokens, is_done=True).body.decode()
    assert [line[10:] for line in live.split("\r\n") if line.startswith("If-Match: ")] == [
        "live 2",
        "live 1",
        "*",
        "*",
    ]
    refused = azure.with_live_tokens(request, tokens, is_done=False).body.decode()
    assert "If-Match: older\r\n" in refused
    moved = azure.moved(request, "https://other.example", "zzz")
    assert moved.target == "/zzz/$batch"
    assert b"PUT https://other.example/zzz/T(PartitionKey='p',RowKey='2') HTTP/1.1\r\n" in moved.body
    assert b"http://h/" not in moved.body


def test_a_batch_that_was_accepted_need_not_be_done() -> None:
    """The live service must also reject operations with a wrong ETag."""
    parts = "--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 {}\r\n\r\n\r\n--b--\r\n"
    for status, is_done in (("204 No Content", True), ("412 Precondition Failed", False)):
        reply = Reply(202, [("content-type", "multipart/mixed; boundary=b")], parts.format(status).encode())
        assert AzureTable().succeeded(reply) is is_done
        assert (
            AzureTable().answer(Request("POST", "/a/$batch", (), b""), reply).body[0]["status"] == status[:3]
        )


def test_only_an_undecidable_difference_makes_a_result_unknown() -> None:
    for why in SkipReason:
        report = DivergenceReport()
        report.add(1, (DYNAMODB, "GetItem"), [], is_raced=False)
        report.skip(why)
        assert report.exit_status == (0 if why.is_harmless else 2), why
        report.add(2, (DYNAMODB, "GetItem"), [Divergence(STATUS, "status", "200", "400")], is_raced=False)
        assert report.exit_status == 1
    assert DivergenceReport().exit_status == 2


@pytest.mark.parametrize(
    ("target", "body", "is_write"),
    [
        ("GetItem", {}, False), ("BatchGetItem", {}, False), ("TransactGetItems", {}, False), ("Scan", {}, False),
        ("PutItem", {}, True), ("TransactWriteItems", {}, True), ("CreateTable", {}, True), ("TagResource", {}, True),
        ("ExecuteStatement", {"Statement": " select * from T"}, False),
        ("ExecuteStatement", {"Statement": "DELETE FROM T WHERE pk='a'"}, True),
        ("BatchExecuteStatement", {"Statements": [{"Statement": "SELECT"}, {"Statement": "UPDATE"}]}, True),
        ("ExecuteTransaction", {"TransactStatements": [{"Statement": "SELECT 1"}]}, False),
        ("ExecuteTransaction", "nonsense", True),
    ],
)  # fmt: skip
def test_requests_that_write_are_recognized(target: str, body: Any, is_write: bool) -> None:
    headers = (("x-amz-target", f"DynamoDB_20120810.{target}"),)
    assert DynamoDB().is_write(Request("POST", "/", headers, json.dumps(body).encode())) is is_write


def test_pages_of_scans_may_end_elsewhere() -> None:
    """All items must be the same in the end, whatever the pages were."""

    def run(recorded: list[list[int]], live: list[list[int]]) -> DivergenceReport:
        session = ReplaySession(None, None, SPANS[0], 0.0)  # type: ignore[arg-type]
        starts: list[Any] = [None, None]
        for number in range(max(len(recorded), len(live))):
            replies = []
            requests = []
            for side, pages in enumerate((recorded, live)):
                page = pages[number] if number < len(pages) else []
                tree: dict[str, Any] = {
                    "Items": [{"n": {"N": str(item)}} for item in page],
                    "Count": len(page),
                }
                requests.append(
                    scan(TableName="t", **({"ExclusiveStartKey": starts[side]} if starts[side] else {}))
                )
                if number < len(pages) - 1:
                    starts[side] = tree["LastEvaluatedKey"] = {"n": {"N": str(page[-1])}}
                replies.append(Reply(200, [], json.dumps(tree).encode()))
            about = RecordedRequest(number, 1, 0.0, DYNAMODB, "Scan")
            session.compare(
                about, requests[0], replies[0], SentRequest(requests[1], replies[1]), is_raced=False
            )
        return session.report

    assert run([[1, 2], [3]], [[1, 2], [3]]).exit_status == 0
    assert run([[1, 2], [3]], [[3, 1], [2]]).exit_status == 0
    assert run([[1, 2], [3, 4]], [[4, 3, 2], [1]]).exit_status == 0
    assert run([[1, 2], [3]], [[3, 1], [4]]).exit_status == 1
    assert run([[1, 2], [3, 3]], [[3, 1], [2]]).exit_status == 1
    found = run([[1, 2], [3]], [[1, 2, 3]]).found
    assert found[0].divergence.place == "body/LastEvaluatedKey"
