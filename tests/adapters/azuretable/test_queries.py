"""Query Entities: order, pages, tokens, ranges, selection."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablegate.gateway.http.messages import Reply
from tests.adapters.azuretable.client import AzureTableService, code_of, query_string


@pytest.fixture
def people(service: AzureTableService) -> AzureTableService:
    service.create()
    return service


def fill(service: AzureTableService, *keys: tuple[str, str]) -> None:
    for partition, row in keys:
        assert service.insert("people", partition, row, n=int(row) if row.isdigit() else 0).status == 201


def keys_of(entities: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(entity["PartitionKey"], entity["RowKey"]) for entity in entities]


def ask(service: AzureTableService, **options: str) -> Reply:
    return service.send("GET", f"/people(){query_string(options)}")


def test_order_is_that_of_partition_then_row_over_the_whole_table(people: AzureTableService) -> None:
    unordered = [
        ("b", "2"),
        ("a", "10"),
        ("A", "1"),
        ("a", "1"),
        ("a", ""),
        ("ä", "0"),
        ("b", "1"),
        ("", "9"),
        ("a", "2"),
    ]
    fill(people, *unordered)
    assert keys_of(people.query("people")) == sorted(unordered)


def test_top_is_of_a_page_and_pages_go_on(people: AzureTableService) -> None:
    fill(people, *(("p", str(number)) for number in range(7)))
    reply = ask(people, top="3")
    assert len(json.loads(reply.body)["value"]) == 3
    assert "x-ms-continuation-NextPartitionKey" in dict(reply.headers)
    assert len(people.query("people", top="3")) == 7
    exact = ask(people, top="7")
    assert "x-ms-continuation-NextPartitionKey" not in dict(exact.headers)


@pytest.mark.parametrize(
    ("top", "status"), [("1", 200), ("1000", 200), ("1001", 400), ("-1", 400), ("x", 400), ("1.5", 400)]
)
def test_top_must_be_between_1_and_1000(people: AzureTableService, top: str, status: int) -> None:
    assert ask(people, top=top).status == status


def test_top_zero_is_nothing(people: AzureTableService) -> None:
    fill(people, ("p", "1"))
    assert json.loads(ask(people, top="0").body)["value"] == []


def test_tokens_survive_their_rows(people: AzureTableService) -> None:
    fill(people, *(("p", str(number)) for number in range(5)))
    headers = dict(ask(people, top="2").headers)
    token = {
        "NextPartitionKey": headers["x-ms-continuation-NextPartitionKey"],
        "NextRowKey": headers["x-ms-continuation-NextRowKey"],
    }
    for row in ("1", "2"):
        people.send("DELETE", f"/people(PartitionKey='p',RowKey='{row}')", headers={"If-Match": "*"})
    assert keys_of(json.loads(ask(people, **token).body)["value"]) == [("p", "3"), ("p", "4")]


def test_tokens_of_any_key_fit_headers_and_queries(people: AzureTableService) -> None:
    keys = [("é🙂+%&=", "'"), ("k" * 512, "я" * 512)]
    fill(people, *keys)
    reply = ask(people, top="1")
    assert all(value.isascii() and value.isprintable() for _, value in reply.headers)
    assert keys_of(people.query("people", top="1")) == sorted(keys)


@pytest.mark.parametrize("token", ["x", "1!3!ab", "2!2!ab", "1!x!ab", "1!4!ab*c", "1!1!a", "!!", "1!2!é "])
def test_tokens_that_are_none(people: AzureTableService, token: str) -> None:
    assert code_of(ask(people, NextPartitionKey=token)) == (400, "InvalidInput")


def test_continuation_without_row_key_is_accepted_and_with_an_empty_one_refused(
    people: AzureTableService,
) -> None:
    """Source: microsoft/AzureStorageExplorer issues 5434 and 5579, whose requests have an empty NextRowKey."""
    fill(people, ("a", "1"), ("b", "1"))
    partition = dict(ask(people, top="1").headers)["x-ms-continuation-NextPartitionKey"]
    assert keys_of(json.loads(ask(people, NextPartitionKey=partition).body)["value"]) == [("b", "1")]
    assert code_of(ask(people, NextPartitionKey=partition, NextRowKey="")) == (400, "InvalidInput")


def test_a_partition_query_reads_its_partition_only(people: AzureTableService) -> None:
    fill(people, *((partition, str(row)) for partition in ("a", "ab", "b") for row in range(3)))
    assert keys_of(people.query("people", filter="PartitionKey eq 'a'")) == [
        ("a", "0"),
        ("a", "1"),
        ("a", "2"),
    ]


def test_a_range_filter_finds_a_prefix_of_the_partition_key(people: AzureTableService) -> None:
    fill(people, ("ab", "1"), ("abc", "1"), ("abd", "1"), ("abcx", "1"), ("b", "1"))
    found = people.query("people", filter="PartitionKey ge 'abc' and PartitionKey lt 'abd'")
    assert keys_of(found) == [("abc", "1"), ("abcx", "1")]


def test_both_keys_in_a_filter_are_a_list_not_a_404(people: AzureTableService) -> None:
    fill(people, ("p", "1"))
    assert keys_of(people.query("people", filter="PartitionKey eq 'p' and RowKey eq '1'")) == [("p", "1")]
    assert people.query("people", filter="PartitionKey eq 'p' and RowKey eq '2'") == []


def test_contradictory_keys_find_nothing(people: AzureTableService) -> None:
    fill(people, ("p", "1"))
    for expression in ("PartitionKey eq 'p' and PartitionKey eq 'q'", "RowKey gt '5' and RowKey lt '1'"):
        assert people.query("people", filter=expression) == []


def test_filters_on_timestamp(people: AzureTableService) -> None:
    fill(people, ("p", "1"))
    moment = people.get("people", "p", "1")["Timestamp"]
    assert len(people.query("people", filter=f"Timestamp eq datetime'{moment}'")) == 1
    assert people.query("people", filter=f"Timestamp gt datetime'{moment}'") == []


def test_pages_of_a_thousand(people: AzureTableService) -> None:
    from tests.adapters.azuretable.batch_requests import batch_of, insert_part

    for partition in range(11):
        parts = [insert_part("people", str(partition), f"{row:03}") for row in range(100)]
        assert people.handle(batch_of(people, parts)).status == 202
    first = ask(people)
    assert len(json.loads(first.body)["value"]) == 1000
    assert len(people.query("people")) == 1100
    assert len(people.query("people", filter="RowKey ge '050'")) == 550


def test_a_page_ends_before_it_is_too_large(people: AzureTableService) -> None:
    for row in range(40):
        people.insert("people", "p", f"{row:02}", **dict.fromkeys("abcdefghijklmno", "x" * 32000))
    first = json.loads(ask(people).body)["value"]
    assert 30 < len(first) < 40
    assert len(people.query("people", select="RowKey")) == 40
    assert people.query("people", filter="missing eq 1") == []


def test_a_query_returns_the_selected_properties(people: AzureTableService) -> None:
    people.insert("people", "p", "1", a=1, b="x")
    [entity] = people.query("people", select="a")
    assert set(entity) == {"odata.etag", "a"}
    [entity] = people.query("people", select="PartitionKey,Timestamp, b")
    assert set(entity) == {"odata.etag", "PartitionKey", "Timestamp", "b"}
    [entity] = people.query("people", select="*")
    assert {"PartitionKey", "RowKey", "a", "b"} <= set(entity)


@pytest.mark.parametrize(
    ("select", "projection"),
    [("RowKey,%20a", "&$select=RowKey,a"), ("a,RowKey", "&$select=a,RowKey"), ("*", ""), ("", "")],
)
def test_the_metadata_names_the_selected_properties(
    people: AzureTableService, select: str, projection: str
) -> None:
    """OData 3.0 (JSON, context of a projection), in the order of the request, for a set and for one of it."""
    people.insert("people", "p", "1", a=1)
    for path, what in (("/people()", "people"), ("/people(PartitionKey='p',RowKey='1')", "people/@Element")):
        document = json.loads(people.send("GET", f"{path}?$select={select}").body)
        assert document["odata.metadata"].endswith(f"/$metadata#{what}{projection}")


@pytest.mark.parametrize(
    "option", ["$orderby=a", "$skip=1", "$count=true", "$expand=a", "$inlinecount=allpages"]
)
def test_options_that_there_are_not(people: AzureTableService, option: str) -> None:
    assert code_of(people.send("GET", f"/people()?{option}")) == (501, "NotImplemented")


def test_a_query_of_a_missing_table_gets_404(service: AzureTableService) -> None:
    assert code_of(service.send("GET", "/nothing()")) == (404, "TableNotFound")


def test_plus_is_a_blank_in_a_filter(people: AzureTableService) -> None:
    fill(people, ("p", "1"))
    reply = people.send("GET", "/people()?$filter=PartitionKey+eq+'p'")
    assert len(json.loads(reply.body)["value"]) == 1
