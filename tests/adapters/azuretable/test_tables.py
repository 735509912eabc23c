"""Tables: create, query, delete, the deletion window, access policies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.adapters.azuretable.client import AzureTableService, code_of
from tests.support.clock import Clock


def names(service: AzureTableService, options: str = "") -> list[str]:
    reply = service.send("GET", f"/Tables{options}")
    assert reply.status == 200, reply
    return [table["TableName"] for table in json.loads(reply.body)["value"]]


def test_names_are_unique_without_case_and_keep_it(service: AzureTableService) -> None:
    service.create("People")
    for name in ("People", "people", "PEOPLE"):
        assert code_of(service.send("POST", "/Tables", {"TableName": name})) == (409, "TableAlreadyExists")
    assert names(service) == ["People"]
    service.insert("pEoPlE", "p", "r")
    assert len(service.query("PEOPLE")) == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"TableName": "a_b"}, "InvalidResourceName"),
        ({"TableName": "1ab"}, "InvalidResourceName"),
        ({"TableName": "Tables"}, "InvalidResourceName"),
        ({"TableName": "ab"}, "OutOfRangeInput"),
        ({"TableName": "a" * 64}, "OutOfRangeInput"),
        ({"TableName": ""}, "OutOfRangeInput"),
        ({"TableName": None}, "PropertiesNeedValue"),
        ({}, "PropertiesNeedValue"),
        ({"TableName": 5}, "InvalidInput"),
        ([], "InvalidInput"),
    ],
)
def test_names_that_are_refused(service: AzureTableService, body: Any, code: str) -> None:
    assert code_of(service.send("POST", "/Tables", body)) == (400, code)


def test_names_of_3_and_63_characters_are_accepted(service: AzureTableService) -> None:
    service.create("abc")
    service.create("a" * 63)


def test_query_pages_and_filters(service: AzureTableService) -> None:
    for number in range(7):
        service.create(f"Table{number}")
    reply = service.send("GET", "/Tables?$top=3")
    token = dict(reply.headers)["x-ms-continuation-NextTableName"]
    assert names(service, "?$top=3") == ["Table0", "Table1", "Table2"]
    service.send("DELETE", "/Tables('Table2')")
    assert names(service, f"?$top=3&NextTableName={token}") == ["Table3", "Table4", "Table5"]
    assert names(service, "?$filter=TableName%20ge%20'Table5'") == ["Table5", "Table6"]
    assert names(service, "?$filter=TableName%20eq%20'Table5'&$top=1") == ["Table5"]
    assert names(service, "?$top=0") == []
    assert code_of(service.send("GET", "/Tables?$top=1001")) == (400, "InvalidInput")
    assert code_of(service.send("GET", "/Tables?NextTableName=x")) == (400, "InvalidInput")


def test_a_list_of_many_tables_is_continued_by_a_token(service: AzureTableService) -> None:
    for number in range(1003):
        service.create(f"t{number:04}")
    first = service.send("GET", "/Tables")
    assert len(json.loads(first.body)["value"]) == 1000
    token = dict(first.headers)["x-ms-continuation-NextTableName"]
    assert names(service, f"?NextTableName={token}") == ["t1000", "t1001", "t1002"]
    assert names(service, "?$filter=TableName%20gt%20't1001'") == ["t1002"]


def test_a_deleted_table_can_be_created_again(service: AzureTableService) -> None:
    service.create("people")
    service.insert("people", "p", "r")
    assert service.send("DELETE", "/Tables('PEOPLE')").status == 204
    assert code_of(service.send("GET", "/people()")) == (404, "TableNotFound")
    assert code_of(service.insert("people", "p", "r")) == (404, "TableNotFound")
    for method in ("GET", "DELETE"):
        assert code_of(service.send(method, "/Tables('people')")) == (404, "ResourceNotFound")
    service.create("people")
    assert service.query("people") == []


def test_a_deleted_table_is_hidden_at_once_and_its_name_taken_for_a_while(
    service: AzureTableService, clock: Clock
) -> None:
    """docs/protocols/azure-table.md rule 10.5. Azure documents at least 40 seconds ("Delete Table")."""
    slow = service.with_settings(table_deletion_delay=40)
    slow.create("people")
    slow.insert("people", "p", "r")
    assert slow.send("DELETE", "/Tables('people')").status == 204
    assert names(slow) == []
    for reply in (
        slow.send("POST", "/Tables", {"TableName": "people"}),
        slow.insert("people", "p", "r"),
        slow.send("GET", "/people()"),
        slow.send("GET", "/people(PartitionKey='p',RowKey='r')"),
        slow.send("DELETE", "/Tables('people')"),
    ):
        assert code_of(reply) == (409, "TableBeingDeleted")
    clock.advance(39)
    assert code_of(slow.send("POST", "/Tables", {"TableName": "people"})) == (409, "TableBeingDeleted")
    clock.advance(2)
    slow.create("people")
    assert slow.query("people") == []


def set_policies(service: AzureTableService, document: str) -> Any:
    return service.send("PUT", "/people?comp=acl", document.encode(), {"Content-Type": "application/xml"})


def policy(identifier: str, inner: str = "<AccessPolicy/>") -> str:
    return f"<SignedIdentifier><Id>{identifier}</Id>{inner}</SignedIdentifier>"


def policies(*inner: str) -> str:
    return f"<SignedIdentifiers>{''.join(inner)}</SignedIdentifiers>"


def test_access_policies_round_trip(service: AzureTableService) -> None:
    service.create()
    sent = policies(
        policy(
            "full",
            "<AccessPolicy><Start>2021-06-08T02:10:09Z</Start><Expiry>2022-06-08</Expiry><Permission>raud</Permission></AccessPolicy>",
        ),
        policy("partial", "<AccessPolicy><Start></Start><Permission>r</Permission></AccessPolicy>"),
        policy("empty"),
        policy("none", ""),
    )
    assert set_policies(service, sent).status == 204
    kept = policies(
        policy(
            "full",
            "<AccessPolicy><Start>2021-06-08T02:10:09.0000000Z</Start><Expiry>2022-06-08T00:00:00.0000000Z</Expiry>"
            "<Permission>raud</Permission></AccessPolicy>",
        ),
        policy("partial", "<AccessPolicy><Permission>r</Permission></AccessPolicy>"),
        policy("empty", ""),
        policy("none", ""),
    )
    reply = service.send("GET", "/people?comp=acl")
    assert reply.body.decode() == '<?xml version="1.0" encoding="utf-8"?>' + kept
    assert service.send("HEAD", "/people?comp=acl").body == b""
    assert set_policies(service, "").status == 204
    assert b"SignedIdentifier>" not in service.send("GET", "/people?comp=acl").body


@pytest.mark.parametrize(("count", "status"), [(5, 204), (6, 400)])
def test_most_policies(service: AzureTableService, count: int, status: int) -> None:
    service.create()
    reply = set_policies(service, policies(*(policy(str(number)) for number in range(count))))
    assert reply.status == status
    if status == 400:
        assert code_of(reply) == (400, "InvalidXmlDocument")


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ("<SignedIdentifiers>", "InvalidXmlDocument"),
        ("<Other/>", "InvalidXmlDocument"),
        ("plain", "InvalidXmlDocument"),
        (policies(policy("")), "InvalidXmlDocument"),
        (policies(policy("x" * 65)), "InvalidXmlDocument"),
        (policies(policy("a"), policy("a")), "InvalidXmlDocument"),
        (policies(policy("a", "<AccessPolicy><Start>soon</Start></AccessPolicy>")), "InvalidXmlDocument"),
        (
            policies(policy("a", "<AccessPolicy><Permission>rx</Permission></AccessPolicy>")),
            "InvalidXmlDocument",
        ),
        ('<!DOCTYPE x [<!ENTITY a "a">]><SignedIdentifiers/>', "InvalidXmlDocument"),
        (policies("<x>" * 5000 + "</x>" * 5000), "InvalidXmlDocument"),
        (policies(" " * 70_000), "InvalidXmlDocument"),
    ],
)
def test_policies_that_are_refused(service: AzureTableService, document: str, code: str) -> None:
    service.create()
    if "<x>" in document:
        assert set_policies(service, document).status in (204, 400)
    else:
        assert code_of(set_policies(service, document)) == (400, code)


def test_policies_of_no_table(service: AzureTableService) -> None:
    assert code_of(service.send("GET", "/people?comp=acl")) == (404, "TableNotFound")


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("POST", "/people/Tables", {"TableName": "x"}, (400, "PropertiesNeedValue")),
        ("POST", "/absent/Tables", {"TableName": "x"}, (404, "TableNotFound")),
        ("DELETE", "/people/Tables('people')", None, (400, "InvalidInput")),
        ("GET", "/people/?restype=service&comp=properties", None, (400, "InvalidQueryParameterValue")),
        ("POST", "/people/$batch", b"x", (415, "MediaTypeNotSupported")),
    ],
)
def test_an_account_url_that_ends_in_a_table(
    service: AzureTableService, method: str, path: str, body: Any, expected: tuple[int, str]
) -> None:
    service.create("people")
    assert code_of(service.send(method, path, body)) == expected


# The secondary


def test_the_secondary_reads_and_does_not_write(service: AzureTableService) -> None:
    service.create()
    service.insert("people", "p", "r")
    base = "/devstoreaccount1-secondary"
    assert service.handle(service.request("GET", "/people()", base=base)).status == 200
    assert service.handle(service.request("GET", "/Tables", base=base)).status == 200
    for method, path, body in [
        ("POST", "/people", {"PartitionKey": "p", "RowKey": "x"}),
        ("DELETE", "/people(PartitionKey='p',RowKey='r')", None),
        ("POST", "/Tables", {"TableName": "x"}),
        ("POST", "/$batch", b"x"),
    ]:
        reply = service.handle(service.request(method, path, body, base=base))
        assert code_of(reply) == (403, "InsufficientAccountPermissions")
        assert b"Write operations are not allowed." in reply.body
