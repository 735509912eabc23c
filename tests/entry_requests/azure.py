"""Azure's Table service: every operation (all enter in front of Flask), and what is refused before an operation is known."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from tablegate.adapters.azuretable.dialect import AzureTable
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.security.credentials import Credentials
from tests.adapters.azuretable.batch_requests import batch_of, insert_part, part, query_batch, upsert_part
from tests.adapters.azuretable.client import ACCOUNT, AzureRequests
from tests.entry_requests import NOW_MS, Case
from tests.support.clock import Clock

_CLOCK = Clock()
_CLOCK.ns = NOW_MS * 1_000_000
_REQUESTS = AzureRequests(_CLOCK)
_DIALECT = AzureTable(Gateway(Mock(), Credentials(Settings()), Settings(), lambda: NOW_MS, lambda: NOW_MS))
XML = {"Content-Type": "application/xml"}
ENTITY = "/people(PartitionKey='a',RowKey='1')"
EVERY_KIND = {
    "Text": "ü🙂", "Small": 7, "Large": "9007199254740993", "Large@odata.type": "Edm.Int64", "Half": 0.5, "Flag": True,
    "Bytes": "AP8=", "Bytes@odata.type": "Edm.Binary", "Moment": "2020-01-02T03:04:05.1234567Z",
    "Moment@odata.type": "Edm.DateTime", "Guid": "c9da6455-213d-42c9-9a79-3e9149a57833", "Guid@odata.type": "Edm.Guid",
}  # fmt: skip


def _case(name: str, method: str, path: str, body: Any = None, **headers: str) -> Case:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = _REQUESTS.request(method, path, body, named)
    return Case(f"{method} {path} {name}", _DIALECT.operation(request), request)


def _tables() -> list[Case]:
    rights = "<AccessPolicy><Permission>r</Permission></AccessPolicy>"
    policy = f"<SignedIdentifiers><SignedIdentifier><Id>x</Id>{rights}</SignedIdentifier></SignedIdentifiers>"
    return [
        _case("makes one", "POST", "/Tables", {"TableName": "people"}),
        _case("makes one quietly", "POST", "/Tables", {"TableName": "others"}, Prefer="return-no-content"),
        _case("of one that is there", "POST", "/Tables", {"TableName": "People"}),
        _case("of a name that is none", "POST", "/Tables", {"TableName": "1"}),
        _case("of no JSON", "POST", "/Tables", b"{", Content_Type="application/json"),
        _case("finds", "GET", "/Tables"),
        _case("a page", "GET", "/Tables?$top=1"),
        _case("finds it", "GET", "/Tables('people')"),
        _case("of none", "GET", "/Tables('nowhere')"),
        _case("deletes", "DELETE", "/Tables('others')"),
        _case("of none", "DELETE", "/Tables('nowhere')"),
        _case("sets", "PUT", "/people?comp=acl", policy.encode(), **XML),
        _case("of no XML", "PUT", "/people?comp=acl", b"<", **XML),
        _case("finds", "GET", "/people?comp=acl"),
        _case("has", "HEAD", "/people?comp=acl"),
        _case("of none", "GET", "/nowhere?comp=acl"),
        _case("finds", "GET", "/?restype=service&comp=properties"),
        _case("sets nothing", "PUT", "/?restype=service&comp=properties", b"<StorageServiceProperties/>", **XML),
        _case("of no XML", "PUT", "/?restype=service&comp=properties", b"x", **XML),
        _case("of the primary", "GET", "/?restype=service&comp=stats"),
    ]  # fmt: skip


def _entities() -> list[Case]:
    key = {"PartitionKey": "a", "RowKey": "1"}
    stale = "W/\"datetime'2001-01-01T00%3A00%3A00.0000000Z'\""
    full = {"Accept": "application/json;odata=fullmetadata"}
    odd = "/people(PartitionKey='a%20%C3%BC''',RowKey='')"
    return [
        _case("every kind", "POST", "/people", {**key, **EVERY_KIND}),
        _case("quietly", "POST", "/people", {**key, "RowKey": "2", "Small": 1}, Prefer="return-no-content"),
        _case("of one that is there", "POST", "/people", key),
        _case("without a key", "POST", "/people", {"PartitionKey": "a"}),
        _case("of a wrong kind", "POST", "/people", {**key, "RowKey": "3", "x": "y", "x@odata.type": "Edm.Int64"}),
        _case("into no table", "POST", "/nowhere", key),
        _case("of no JSON", "POST", "/people", b"{", Content_Type="application/json"),
        _case("of another content type", "POST", "/people", b"x", Content_Type="text/plain"),
        _case("finds", "GET", ENTITY),
        _case("with all metadata", "GET", ENTITY, **full),
        _case("a part", "GET", f"{ENTITY}?$select=Text,Nothing"),
        _case("none", "GET", "/people(PartitionKey='z',RowKey='1')"),
        _case("of half a key", "GET", "/people(PartitionKey='a')"),
        _case("inserts or replaces", "PUT", "/people(PartitionKey='a',RowKey='4')", {"Small": 4}),
        _case("of odd characters", "PUT", odd, {"Small": 5}),
        _case("of odd characters", "GET", odd),
        _case("of a key with a slash", "GET", "/people(PartitionKey='a%2Fb',RowKey='%27%27')"),
        _case("replaces", "PUT", ENTITY, {"Small": 8}, If_Match="*"),
        _case("with a stale tag", "PUT", ENTITY, {"Small": 9}, If_Match=stale),
        _case("with a tag that is none", "PUT", ENTITY, {"Small": 9}, If_Match="x"),
        _case("merges", "MERGE", ENTITY, {"Half": 1.5}, If_Match="*"),
        _case("merges", "PATCH", ENTITY, {"Half": 2.5}, If_Match="*"),
        _case("merges by post", "POST", ENTITY, {"Half": 3.5}, X_HTTP_Method="MERGE", If_Match="*"),
        _case("none", "MERGE", "/people(PartitionKey='z',RowKey='1')", {"Half": 1.5}, If_Match="*"),
        _case("without a tag", "DELETE", ENTITY),
        _case("with a stale tag", "DELETE", ENTITY, If_Match=stale),
        _case("deletes", "DELETE", "/people(PartitionKey='a',RowKey='4')", If_Match="*"),
        _case("none", "DELETE", "/people(PartitionKey='a',RowKey='4')", If_Match="*"),
    ]  # fmt: skip


def _queries() -> list[Case]:
    return [
        _case("finds", "GET", "/people()"),
        _case("without brackets", "GET", "/people"),
        _case("a page", "GET", "/people()?$top=1"),
        _case("goes on", "GET", "/people()?NextPartitionKey=1!4!YQ--&NextRowKey=1!4!Mg--"),
        _case("filters", "GET", "/people()?$filter=PartitionKey%20eq%20'a'%20and%20Half%20gt%201.0"),
        _case("a part", "GET", "/people()?$select=RowKey"),
        _case("without metadata", "GET", "/people()", Accept="application/json;odata=nometadata"),
        _case("in a form that is none", "GET", "/people()", Accept="text/html"),
        _case("with a filter that is none", "GET", "/people()?$filter=a%20eq"),
        _case("with an option that is none", "GET", "/people()?$orderby=a"),
        _case("of none", "GET", "/nowhere()"),
    ]


def _batches() -> list[Case]:
    def batch(name: str, *parts: str) -> Case:
        request = batch_of(_REQUESTS, list(parts))
        return Case(f"$batch {name}", _DIALECT.operation(request), request)

    read = query_batch(_REQUESTS, ENTITY)
    return [
        batch(
            "inserts and replaces", insert_part("people", "b", "1", n=1), upsert_part("people", "b", "2", n=2)
        ),
        batch(
            "is refused at the second",
            upsert_part("people", "b", "3", n=3),
            insert_part("people", "b", "1", n=1),
        ),
        batch("of two partitions", upsert_part("people", "b", "3"), upsert_part("people", "c", "3")),
        batch("of one key twice", upsert_part("people", "b", "3"), upsert_part("people", "b", "3")),
        batch("deletes", part("DELETE", "/people(PartitionKey='b',RowKey='2')", If_Match="*")),
        batch("into no table", upsert_part("nowhere", "b", "1")),
        Case("$batch of a query", _DIALECT.operation(read), read),
        _case("that is none", "POST", "/$batch", b"x", Content_Type="multipart/mixed; boundary=b"),
        _case("without a boundary", "POST", "/$batch", b"x", Content_Type="multipart/mixed"),
    ]


def _refused_before() -> list[Case]:
    return [
        _case("a wrong signature", "GET", "/Tables", Authorization=f"SharedKey {ACCOUNT}:eA=="),
        _case("no key", "GET", "/Tables", Authorization="Bearer x"),
        _case("a date long ago", "GET", "/Tables", x_ms_date="Mon, 01 Jan 2001 00:00:00 GMT"),
        _case("no date", "GET", "/Tables", x_ms_date=""),
        _case("a version that is none", "GET", "/Tables", x_ms_version="newest"),
        _case("no version", "GET", "/Tables", x_ms_version=""),
        _case("an id of its own", "GET", "/Tables", x_ms_client_request_id="mine"),
        _case("from a browser", "GET", "/Tables", Origin="http://somewhere"),
        _case(
            "asks first", "OPTIONS", "/people", Origin="http://somewhere", Access_Control_Request_Method="GET"
        ),
        _case("a method that is none here", "PUT", "/Tables", b""),
        _case("a resource that is none", "GET", "/a/b/c"),
        _case("an address that is none", "GET", "/people(PartitionKey='a"),
        _case("escapes that are none", "GET", "/Tables('%zz')"),
        _case("an option twice", "GET", "/people()?$top=1&$top=2"),
    ]


CASES = [*_tables(), *_entities(), *_queries(), *_batches(), *_refused_before()]
