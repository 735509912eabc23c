"""Single entities: the verbs, their conditions, ETags, preferences, and every limit on both sides."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from tablegate.adapters.azuretable.wire import limits
from tablegate.gateway.http.messages import Reply
from tests.adapters.azuretable.client import AzureTableService, code_of
from tests.support.clock import Clock
from tests.support.running import beyond_wsgi

PATH = "/people(PartitionKey='p',RowKey='r')"
PEOPLE_ANY = {"If-Match": "*"}


@pytest.fixture
def people(service: AzureTableService) -> AzureTableService:
    service.create()
    return service


def etag_of(reply: Reply) -> str:
    return dict(reply.headers)["ETag"]


@pytest.mark.parametrize("coding", ["gzip", "deflate", "garbage"])
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_an_encoded_body_is_bad_input_and_no_server_error(
    people: AzureTableService, coding: str, method: str
) -> None:
    # The REST reference names no Content-Encoding of requests, and no capture has the service fail at one.
    path = PATH if method == "PUT" else "/people"
    body = gzip.compress(b'{"PartitionKey":"p","RowKey":"r"}')
    assert people.send(method, path, body, {"Content-Encoding": coding}).status == 400


def test_insert_answers_with_the_entity(people: AzureTableService) -> None:
    reply = people.insert("people", "p", "r", name="Ada")
    assert reply.status == 201
    entity = json.loads(reply.body)
    assert entity["odata.etag"] == etag_of(reply)
    assert entity == people.get("people", "p", "r")
    assert dict(reply.headers)["Location"] == f"http://127.0.0.1:10002/devstoreaccount1{PATH}"
    assert "Preference-Applied" not in dict(reply.headers)


@pytest.mark.parametrize(("preference", "status"), [("return-content", 201), ("return-no-content", 204)])
def test_preferences(people: AzureTableService, preference: str, status: int) -> None:
    reply = people.send("POST", "/people", {"PartitionKey": "p", "RowKey": "r"}, {"Prefer": preference})
    headers = dict(reply.headers)
    assert reply.status == status
    assert headers["Preference-Applied"] == preference
    assert bool(reply.body) is (status == 201)
    assert ("DataServiceId" in headers) is (status == 204)


def test_insert_does_not_replace(people: AzureTableService) -> None:
    people.insert("people", "p", "r", name="Ada")
    assert code_of(people.insert("people", "p", "r", name="Bob")) == (409, "EntityAlreadyExists")
    assert people.get("people", "p", "r")["name"] == "Ada"


@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH"])
def test_upserts_create_missing_entities(people: AzureTableService, method: str) -> None:
    reply = people.send(method, PATH, {"name": "Ada"})
    assert reply.status == 204
    assert etag_of(reply) == people.get("people", "p", "r")["odata.etag"]
    assert people.get("people", "p", "r")["name"] == "Ada"


@pytest.mark.parametrize("headers", [{}, PEOPLE_ANY])
def test_put_removes_and_merge_keeps_omitted_properties(
    people: AzureTableService, headers: dict[str, str]
) -> None:
    people.insert("people", "p", "r", name="Ada", born=1815)
    people.send("MERGE", PATH, {"name": "Countess"}, headers)
    merged = people.get("people", "p", "r", "nometadata")
    assert (merged["name"], merged["born"]) == ("Countess", 1815)
    people.send("PUT", PATH, {"name": "Augusta"}, headers)
    assert "born" not in people.get("people", "p", "r", "nometadata")


def test_nulls_are_dropped_and_a_merge_cannot_delete(people: AzureTableService) -> None:
    people.insert("people", "p", "r", name="Ada", nothing=None)
    assert "nothing" not in people.get("people", "p", "r")
    people.send("MERGE", PATH, {"name": None, "born": 1815})
    assert people.get("people", "p", "r")["name"] == "Ada"
    people.send("PUT", PATH, {"name": None})
    assert "name" not in people.get("people", "p", "r")


@pytest.mark.parametrize("method", ["PUT", "MERGE", "PATCH", "DELETE"])
def test_conditions(people: AzureTableService, method: str) -> None:
    body = None if method == "DELETE" else {"a": 1}
    assert code_of(people.send(method, PATH, body, PEOPLE_ANY)) == (404, "ResourceNotFound")
    stale = etag_of(people.insert("people", "p", "r"))
    assert code_of(people.send(method, PATH, body, {"If-Match": stale.replace("2023", "2022")})) == (
        412,
        "UpdateConditionNotSatisfied",
    )
    fresh = etag_of(people.send("MERGE", PATH, {"b": 1}, {"If-Match": stale}))
    assert fresh != stale
    assert code_of(people.send(method, PATH, body, {"If-Match": stale})) == (
        412,
        "UpdateConditionNotSatisfied",
    )
    assert people.send(method, PATH, body, {"If-Match": fresh}).status == 204


def test_an_etag_of_something_gone_is_not_found(people: AzureTableService) -> None:
    etag = etag_of(people.insert("people", "p", "r"))
    people.send("DELETE", PATH, headers=PEOPLE_ANY)
    assert code_of(people.send("PUT", PATH, {}, {"If-Match": etag})) == (404, "ResourceNotFound")


@pytest.mark.parametrize("tag", ['"strong"', "W/unquoted", "abc", 'W/"a"b"', "**", 'W/"a", W/"b"'])
def test_an_if_match_that_is_no_weak_etag_is_refused(people: AzureTableService, tag: str) -> None:
    """Source of the text: Azure/Azurite issue 1829. Source of the code: issue 2013."""
    people.insert("people", "p", "r")
    for method in ("PUT", "MERGE", "DELETE"):
        reply = people.send(method, PATH, {}, {"If-Match": tag})
        assert code_of(reply) == (400, "InvalidInput")
        text = json.loads(reply.body)["odata.error"]["message"]["value"]
        assert text.startswith(
            f"The etag value '{tag}' specified in one of the request headers is not valid. Please make sure only one "
            "etag value is specified and is valid.\n"
        )


@pytest.mark.parametrize(
    "tag", ['W/"other"', 'w/"other"', "W/\"datetime'soon'\"", "w/\"datetime'2023-11-14T22%3A13%3A20Z'\""]
)
def test_a_weak_etag_of_another_making_does_not_match(people: AzureTableService, tag: str) -> None:
    people.insert("people", "p", "r")
    assert code_of(people.send("PUT", PATH, {}, {"If-Match": tag})) == (412, "UpdateConditionNotSatisfied")


def test_the_w_of_an_etag_may_be_small(people: AzureTableService) -> None:
    """RFC 2616, the base of the service, reads its literals without case (2.1). Azurite notes parity with Azure."""
    etag = etag_of(people.insert("people", "p", "r"))
    assert people.send("PUT", PATH, {}, {"If-Match": "w" + etag[1:]}).status == 204


def test_delete_needs_a_condition(people: AzureTableService) -> None:
    people.insert("people", "p", "r")
    assert code_of(people.send("DELETE", PATH)) == (400, "MissingRequiredHeader")
    assert people.send("DELETE", PATH, headers=PEOPLE_ANY).status == 204
    assert people.query("people") == []


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_if_none_match_is_refused(people: AzureTableService, method: str) -> None:
    headers = {"If-None-Match": "*", "If-Match": "*"}
    assert code_of(people.send(method, PATH, {}, headers)) == (400, "InvalidInput")


def test_etags_differ_though_the_clock_stands_still(people: AzureTableService, clock: Clock) -> None:
    people.insert("people", "p", "r", a=1)
    clock.advance(-3600)
    tags = {etag_of(people.send("PUT", PATH, {"a": 1}, {"x-ms-date": people.now})) for _ in range(5)}
    assert len(tags) == 5


def test_timestamp_is_the_servers(people: AzureTableService) -> None:
    people.insert("people", "p", "r", Timestamp="1999-01-01T00:00:00Z")
    entity = people.get("people", "p", "r")
    assert entity["Timestamp"].startswith("2023-11-14T22:13:")
    assert entity["Timestamp"].replace(":", "%3A") in entity["odata.etag"]


@pytest.mark.parametrize("method", ["MERGE", "PATCH", "PUT", "DELETE"])
def test_verbs_may_be_tunnelled(people: AzureTableService, method: str) -> None:
    people.insert("people", "p", "r", name="Ada")
    body = None if method == "DELETE" else {"a": 1}
    assert people.send("POST", PATH, body, {"X-HTTP-Method": method, **PEOPLE_ANY}).status == 204
    if method == "DELETE":
        assert people.query("people") == []
    else:
        assert ("name" in people.get("people", "p", "r")) is (method != "PUT")


@pytest.mark.parametrize(
    ("method", "tunnelled", "code"),
    [
        ("PUT", "MERGE", "XMethodNotUsingPost"),
        ("POST", "GET", "XMethodIncorrectValue"),
        ("POST", "?", "XMethodIncorrectValue"),
    ],
)
def test_bad_tunnels(people: AzureTableService, method: str, tunnelled: str, code: str) -> None:
    assert code_of(people.send(method, PATH, {}, {"X-HTTP-Method": tunnelled})) == (400, code)


@beyond_wsgi
def test_two_tunnels(people: AzureTableService) -> None:
    request = people.request("POST", PATH, {})
    twice = (("x-http-method", "PUT"), ("x-http-method", "PUT"))
    request = replace(request, headers=(*request.headers, *twice))
    assert code_of(people.handle(request)) == (400, "XMethodIncorrectCount")


@pytest.mark.parametrize("missing", ["PartitionKey", "RowKey"])
def test_both_keys_are_needed(people: AzureTableService, missing: str) -> None:
    entity = {"PartitionKey": "p", "RowKey": "r"}
    assert code_of(people.send("POST", "/people", {**entity, missing: None})) == (400, "PropertiesNeedValue")
    del entity[missing]
    assert code_of(people.send("POST", "/people", entity)) == (400, "PropertiesNeedValue")


@pytest.mark.parametrize(
    "entity",
    [
        {"PartitionKey": 1, "RowKey": "r"},
        {"PartitionKey": "p", "RowKey": "r", "RowKey@odata.type": "Edm.Int32"},
        {"PartitionKey": "p", "RowKey": "r", "PartitionKey@odata.type": "Edm.Binary"},
        {"PartitionKey": "p", "RowKey": "r", "a": [1]},
        {"PartitionKey": "p", "RowKey": "r", "a": {"b": 1}},
        {"PartitionKey": "p", "RowKey": "r", "a": 2**31},
    ],
)
def test_entities_that_are_refused(people: AzureTableService, entity: dict[str, Any]) -> None:
    assert code_of(people.send("POST", "/people", entity)) == (400, "InvalidInput")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"5",
        b"{",
        b'{"PartitionKey":"p","RowKey":"r",}',
        b'{"PartitionKey":"p","RowKey":"r","a":NaN}',
        b'{"PartitionKey":"p","RowKey":"r","a":1e999}',
        b'{"PartitionKey":"p","RowKey":"r","a":"\\ud800"}',
        b'{"PartitionKey":"p","RowKey":"r","a\\udc00":1}',
        b'{"PartitionKey":"p","RowKey":"r","a":"\xff"}',
        b'{"PartitionKey":"p","RowKey":"r","a":' + b"9" * 5000 + b"}",
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    ],
)
def test_bodies_that_are_no_entities(people: AzureTableService, body: bytes) -> None:
    assert code_of(people.send("POST", "/people", body)) == (400, "InvalidInput")


def test_members_that_servers_send_are_taken_back(people: AzureTableService) -> None:
    people.insert("people", "p", "r", name="Ada", id="255", **{"id@odata.type": "Edm.Int64"})
    full = people.get("people", "p", "r", "fullmetadata")
    assert people.send("PUT", PATH, full, PEOPLE_ANY).status == 204
    again = people.get("people", "p", "r", "fullmetadata")
    for volatile in ("odata.etag", "Timestamp"):
        assert again.pop(volatile) != full.pop(volatile)
    assert again == full


def test_stray_annotations_are_ignored(people: AzureTableService) -> None:
    stray = {"x@odata.type": "Edm.Int64", "name@odata.type@odata.type": "Edm.String"}
    assert people.insert("people", "p", "r", name="Ada", **stray).status == 201


def test_a_repeated_property(people: AzureTableService) -> None:
    body = b'{"PartitionKey":"p","RowKey":"r","a":1,"a":1}'
    assert code_of(people.send("POST", "/people", body)) == (400, "DuplicatePropertiesSpecified")


def test_names_differ_by_case(people: AzureTableService) -> None:
    people.insert("people", "p", "r", name=1, Name=2)
    entity = people.get("people", "p", "r")
    assert (entity["name"], entity["Name"]) == (1, 2)


def test_keys_in_the_body_must_be_those_of_the_address(people: AzureTableService) -> None:
    assert people.send("PUT", PATH, {"PartitionKey": "p", "RowKey": "r"}).status == 204
    assert code_of(people.send("PUT", PATH, {"PartitionKey": "other"})) == (400, "InvalidInput")


@pytest.mark.parametrize("name", ["123", "1a", "my-attr", "a b", "a.b", "a#"])
def test_illegal_property_names(people: AzureTableService, name: str) -> None:
    assert code_of(people.insert("people", "p", "r", **{name: 1})) == (400, "PropertyNameInvalid")


# Limits, on both sides


def test_a_property_name_longer_than_255_is_refused(people: AzureTableService) -> None:
    assert people.insert("people", "p", "r", **{"a" * 255: 1}).status == 201
    reply = people.insert("people", "p", "s", **{"a" * 256: 1})
    assert code_of(reply) == (400, "PropertyNameTooLong")
    assert b'"The property name exceeds the maximum allowed length (255).\\nRequestId:' in reply.body


def test_most_properties(people: AzureTableService) -> None:
    many = {f"p{number}": number for number in range(252)}
    assert people.insert("people", "p", "r", **many).status == 201
    assert people.send("MERGE", PATH, {"p0": "again"}).status == 204
    reply = people.send("MERGE", PATH, {"one_more": 1})
    assert code_of(reply) == (400, "TooManyProperties")
    assert (
        b"Each entity can include up to 252 properties to store data. Each entity also has 3 system"
        in reply.body
    )
    assert code_of(people.insert("people", "p", "s", **many, one_more=1)) == (400, "TooManyProperties")
    assert len(people.get("people", "p", "r", "nometadata")) == 255


def test_an_entity_larger_than_1_mib_is_refused(people: AzureTableService) -> None:
    # 4 + 2 * (1 + 1) for the keys, 8 + 2 + 4 + 64 KiB for each full string, and the rest for the last one.
    full = dict.fromkeys("abcdefghijklmno", "x" * 32768)
    left = (1 << 20) - 8 - 15 * (8 + 2 + 4 + 65536) - (8 + 2 + 4)
    fits = {**full, "z": "x" * (left // 2)}
    assert people.insert("people", "p", "r", **fits).status == 201
    assert code_of(people.insert("people", "p", "s", **{**fits, "z": "x" * (left // 2 + 1)})) == (
        400,
        "EntityTooLarge",
    )
    assert code_of(people.send("MERGE", PATH, {"z": "x" * (left // 2 + 1)})) == (400, "EntityTooLarge")
    assert people.send("MERGE", PATH, {"z": "y" * (left // 2)}).status == 204


def test_a_body_larger_than_4_mib_is_refused(people: AzureTableService) -> None:
    entity = json.dumps({"PartitionKey": "p", "RowKey": "r"}).encode()
    assert people.send("POST", "/people", entity.ljust(4 << 20)).status == 201
    assert code_of(people.send("POST", "/people", entity.ljust((4 << 20) + 1))) == (
        413,
        "RequestBodyTooLarge",
    )


@pytest.mark.parametrize("key", ["k" * 512, "ключ", "a'b", "100%", "a+b c", "", " ", "🙂"])
def test_keys_by_every_verb(people: AzureTableService, key: str) -> None:
    from urllib.parse import quote

    quoted = quote(key.replace("'", "''"))
    path = f"/people(PartitionKey='{quoted}',RowKey='{quoted}')"
    assert people.insert("people", key, key, a=1).status == 201
    assert people.send("MERGE", path, {"b": 2}, PEOPLE_ANY).status == 204
    reply = people.send("GET", path)
    entity = json.loads(reply.body)
    assert (entity["PartitionKey"], entity["a"], entity["b"]) == (key, 1, 2)
    assert people.send("DELETE", path, headers=PEOPLE_ANY).status == 204


def test_keys_that_may_not_be_made(people: AzureTableService) -> None:
    """Sources: thepirat000/Audit.NET issue 680 (an insert), Azure/azure-storage-net issue 386 and
    Azure/azure-cosmos-table-dotnet issue 64 (upserts in a batch)."""
    inserted = people.insert("people", "a/b", "r")
    assert code_of(inserted) == (400, "OutOfRangeInput")
    assert b"The 'PartitionKey' parameter of value 'a/b' is out of range." in inserted.body
    for method in ("PUT", "MERGE"):
        upserted = people.send(method, "/people(PartitionKey='p',RowKey='a%2Fb')", {})
        assert code_of(upserted) == (400, "InvalidInput")
        assert b"Bad Request - Error in query syntax." in upserted.body
    assert code_of(people.send("PUT", "/people(PartitionKey='a%23b',RowKey='r')", {})) == (
        400,
        "OutOfRangeInput",
    )
    assert code_of(people.insert("people", "p", "k" * 513)) == (400, "PropertyValueTooLarge")


def test_the_segment_limit_of_2009_can_be_set(people: AzureTableService) -> None:
    old = people.with_settings(url_segment_limit=260)
    overhead = len("people(PartitionKey='',RowKey='r')")
    fits, too_long = "k" * (260 - overhead), "k" * (261 - overhead)
    assert old.send("PUT", f"/people(PartitionKey='{fits}',RowKey='r')", {}).status == 204
    refused = old.send("PUT", f"/people(PartitionKey='{too_long}',RowKey='r')", {})
    assert code_of(refused) == (400, "InvalidUri")
    assert people.send("PUT", f"/people(PartitionKey='{too_long}',RowKey='r')", {}).status == 204


# Reading


def test_a_missing_entity_gets_404(people: AzureTableService) -> None:
    assert code_of(people.send("GET", PATH)) == (404, "ResourceNotFound")
    assert code_of(people.send("GET", "/animals(PartitionKey='p',RowKey='r')")) == (404, "TableNotFound")


def test_get_ignores_if_match(people: AzureTableService) -> None:
    etag = etag_of(people.insert("people", "p", "r"))
    assert people.send("GET", PATH, headers={"If-Match": etag}).status == 200


def test_get_selects(people: AzureTableService) -> None:
    people.insert("people", "p", "r", a=1, b=2)
    reply = people.send("GET", f"{PATH}?$select=b,RowKey,missing")
    entity = json.loads(reply.body)
    assert set(entity) == {"odata.metadata", "odata.etag", "RowKey", "b", "missing"}


LEVELS = {
    "nometadata": set(),
    "minimalmetadata": {"odata.etag"},
    "fullmetadata": {"odata.etag", "odata.type", "odata.id", "odata.editLink"},
}


@pytest.mark.parametrize("level", LEVELS)
def test_selected_property_that_an_entity_lacks_is_null(people: AzureTableService, level: str) -> None:
    """Source: Azure/Azurite issue 2535, Azure/azure-storage-java issue 42, Azure/azure-sdk-for-js issue 17407."""
    people.insert("people", "p", "r", a=1)
    accept = {"Accept": f"application/json;odata={level}"}
    one = json.loads(people.send("GET", f"{PATH}?$select=z,a,etag", headers=accept).body)
    many = json.loads(people.send("GET", "/people()?$select=z,a,etag", headers=accept).body)
    expected = {"a": 1, "z": None, "etag": None}
    for entity in (one, *many["value"]):
        assert {name: entity[name] for name in expected} == expected
        assert entity.keys() - expected.keys() - {"odata.metadata"} == LEVELS[level]


def test_page_of_nulls_is_bounded(people: AzureTableService) -> None:
    """A page ends early if $select has so many names that their nulls would fill it."""
    for number in range(3):
        people.insert("people", "p", str(number))
    names = ",".join(f"n{number}" for number in range(1000))
    with patch.object(limits, "PAGE_MAX_BYTES", 30_000):
        reply = people.send("GET", f"/people()?$select={names}")
        assert len(json.loads(reply.body)["value"]) == 2
        assert len(people.query("people", select=names)) == 3


@pytest.mark.parametrize("accept", ["application/atom+xml", "application/xml", "text/xml"])
def test_atom_is_refused(people: AzureTableService, accept: str) -> None:
    assert code_of(people.send("GET", "/people()", headers={"Accept": accept})) == (
        415,
        "AtomFormatNotSupported",
    )


@pytest.mark.parametrize(
    "accept", ["", "*/*", "application/json", "application/json;odata=minimalmetadata, text/plain"]
)
def test_every_accepted_media_type_gets_json(people: AzureTableService, accept: str) -> None:
    reply = people.send("GET", "/people()", headers={"Accept": accept})
    assert reply.status == 200
    assert dict(reply.headers)["Content-Type"].startswith("application/json;odata=minimalmetadata")


def test_format_wins_over_accept(people: AzureTableService) -> None:
    reply = people.send(
        "GET", "/people()?$format=application/json;odata=nometadata", headers={"Accept": "text/xml"}
    )
    assert json.loads(reply.body) == {"value": []}
