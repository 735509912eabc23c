"""Statements of "Windows Azure Table", May 2009, tested by the official SDK and by raw requests against a live server.

Where Azure has changed since, the test has the current behaviour and states it. coverage.toml names the source.
"""

from __future__ import annotations

import base64
import datetime
import json
import threading
import uuid
from email.utils import formatdate
from typing import Any

import pytest
import requests
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import EdmType, EntityProperty, TableClient, TableTransactionError, UpdateMode

from tablegate.adapters.azuretable.wire import limits
from tablegate.gateway.security.credential_store import new_secret
from tablegate.gateway.security.credentials import Scheme
from tests.adapters.azuretable.batch_requests import insert_part
from tests.adapters.azuretable.client import ACCOUNT, KEY, sign
from tests.support.live_azure import LiveAzure
from tests.support.running import Running
from tests.support.waiting import PATIENCE_S

BLOG = {"PartitionKey": "Channel_19", "RowKey": "2009-05-01", "Text": ".NET...", "Rating": 9}


@pytest.fixture
def azure(server: Running) -> LiveAzure:
    return LiveAzure(server.url)


def keys_of(entities: Any) -> list[tuple[str, str]]:
    return [(entity["PartitionKey"], entity["RowKey"]) for entity in entities]


def fill(table: TableClient, *keys: tuple[str, str], **more: Any) -> None:
    for partition, row in keys:
        table.create_entity({"PartitionKey": partition, "RowKey": row, **more})


def code_of(refusal: HttpResponseError) -> str:
    assert refusal.response is not None
    return str(refusal.response.headers["x-ms-error-code"])


# The account


def test_requests_are_signed_with_the_accounts_256_bit_key(azure: LiveAzure) -> None:
    assert azure.send("GET", "/Tables").status_code == 200
    for authorization in ("", "SharedKey devstoreaccount1:AAAA", "SharedKey stranger:AAAA"):
        assert azure.send("GET", "/Tables", headers={"Authorization": authorization or " "}).status_code in (
            401,
            403,
        )


def test_keys_have_512_bits_today() -> None:
    """256 bits in 2009."""
    assert len(base64.b64decode(new_secret(Scheme.AZURE))) * 8 == 512


def test_the_account_is_in_the_host_name(azure: LiveAzure) -> None:
    host = {"Host": "devstoreaccount1.table.core.windows.net"}
    headers = {**host, "x-ms-date": formatdate(usegmt=True)}
    headers["Authorization"] = sign(KEY, "GET", "/Tables", headers)
    reply = requests.get(f"{azure.url}/Tables", headers=headers, timeout=PATIENCE_S)
    assert reply.status_code == 200
    assert reply.json()["odata.metadata"].startswith(
        "http://devstoreaccount1.table.core.windows.net/$metadata"
    )


# Tables, entities, properties


def test_a_table_is_an_entry_of_the_master_table(azure: LiveAzure) -> None:
    assert azure.send("POST", "/Tables", {"TableName": "Blogs"}).status_code == 201
    assert azure.send("POST", "/Tables", {"TableName": "Channels"}).status_code == 201
    assert [table["TableName"] for table in azure.send("GET", "/Tables").json()["value"]] == [
        "Blogs",
        "Channels",
    ]
    found = azure.send("GET", "/Tables?$filter=TableName%20eq%20'Blogs'").json()["value"]
    assert found == [{"TableName": "Blogs"}]
    assert azure.send("DELETE", "/Tables('Blogs')").status_code == 204
    assert [table.name for table in azure.service.list_tables()] == ["Channels"]


@pytest.mark.parametrize("name", ["abc", "a" * 63, "A1b2"])
def test_names_that_tables_may_have(azure: LiveAzure, name: str) -> None:
    azure.service.create_table(name)
    with pytest.raises(ResourceExistsError):
        azure.service.create_table(name.swapcase())
    assert keys_of(azure.service.get_table_client(name.swapcase()).list_entities()) == []


@pytest.mark.parametrize("name", ["ab", "a" * 64, "1abc", "a-bc", "a.bc", "my_table"])
def test_names_that_tables_may_not_have(azure: LiveAzure, name: str) -> None:
    assert azure.send("POST", "/Tables", {"TableName": name}).status_code == 400


@pytest.mark.parametrize("name", ["a", "A_1b", "_", "_2", "größe", "字", "x" * 255])
def test_names_that_properties_may_have(azure: LiveAzure, name: str) -> None:
    """Letters, digits and `_` in 2009. Letters of all alphabets today."""
    table = azure.new_table()
    entity = {"PartitionKey": "p", "RowKey": "r", name: "value"}
    assert azure.send("POST", f"/{table.table_name}", entity).status_code == 201
    assert table.get_entity("p", "r")[name] == "value"


@pytest.mark.parametrize("name", ["a-b", "a b", "a+b", "a/b", "1", "1a", "€", "x" * 256])
def test_names_that_properties_may_not_have(azure: LiveAzure, name: str) -> None:
    table = azure.new_table()
    reply = azure.send("POST", f"/{table.table_name}", {"PartitionKey": "p", "RowKey": "r", name: "value"})
    assert reply.status_code == 400
    told = "PropertyNameTooLong" if len(name) > 255 else "PropertyNameInvalid"
    assert reply.headers["x-ms-error-code"] == told
    assert list(table.list_entities()) == []


def test_the_two_keys_name_one_entity(azure: LiveAzure) -> None:
    table = azure.new_table()
    fill(table, ("p", "r"), ("p", "s"), ("q", "r"))
    with pytest.raises(ResourceExistsError):
        fill(table, ("p", "r"))
    assert azure.send("POST", f"/{table.table_name}", {"PartitionKey": "p"}).status_code == 400
    assert azure.send("POST", f"/{table.table_name}", {"PartitionKey": 1, "RowKey": "r"}).status_code == 400


def test_property_names_are_case_sensitive_and_unique(azure: LiveAzure) -> None:
    table = azure.new_table()
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "rating": 1, "Rating": 2})
    entity = table.get_entity("p", "r")
    assert (entity["rating"], entity["Rating"]) == (1, 2)
    body = b'{"PartitionKey":"p","RowKey":"s","a":1,"a":2}'
    reply = azure.send(
        "POST", f"/{table.table_name}", headers={"Content-Type": "application/json"}, data=body
    )
    assert reply.status_code == 400
    assert reply.headers["x-ms-error-code"] == "DuplicatePropertiesSpecified"


def test_a_property_name_may_have_several_types(azure: LiveAzure) -> None:
    table = azure.new_table()
    values: list[Any] = [
        "text",
        5,
        1.5,
        True,
        b"\x00",
        uuid.UUID(int=5),
        EntityProperty(2**40, EdmType.INT64),
    ]
    for number, value in enumerate(values):
        table.create_entity({"PartitionKey": "p", "RowKey": str(number), "mixed": value})
    table.create_entity({"PartitionKey": "p", "RowKey": "other", "different": "properties"})
    found = [entity.get("mixed") for entity in table.query_entities("PartitionKey eq 'p'")]
    assert found == [*values, None]
    assert keys_of(table.query_entities("mixed eq 5")) == [("p", "1")]
    assert keys_of(table.query_entities("mixed eq 'text'")) == [("p", "0")]


def test_entities_have_all_types(azure: LiveAzure) -> None:
    table = azure.new_table()
    entity = {
        "PartitionKey": "p",
        "RowKey": "r",
        "binary": b"\x00\xff",
        "bool": True,
        "date": datetime.datetime(1601, 1, 1, tzinfo=datetime.UTC),
        "last": datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC),
        "double": -1.5e300,
        "guid": uuid.uuid4(),
        "int": -(2**31),
        "int64": EntityProperty(2**63 - 1, EdmType.INT64),
        "string": "Grüße 🙂",
    }
    table.create_entity(entity)
    assert dict(table.get_entity("p", "r")) == entity


@pytest.mark.parametrize("moment", ["1600-12-31T23:59:59Z", "10000-01-01T00:00:00Z"])
def test_dates_have_the_documented_range(azure: LiveAzure, moment: str) -> None:
    table = azure.new_table()
    entity = {"PartitionKey": "p", "RowKey": "r", "date": moment, "date@odata.type": "Edm.DateTime"}
    assert azure.send("POST", f"/{table.table_name}", entity).status_code == 400


@pytest.mark.parametrize("value", ["x", b"x"])
def test_strings_and_binaries_hold_64_kb(azure: LiveAzure, value: Any) -> None:
    table = azure.new_table()
    most = 65536 // (2 if isinstance(value, str) else 1)  # strings are UTF-16
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "a": value * most})
    with pytest.raises(HttpResponseError) as refusal:
        table.create_entity({"PartitionKey": "p", "RowKey": "s", "a": value * (most + 1)})
    assert code_of(refusal.value) == "PropertyValueTooLarge"


def test_keys_hold_1_kb(azure: LiveAzure) -> None:
    table = azure.new_table()
    fill(table, ("p" * 512, "r" * 512))
    assert table.get_entity("p" * 512, "r" * 512)["RowKey"] == "r" * 512
    for keys in (("p" * 513, "r"), ("p", "r" * 513)):
        with pytest.raises(HttpResponseError):
            fill(table, keys)


def test_an_entity_has_255_properties_with_the_three_of_the_system(azure: LiveAzure) -> None:
    table = azure.new_table()
    most = {f"p{number}": number for number in range(252)}
    fill(table, ("p", "r"), **most)
    with pytest.raises(HttpResponseError) as refusal:
        fill(table, ("p", "s"), **most, one_more=1)
    assert code_of(refusal.value) == "TooManyProperties"


def test_an_entity_holds_1_mb_with_its_names_and_keys(azure: LiveAzure) -> None:
    table = azure.new_table()
    full = {f"{letter}": "x" * 32768 for letter in "abcdefghijklmno"}
    left = (1 << 20) - (4 + 2 * 2) - 15 * (8 + 2 + 4 + 65536) - (8 + 2 + 4)
    fill(table, ("p", "r"), **full, z="x" * (left // 2))
    for keys, name in ((("p", "s"), "zz"), (("p", "longer"), "z")):
        with pytest.raises(HttpResponseError) as refusal:
            fill(table, keys, **full, **{name: "x" * (left // 2)})
        assert code_of(refusal.value) == "EntityTooLarge"


def test_the_timestamp_is_the_servers(azure: LiveAzure) -> None:
    table = azure.new_table()
    fill(table, ("p", "r"), Timestamp="1999-01-01T00:00:00Z")
    first = table.get_entity("p", "r").metadata
    table.update_entity({"PartitionKey": "p", "RowKey": "r"})
    second = table.get_entity("p", "r").metadata
    assert first["timestamp"].year >= 2024
    assert second["timestamp"] >= first["timestamp"]
    assert second["etag"] != first["etag"]


def test_results_are_sorted_by_partition_then_row(azure: LiveAzure) -> None:
    table = azure.new_table()
    unordered = [("b", "1"), ("a", "2"), ("a", "10"), ("A", "x"), ("ab", "0"), ("a", "1")]
    fill(table, *unordered)
    assert keys_of(table.list_entities()) == sorted(unordered)
    assert keys_of(table.query_entities("RowKey ge '1'")) == sorted(key for key in unordered if key[1] >= "1")


# Keys and URLs


def test_keys_too_long_for_the_urls_of_2009_go_through_a_batch(serve: Any, database_url: str) -> None:
    table = LiveAzure(serve(database_url, url_segment_limit=260).url).new_table()
    key = "k" * 300
    fill(table, (key, "r"))  # the keys of an insert are in its body
    with pytest.raises(HttpResponseError) as refusal:
        table.get_entity(key, "r")
    assert refusal.value.status_code == 400
    with pytest.raises(HttpResponseError):
        table.update_entity({"PartitionKey": key, "RowKey": "r", "a": 1})
    table.submit_transaction([("update", {"PartitionKey": key, "RowKey": "r", "a": 1})])
    assert [entity["a"] for entity in table.list_entities()] == [1]
    table.submit_transaction([("delete", {"PartitionKey": key, "RowKey": "r"})])
    assert list(table.list_entities()) == []


def test_today_every_legal_key_fits_a_url(azure: LiveAzure) -> None:
    table = azure.new_table()
    key = "字" * 512
    fill(table, (key, key))
    table.update_entity({"PartitionKey": key, "RowKey": key, "a": 1})
    assert table.get_entity(key, key)["a"] == 1
    table.delete_entity(key, key)


# Partitions and queries


def test_a_query_of_a_partition_reads_only_its_rows(azure: LiveAzure) -> None:
    table = azure.new_table()
    fill(
        table,
        ("Examples Doc", "V1.0"),
        ("Examples Doc", "V2.0.1"),
        ("FAQ Doc", "V1.0"),
        ("FAQ Doc", "V1.0.2"),
    )
    assert keys_of(table.query_entities("PartitionKey eq 'FAQ Doc'")) == [
        ("FAQ Doc", "V1.0"),
        ("FAQ Doc", "V1.0.2"),
    ]
    assert keys_of(table.query_entities("RowKey eq 'V1.0'")) == [
        ("Examples Doc", "V1.0"),
        ("FAQ Doc", "V1.0"),
    ]


def test_a_partition_has_no_bound(azure: LiveAzure) -> None:
    table = azure.new_table()
    for start_at in range(0, 1200, 100):
        rows = [{"PartitionKey": "p", "RowKey": f"{row:04}"} for row in range(start_at, start_at + 100)]
        table.submit_transaction([("create", row) for row in rows])
    assert len(list(table.query_entities("PartitionKey eq 'p'"))) == 1200


def test_a_page_of_n_entities_has_a_continuation(azure: LiveAzure) -> None:
    table = azure.new_table()
    fill(table, *(("p", str(row)) for row in range(5)))
    pages = table.list_entities(results_per_page=2).by_page()
    first = keys_of(next(pages))
    token = pages.continuation_token
    table.delete_entity("p", "2")  # the token's own row
    rest = [keys_of(page) for page in table.list_entities(results_per_page=2).by_page(token)]
    assert [first, *rest] == [[("p", "0"), ("p", "1")], [("p", "3"), ("p", "4")]]


def test_a_page_ends_after_a_thousand(azure: LiveAzure) -> None:
    table = azure.new_table()
    for partition in range(11):
        rows = [{"PartitionKey": str(partition), "RowKey": str(row)} for row in range(100)]
        table.submit_transaction([("create", row) for row in rows])
    assert [len(list(page)) for page in table.list_entities().by_page()] == [1000, 100]


@pytest.mark.parametrize("condition", ["n ge 0", "n ge 0 and n ne 5"])
def test_a_long_query_continues_from_a_token(
    azure: LiveAzure, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    """A page that has reached its time limit ends with the entities found and a token.

    The five seconds of "Query timeout and pagination" (learn.microsoft.com/rest/api/storageservices) are over at once
    here.
    """
    table = azure.new_table()
    for start_at in range(0, 300, 100):
        rows = [
            {"PartitionKey": "p", "RowKey": f"{row:04}", "n": row} for row in range(start_at, start_at + 100)
        ]
        table.submit_transaction([("create", row) for row in rows])
    [everything] = [keys_of(page) for page in table.query_entities(condition).by_page()]
    assert len(everything) >= 299
    monkeypatch.setattr(limits, "PAGE_MAX_SECONDS", 0.0)
    pages = [keys_of(page) for page in table.query_entities(condition).by_page()]
    assert len(pages) > 1
    assert [key for page in pages for key in page] == everything


def test_latest_first_by_keys_that_count_down(azure: LiveAzure) -> None:
    table = azure.new_table()
    last_tick = 3155378975999999999
    for tick, title in (
        (633800000000000000, "old"),
        (633800000000000001, "new"),
        (633700000000000000, "oldest"),
    ):
        table.create_entity({"PartitionKey": "Channel", "RowKey": f"{last_tick - tick:019}", "Title": title})
    assert [entity["Title"] for entity in table.query_entities("PartitionKey eq 'Channel'")] == [
        "new",
        "old",
        "oldest",
    ]


def test_entities_are_retrieved_by_a_prefix(azure: LiveAzure) -> None:
    table = azure.new_table()
    fill(table, ("p", "Channel_1"), ("p", "Channel_19"), ("p", "Channel_2"), ("p", "chan"), ("p", "Channel"))
    found = table.query_entities("PartitionKey eq 'p' and RowKey ge 'Channel_1' and RowKey lt 'Channel_2'")
    assert keys_of(found) == [("p", "Channel_1"), ("p", "Channel_19")]


def test_two_keys_concatenated_into_one(azure: LiveAzure) -> None:
    table = azure.new_table()
    fill(table, ("Seattle-2009", "1"), ("Seattle-2010", "1"), ("Tacoma-2009", "1"))
    found = table.query_entities("PartitionKey ge 'Seattle-' and PartitionKey lt 'Seattle.'")
    assert keys_of(found) == [("Seattle-2009", "1"), ("Seattle-2010", "1")]


# Changing entities


def test_a_blog_is_created_retrieved_updated_and_deleted(azure: LiveAzure) -> None:
    table = azure.service.create_table("Blogs")
    table.create_entity(BLOG)
    [found] = table.query_entities("PartitionKey eq 'Channel_19' and Rating gt 5")
    assert dict(found) == BLOG
    table.update_entity({**BLOG, "Text": "Hi there"}, mode=UpdateMode.REPLACE)
    assert table.get_entity("Channel_19", "2009-05-01")["Text"] == "Hi there"
    table.delete_entity("Channel_19", "2009-05-01")
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("Channel_19", "2009-05-01")


def test_replace_removes_properties_and_merge_keeps_them(azure: LiveAzure) -> None:
    table = azure.new_table()
    table.create_entity(BLOG)
    keys = {"PartitionKey": "Channel_19", "RowKey": "2009-05-01"}
    table.update_entity({**keys, "Rating": 10}, mode=UpdateMode.MERGE)
    assert dict(table.get_entity(**_names(keys))) == {**BLOG, "Rating": 10}
    table.update_entity({**keys, "Rating": 11}, mode=UpdateMode.REPLACE)
    assert dict(table.get_entity(**_names(keys))) == {**keys, "Rating": 11}


def _names(keys: dict[str, str]) -> dict[str, str]:
    return {"partition_key": keys["PartitionKey"], "row_key": keys["RowKey"]}


def test_a_table_cannot_be_updated(azure: LiveAzure) -> None:
    table = azure.new_table()
    for method in ("PUT", "MERGE", "PATCH"):
        reply = azure.send(
            method, f"/Tables('{table.table_name}')", {"TableName": "other"}, {"If-Match": "*"}
        )
        assert reply.status_code == 405


def test_an_update_with_an_old_etag_is_refused(azure: LiveAzure) -> None:
    table = azure.new_table()
    table.create_entity(BLOG)
    mine = table.get_entity("Channel_19", "2009-05-01")
    yours = table.get_entity("Channel_19", "2009-05-01")
    under_etag = {"match_condition": MatchConditions.IfNotModified}
    table.update_entity({**mine, "Rating": 1}, etag=mine.metadata["etag"], **under_etag)
    with pytest.raises(ResourceModifiedError):
        table.update_entity({**yours, "Rating": 2}, etag=yours.metadata["etag"], **under_etag)
    with pytest.raises(ResourceModifiedError):
        table.delete_entity(yours, etag=yours.metadata["etag"], **under_etag)
    table.update_entity({**yours, "Rating": 3})  # If-Match: *
    assert table.get_entity("Channel_19", "2009-05-01")["Rating"] == 3
    table.delete_entity(mine)
    with pytest.raises(ResourceNotFoundError):
        table.update_entity({**mine, "Rating": 4})


def test_one_of_many_writers_wins(azure: LiveAzure) -> None:
    table = azure.new_table()
    table.create_entity({"PartitionKey": "p", "RowKey": "counter", "n": 0})

    def increment() -> None:
        with azure.service.get_table_client(table.table_name) as mine:
            done = 0
            while done < 5:
                entity = mine.get_entity("p", "counter")
                entity["n"] += 1
                try:
                    mine.update_entity(
                        entity, etag=entity.metadata["etag"], match_condition=MatchConditions.IfNotModified
                    )
                except ResourceModifiedError:
                    continue
                done += 1

    threads = [threading.Thread(target=increment) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert table.get_entity("p", "counter")["n"] == 20


# Entity group transactions


def test_a_group_can_have_every_operation(azure: LiveAzure) -> None:
    table = azure.new_table()
    fill(table, ("p", "b"), ("p", "c"), a=1)
    table.submit_transaction(
        [
            ("create", {"PartitionKey": "p", "RowKey": "a"}),
            ("update", {"PartitionKey": "p", "RowKey": "b", "a": 2}, {"mode": UpdateMode.REPLACE}),
            ("delete", {"PartitionKey": "p", "RowKey": "c"}),
        ]
    )
    assert keys_of(table.list_entities()) == [("p", "a"), ("p", "b")]


def test_a_group_happens_all_or_not_at_all(azure: LiveAzure) -> None:
    table = azure.new_table()
    fill(table, ("p", "there"), a=1)
    with pytest.raises(TableTransactionError) as refusal:
        table.submit_transaction(
            [
                ("update", {"PartitionKey": "p", "RowKey": "there", "a": 2}),
                ("create", {"PartitionKey": "p", "RowKey": "new"}),
                ("create", {"PartitionKey": "p", "RowKey": "there"}),
            ]
        )
    assert refusal.value.index == 2
    [only] = table.list_entities()
    assert dict(only) == {"PartitionKey": "p", "RowKey": "there", "a": 1}


def test_a_group_is_of_one_partition_and_one_table(azure: LiveAzure) -> None:
    table, other = azure.new_table(), azure.new_table()
    for second in (
        insert_part(table.table_name, "q", "r"),
        insert_part(other.table_name, "p", "r"),
        insert_part(table.table_name, "p", "first"),
    ):
        parts = [insert_part(table.table_name, "p", "first"), second]
        assert b"HTTP/1.1 400 Bad Request" in send_batch(azure, parts).content
    assert list(table.list_entities()) == list(other.list_entities()) == []


def send_batch(azure: LiveAzure, parts: list[str], version: str = "2009-04-14") -> Any:
    changes = "".join(f"--c\r\nContent-Type: application/http\r\n\r\n{part}\r\n" for part in parts)
    body = f"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{changes}--c--\r\n--b--\r\n"
    headers = {"Content-Type": "multipart/mixed; boundary=b", "x-ms-version": version}
    return azure.send("POST", "/$batch", headers=headers, data=body.encode())


@pytest.mark.extended
def test_queries_see_a_group_whole_or_not_at_all(azure: LiveAzure) -> None:
    """Readers page through snapshots while a writer changes whole groups.

    This runs for seconds, and the test of issue 3 for a minute.
    """
    table = azure.new_table()
    rows = [f"{row:02}" for row in range(20)]
    table.submit_transaction([("create", {"PartitionKey": "p", "RowKey": row, "n": 0}) for row in rows])
    stop = threading.Event()
    torn: list[set[int]] = []
    looks = [0]

    def read() -> None:
        with azure.service.get_table_client(table.table_name) as mine:
            while not stop.is_set():
                seen = {entity["n"] for entity in mine.query_entities("PartitionKey eq 'p'")}
                looks[0] += 1
                if len(seen) != 1:
                    torn.append(seen)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for number in range(1, 60):
            table.submit_transaction(
                [("upsert", {"PartitionKey": "p", "RowKey": row, "n": number}) for row in rows]
            )
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert looks[0] > 5
    assert torn == []


# Versions


def test_a_group_needs_the_version_of_2009_or_later(azure: LiveAzure) -> None:
    table = azure.new_table()
    assert send_batch(azure, [insert_part(table.table_name, "p", "r")], "2008-10-27").status_code == 400
    assert send_batch(azure, [insert_part(table.table_name, "p", "r")], "2009-04-14").status_code == 202


def test_a_group_without_a_version_has_the_accounts_today(azure: LiveAzure) -> None:
    """The current default version has groups. In 2009 a missing version meant one without groups."""
    table = azure.new_table()
    reply = send_batch(azure, [insert_part(table.table_name, "p", "r")], "")
    assert reply.status_code == 202
    assert keys_of(table.list_entities()) == [("p", "r")]


@pytest.mark.parametrize("version", ["2009-4-14", "2009-0414", "latest", "2009-13-01"])
def test_an_invalid_version_is_rejected(azure: LiveAzure, version: str) -> None:
    reply = azure.send("GET", "/Tables", headers={"x-ms-version": version})
    assert reply.status_code == 400
    assert reply.headers["x-ms-error-code"] == "InvalidHeaderValue"


def test_a_version_that_azure_never_had_is_taken_and_echoed(azure: LiveAzure) -> None:
    reply = azure.send("GET", "/Tables", headers={"x-ms-version": "2010-01-05"})
    assert (reply.status_code, reply.headers["x-ms-version"]) == (200, "2010-01-05")


def test_versions_of_all_ages_work_and_are_echoed(azure: LiveAzure) -> None:
    for version in ("2009-04-14", "2013-08-15", "2019-02-02", "2024-11-04"):
        reply = azure.send("GET", "/Tables", headers={"x-ms-version": version})
        assert (reply.status_code, reply.headers["x-ms-version"]) == (200, version)
    assert azure.send("GET", "/Tables", headers={"x-ms-version": ""}).headers["x-ms-version"] == "2019-02-02"


def test_the_version_is_no_part_of_the_signature(azure: LiveAzure) -> None:
    headers = {"x-ms-date": formatdate(usegmt=True)}
    for lite in (False, True):
        authorization = sign(KEY, "GET", f"/{ACCOUNT}/Tables", headers, lite=lite)
        reply = azure.send(
            "GET",
            "/Tables",
            headers={**headers, "Authorization": authorization, "x-ms-version": "2009-04-14"},
        )
        assert reply.status_code == 200


# Durability and names


def test_acknowledged_writes_exist_after_a_restart(serve: Any, database_url: str) -> None:
    first = serve(database_url)
    azure = LiveAzure(first.url)
    table = azure.new_table()
    fill(table, ("p", "r"), a=1)
    first.stop()
    again = LiveAzure(serve(database_url).url).service.get_table_client(table.table_name)
    assert again.get_entity("p", "r")["a"] == 1


def test_delete_a_table_and_make_it_again(azure: LiveAzure) -> None:
    table = azure.service.create_table("Blogs")
    table.create_entity(BLOG)
    azure.service.delete_table("Blogs")
    with pytest.raises(ResourceNotFoundError):
        table.create_entity(BLOG)
    azure.service.create_table("Blogs")
    assert list(table.list_entities()) == []


def test_a_table_that_is_being_deleted_keeps_its_name(serve: Any, database_url: str) -> None:
    azure = LiveAzure(serve(database_url, table_deletion_delay=40).url)
    azure.service.create_table("Blogs")
    azure.service.delete_table("Blogs")
    assert list(azure.service.list_tables()) == []
    reply = azure.send("POST", "/Tables", {"TableName": "Blogs"})
    assert reply.status_code == 409
    assert json.loads(reply.content)["odata.error"]["code"] == "TableBeingDeleted"


def test_many_tables_can_be_created(azure: LiveAzure) -> None:
    for number in range(25):
        azure.service.create_table(f"many{number:02}")
    assert len(list(azure.service.list_tables())) == 25


def test_kinds_of_entities_live_in_one_table(azure: LiveAzure) -> None:
    table = azure.new_table()
    fill(table, ("Channel_19", "Blog_1"), Text="...")
    fill(table, ("Channel_19", "Comment_1"), Author="Ada")
    assert keys_of(table.query_entities("Author eq 'Ada'")) == [("Channel_19", "Comment_1")]
