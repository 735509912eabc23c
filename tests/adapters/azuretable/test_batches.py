"""Entity group transactions: all or nothing, the failing index, the limits."""

from __future__ import annotations

import json
import re

import pytest

from tablegate.gateway.http.messages import Request
from tests.adapters.azuretable.batch_requests import (
    batch_of,
    failure,
    insert_part,
    part,
    query_batch,
    statuses,
    upsert_part,
)
from tests.adapters.azuretable.client import ACCOUNT, HOST, AzureTableService, code_of

ENTITY = "/people(PartitionKey='p',RowKey='{}')"


@pytest.fixture
def people(service: AzureTableService) -> AzureTableService:
    service.create()
    return service


def rows(service: AzureTableService) -> list[str]:
    return [entity["RowKey"] for entity in service.query("people")]


def test_one_group_can_have_every_verb(people: AzureTableService) -> None:
    for row in "bcde":
        people.insert("people", "p", row, old=1)
    parts = [
        insert_part("people", "p", "a", n=1),
        part("PUT", ENTITY.format("b"), {"n": 2}, If_Match="*"),
        part("MERGE", ENTITY.format("c"), {"n": 3}, If_Match="*"),
        part("PATCH", ENTITY.format("d"), {"n": 4}, If_Match="*"),
        part("DELETE", ENTITY.format("e"), If_Match="*"),
        part("PUT", ENTITY.format("f"), {"n": 6}),
        part("MERGE", ENTITY.format("g"), {"n": 7}),
        part("POST", ENTITY.format("h"), {"n": 8}, X_HTTP_Method="MERGE"),
    ]
    reply = people.handle(batch_of(people, parts))
    assert statuses(reply) == [204] * 8
    found = {entity["RowKey"]: entity for entity in people.query("people")}
    assert list(found) == list("abcdfgh")
    assert [found[row]["n"] for row in "abcdfgh"] == [1, 2, 3, 4, 6, 7, 8]
    assert ["old" in found[row] for row in "bcd"] == [False, True, True]


def test_answers_carry_etags_and_content_ids_in_order(people: AzureTableService) -> None:
    reply = people.handle(batch_of(people, [insert_part("people", "p", row) for row in "cab"]))
    text = reply.body.decode()
    assert re.findall(r"Content-ID: (\d)", text) == ["0", "1", "2"]
    etags = dict(zip("cab", re.findall(r"ETag: (\S+)", text), strict=True))
    assert etags == {row: people.get("people", "p", row)["odata.etag"] for row in "cab"}
    assert re.findall(r"Location: \S+RowKey='(.)'", text) == ["c", "a", "b"]


def test_an_insert_may_answer_with_its_entity(people: AzureTableService) -> None:
    body = {"PartitionKey": "p", "RowKey": "r", "n": 1}
    reply = people.handle(batch_of(people, [part("POST", "/people", body, Prefer="return-content")]))
    assert statuses(reply) == [201]
    assert b'"n":1}' in reply.body
    assert b"Preference-Applied: return-content" in reply.body


@pytest.mark.parametrize("at", [0, 1, 4])
def test_a_failure_undoes_everything_and_names_its_index(people: AzureTableService, at: int) -> None:
    people.insert("people", "p", "there")
    etag = people.get("people", "p", "there")["odata.etag"]
    parts = [upsert_part("people", "p", f"new{number}") for number in range(4)]
    parts.insert(at, insert_part("people", "p", "there"))
    assert failure(people.handle(batch_of(people, parts))) == (409, "EntityAlreadyExists", str(at))
    assert rows(people) == ["there"]
    assert people.get("people", "p", "there")["odata.etag"] == etag


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (part("DELETE", ENTITY.format("gone"), If_Match="*"), (404, "ResourceNotFound")),
        (part("PUT", ENTITY.format("there"), {}, If_Match='W/"x"'), (412, "UpdateConditionNotSatisfied")),
        (part("DELETE", ENTITY.format("there")), (400, "MissingRequiredHeader")),
        (insert_part("people", "p", "a/b"), (400, "OutOfRangeInput")),
        (insert_part("people", "q", "r"), (400, "CommandsInBatchActOnDifferentPartitions")),
        (insert_part("animals", "p", "r"), (400, "CommandsInBatchActOnDifferentPartitions")),
        (upsert_part("people", "p", "first"), (400, "InvalidDuplicateRow")),
        (part("POST", "/people", {"RowKey": "r"}), (400, "PropertiesNeedValue")),
        (part("GET", ENTITY.format("there")), (400, "InvalidInput")),
        (part("PUT", "/people", {}), (400, "InvalidInput")),
        (part("POST", "/Tables", {"TableName": "animals"}), (400, "InvalidInput")),
        (part("POST", "/people/Tables", {}), (400, "InvalidInput")),
        (part("PUT", "/people(PartitionKey='p')", {}), (400, "InvalidInput")),
        (part("POST", "/people", []), (400, "InvalidInput")),
    ],
)
def test_a_failing_change_is_named_and_undoes_its_batch(
    people: AzureTableService, bad: str, expected: tuple[int, str]
) -> None:
    people.insert("people", "p", "there")
    reply = people.handle(batch_of(people, [upsert_part("people", "p", "first"), bad]))
    assert failure(reply) == (*expected, "1")
    assert rows(people) == ["there"]


def test_an_entity_of_another_account_is_refused(people: AzureTableService) -> None:
    foreign = insert_part("people", "p", "r").replace("/devstoreaccount1/", "/otheraccount/")
    assert failure(people.handle(batch_of(people, [foreign]))) == (400, "InvalidInput", "0")


@pytest.mark.parametrize(
    "base", ["", f"/{ACCOUNT}", f"http://{HOST}/{ACCOUNT}", f"http://{ACCOUNT}.table.localhost"]
)
def test_a_url_may_be_absolute_or_begin_at_the_root_or_at_the_table(
    people: AzureTableService, base: str
) -> None:
    """azure-cosmosdb-table 1.0.6 writes `POST /people` whatever its endpoint is (tableservice.py, commit_batch)."""
    written = f"http://{HOST}/{ACCOUNT}"
    parts = [insert_part("people", "p", "r"), upsert_part("people", "p", "s")]
    assert statuses(people.handle(batch_of(people, [each.replace(written, base) for each in parts]))) == [
        204,
        204,
    ]
    assert rows(people) == ["r", "s"]


@pytest.mark.parametrize("base", [f"/{ACCOUNT}-secondary", f"http://{ACCOUNT}-secondary.table.localhost"])
def test_nothing_is_written_to_a_secondary(people: AzureTableService, base: str) -> None:
    """As outside of batches: "Azure Storage redundancy", the secondary can only be read."""
    part = insert_part("people", "p", "r").replace(f"http://{HOST}/{ACCOUNT}", base)
    assert code_of(people.handle(batch_of(people, [part]))) == (403, "InsufficientAccountPermissions")
    assert rows(people) == []


def test_a_batch_for_a_missing_table_fails_at_its_first_change(service: AzureTableService) -> None:
    assert failure(service.handle(batch_of(service, [insert_part("people", "p", "r")]))) == (
        404,
        "TableNotFound",
        "0",
    )


def test_a_hundred_changes_and_no_more(people: AzureTableService) -> None:
    parts = [insert_part("people", "p", f"{number:03}") for number in range(101)]
    status, code, _ = failure(people.handle(batch_of(people, parts)))
    assert (status, code) == (400, "InvalidInput")
    assert rows(people) == []
    assert statuses(people.handle(batch_of(people, parts[:100]))) == [204] * 100
    assert len(rows(people)) == 100


def test_four_mebibytes_and_no_more(people: AzureTableService) -> None:
    parts = [upsert_part("people", "p", str(number), a="x" * 30000, b="x" * 30000) for number in range(69)]
    blanks = (4 << 20) - len(batch_of(people, parts).body)
    fits = [*parts[:-1], parts[-1] + " " * blanks]
    assert set(statuses(people.handle(batch_of(people, fits)))) == {204}
    too_large = [*parts[:-1], parts[-1] + " " * (blanks + 1)]
    assert code_of(people.handle(batch_of(people, too_large))) == (413, "RequestBodyTooLarge")


def test_an_empty_batch_has_no_replies(people: AzureTableService) -> None:
    assert statuses(people.handle(batch_of(people, []))) == []


def test_keys_too_long_for_the_urls_of_2009_go_through_a_batch(people: AzureTableService) -> None:
    old = people.with_settings(url_segment_limit=260)
    key = "k" * 512
    path = f"/people(PartitionKey='{key}',RowKey='r')"
    assert code_of(old.send("PUT", path, {})) == (400, "InvalidUri")
    assert statuses(old.handle(batch_of(old, [part("PUT", path, {"a": 1})]))) == [204]
    reply = old.handle(query_batch(old, path))
    assert statuses(reply) == [200]
    assert b'"a":1' in reply.body


def test_a_batch_can_be_one_query(people: AzureTableService) -> None:
    people.insert("people", "p", "r", n=1)
    reply = people.handle(query_batch(people, ENTITY.format("r")))
    assert statuses(reply) == [200]
    assert b"changeset" not in reply.body
    reply = people.handle(query_batch(people, ENTITY.format("gone")))
    assert statuses(reply) == [404]
    reply = people.handle(query_batch(people, "/people()?$filter=n%20eq%201"))
    assert statuses(reply) == [200]
    reply = people.handle(query_batch(people, "/Tables"))
    assert statuses(reply) == [400]


@pytest.mark.parametrize(
    ("version", "works"), [("2009-04-13", False), ("2009-04-14", True), ("2024-11-04", True), ("", True)]
)
def test_batches_need_the_version_that_brought_them(
    people: AzureTableService, version: str, works: bool
) -> None:
    request = batch_of(people, [insert_part("people", "p", "r")], {"x-ms-version": version})
    reply = people.handle(request)
    assert statuses(reply) == [204] if works else code_of(reply) == (400, "InvalidHeaderValue")


def test_a_batch_needs_the_permissions_of_all_its_parts(people: AzureTableService) -> None:
    from tests.adapters.azuretable.test_auth import service_sas

    parts = [insert_part("people", "p", "a"), part("DELETE", ENTITY.format("b"), If_Match="*")]
    for permissions, allowed in (("a", False), ("ad", True)):
        people.send("PUT", ENTITY.format("b"), {})
        request = batch_of(people, parts)
        headers = tuple(pair for pair in request.headers if pair[0] != "authorization")
        target = f"{request.target}?{service_sas(sp=permissions)}"
        reply = people.handle(Request(request.method, target, headers, request.body))
        if allowed:
            assert statuses(reply) == [204, 204]
        else:
            assert code_of(reply) == (403, "AuthorizationPermissionMismatch")


def test_a_failure_is_worded_like_any_other(people: AzureTableService) -> None:
    people.insert("people", "p", "r")
    reply = people.handle(batch_of(people, [insert_part("people", "p", "r")]))
    start = reply.body.index(b"{")
    value = json.loads(reply.body[start : reply.body.index(b"\r\n", start)])["odata.error"]["message"][
        "value"
    ]
    assert re.fullmatch(
        r"0:The specified entity already exists\.\nRequestId:[0-9a-f-]{36}\nTime:2023-11-14T22:13:\d\d\.\d{7}Z",
        value,
    )
