"""Any bytes give a reply in the service's form, never a 5xx: path, query, headers, body, batch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.adapters.azuretable.batch_requests import batch_of
from tests.adapters.azuretable.client import AzureTableService
from tests.support.examples import examples

_PATHS = [
    "/people",
    "/people(PartitionKey='p',RowKey='r')",
    "/Tables",
    "/people?comp=acl",
    "/?restype=service&comp=properties",
    "/$batch",
]
FUZZED = examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
_pieces = st.sampled_from(
    ["people", "Tables", "$batch", "(", ")", "PartitionKey='p'", ",", "RowKey='r'", "'", "/", "%", "%27", "%2F", "%00",
     "%ff", "?", "&", "$filter=", "$top=", "$select=", "a eq 1", "NextPartitionKey=", "comp=acl", "restype=service", "=",
     " ", "+", "\x00", "\xff", "é", "1!4!QUJD", "..", "//", "http://x/"]
)  # fmt: skip
_targets = st.lists(_pieces, max_size=8).map("".join)
_methods = st.sampled_from(["GET", "POST", "PUT", "MERGE", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"])
_headers = st.dictionaries(
    st.sampled_from(
        ["Accept", "If-Match", "Prefer", "X-HTTP-Method", "x-ms-version", "Content-Type", "Origin",
         "x-ms-client-request-id", "If-None-Match", "DataServiceVersion", "Date"]
    ),
    st.one_of(
        st.text("W/\"datetime'2023-11-14T22%:.Z*\xff\x00 multipart/mixed;boundary=1!", max_size=40),
        st.sampled_from(["*", "MERGE", "return-content", "multipart/mixed; boundary=b", "application/json"]),
    ),
    max_size=4,
)  # fmt: skip
_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text("aé\x00\ud800/'", max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("aé@. 1", max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
_entities = st.dictionaries(
    st.sampled_from(
        ["PartitionKey", "RowKey", "Timestamp", "a", "a@odata.type", "odata.etag", "1", "TableName"]
    ),
    st.one_of(
        _json,
        st.sampled_from(["Edm.Int64", "Edm.Guid", "Edm.Binary", "Edm.DateTime", "Edm.Double", "p", "1"]),
    ),
    max_size=5,
)


@pytest.fixture
def people(service: AzureTableService) -> AzureTableService:
    service.create()
    service.insert("people", "p", "r", a=1)
    return service


def check(service: AzureTableService, method: str, path: str, body: Any, headers: dict[str, str]) -> None:
    request = service.request(method, path, body, headers)
    reply = service.handle(request)
    assert reply.status < 500 or b'"NotImplemented"' in reply.body, reply
    for name, value in reply.headers:
        assert name.isascii()
        value.encode("latin-1")
        assert "\n" not in value
        assert "\r" not in value


@FUZZED
@given(_methods, _targets, _headers)
def test_any_target_gets_a_reply_of_the_service(
    people: AzureTableService, method: str, target: str, headers: dict[str, str]
) -> None:
    check(people, method, f"/{target}", None, headers)


@FUZZED
@given(_methods, st.sampled_from(_PATHS), st.binary(max_size=60), _headers)
def test_any_body_gets_a_reply_of_the_service(
    people: AzureTableService, method: str, path: str, body: bytes, headers: dict[str, str]
) -> None:
    check(people, method, path, body, headers)


@FUZZED
@given(st.sampled_from(["POST", "PUT", "MERGE"]), _entities, _headers)
def test_any_entity_gets_a_reply_of_the_service(
    people: AzureTableService, method: str, entity: dict[str, Any], headers: dict[str, str]
) -> None:
    path = "/people" if method == "POST" else "/people(PartitionKey='p',RowKey='r')"
    check(people, method, path, entity, headers)


@FUZZED
@given(st.lists(st.one_of(st.text("POST /people HTTP1.\r\n:{}*", max_size=30), _targets), max_size=3))
def test_any_change_of_a_batch_gets_a_reply_of_the_service(
    people: AzureTableService, parts: list[str]
) -> None:
    encodable = [part.encode("utf-8", "replace").decode() for part in parts]
    reply = people.handle(batch_of(people, encodable))
    assert reply.status < 500
    assert b"HTTP/1.1 5" not in reply.body.replace(b"HTTP/1.1 501", b"")


@FUZZED
@given(st.text("<>/=\"'&;![]SignedIdentifiersCorsRule \x00\xff", max_size=80))
def test_any_xml_document_gets_a_reply_of_the_service(people: AzureTableService, text: str) -> None:
    for path in ("/people?comp=acl", "/?restype=service&comp=properties"):
        check(people, "PUT", path, text.encode(), {"Content-Type": "application/xml"})


@FUZZED
@given(st.dictionaries(
    st.sampled_from(["sv", "tn", "sp", "st", "se", "spk", "srk", "epk", "erk", "si", "sip", "spr", "sig", "ss", "srt"]),
    st.text("2019-02-TZ:rawudc%é/+=", max_size=20), min_size=1))  # fmt: skip
def test_any_signature_in_a_query_is_refused(people: AzureTableService, parameters: dict[str, str]) -> None:
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    request = people.request("GET", f"/people()?{query}&sig=x", headers={"Authorization": ""})
    assert people.handle(request).status in (400, 403)
