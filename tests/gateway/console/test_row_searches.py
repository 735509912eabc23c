"""Searches of the console: the page, the statement and the code of each SDK find the same rows."""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import unquote

import pytest
import requests
from azure.data.tables import EdmType, EntityProperty
from botocore import xform_name

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.console import reading
from tablegate.gateway.console.value_texts import CUT
from tablegate.gateway.security.credentials import DEV_AZURE_KEY, Credential, Scheme
from tests.conftest import Serve
from tests.gateway.console.test_console import Console, keys_of
from tests.support.live_azure import LiveAzure
from tests.support.live_dynamodb import Index, Live
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import Running, start
from tests.support.waiting import PATIENCE_S

NUMBER = 40
LONG = "long " * 100


@pytest.fixture(scope="module")
def server(shared_database_url: str) -> Iterator[Running]:
    """A server with a table of each dialect: `things`, `entities` and `cells`, and `blobs` with a binary key."""
    running = start(shared_database_url, console_writes=True)
    try:
        live = Live(running.url)
        live.create(
            "p:S", "s:N", name="things", indexes=[Index("by-kind", "kind:S", "s:N", projection="KEYS_ONLY")]
        )
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        live.create("k:B", name="blobs", StreamSpecification=stream)
        live.client.put_item(TableName="blobs", Item={"k": {"B": b"\xff\x00<b>"}, "v": {"B": b"\x01\x02"}})
        for number in range(NUMBER):
            live.client.put_item(TableName="things", Item=_thing(number))
        azure = LiveAzure(running.url).service.create_table("entities")
        for number in range(NUMBER):
            azure.create_entity(_entity(number))
        store = LiveTableStore(running.url)
        store.create("cells", ("p", messages.STRING), ("s", messages.INTEGER))
        for number in range(NUMBER):
            cells = {
                "kind": "odd" if number % 2 else "even",
                "half": number / 2,
                "b": bytes([number]),
                "n": number,
            }
            store.put({"p": f"p{number % 4}", "s": number}, cells, "cells")
        text, integer = messages.STRING, messages.INTEGER
        store.create("four", ("a", text), ("b", integer), ("c", text), ("d", integer))
        for number in range(NUMBER):
            store.put({"a": f"a{number % 2}", "b": number % 4, "c": "c", "d": number}, {"x": number}, "four")
        yield running
    finally:
        running.stop()


def _thing(number: int) -> dict[str, Any]:
    thing: dict[str, Any] = {
        "p": {"S": f"p{number % 4}"}, "s": {"N": str(number)}, "kind": {"S": "odd" if number % 2 else "even"},
        "doc": {"M": {"list": {"L": [{"N": str(number)}]}, "a.b": {"S": "dotted"}}},
        "tags": {"SS": [f"t{number % 5}", "all"]}, "b": {"B": bytes([number])},
        "digits": {"N": f"{number}.000000000000000000000000000000000001"},
    }  # fmt: skip
    if number % 4 == 0:
        thing |= {"flag": {"BOOL": number % 8 == 0}, "none": {"NULL": True}}
    if number < 3:
        thing["text"] = {"S": LONG}
    return thing


def _entity(number: int) -> dict[str, Any]:
    return {
        "PartitionKey": f"p{number % 4}", "RowKey": f"{number:03}", "kind": "odd" if number % 2 else "even",
        "small": number, "large": EntityProperty(number, EdmType.INT64), "half": number / 2,
        "flag": number % 8 == 0, "b": bytes([number]),
    }  # fmt: skip


@pytest.fixture
def console(server: Running) -> Console:
    return Console(server.url)


def of(name: str, **more: str) -> dict[str, str]:
    return {"namespace": "shared", "name": name, **more}


def column(page: str, name: str) -> list[str]:
    """Return the texts of a column of a page of rows."""
    cells = re.findall(rf'<td data-label="{re.escape(name)}">(.*?)</td>', page, re.DOTALL)
    shown = r'<(?:span class="value"|a href="[^"]*")>(.*?)<'
    return [unescape(re.findall(shown, cell, re.DOTALL)[0]) for cell in cells]


def code_of(page: str, tool: str) -> str:
    """Return the code for a tool, or fail with the reason why there is none."""
    found = re.search(rf"<h3>{re.escape(tool)}</h3>\s*<div[^>]*>.*?<pre[^>]*>(.*?)</pre>", page, re.DOTALL)
    assert found is not None, page
    return unescape(found[1])


def run_code(code: str) -> list[Any]:
    """Run a program, and return what it prints."""
    printed: list[Any] = []
    exec(code, {"print": lambda *parts: printed.append(parts if len(parts) > 1 else parts[0])})
    return printed


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code has all that it needs."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "none")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "none")


def test_examples_of_a_table_run_as_they_are(server: Running, console: Console) -> None:
    page = console.get("/table", **of("entities"))
    assert "They run as they are" in page and "Azure Table allows only letters" not in page
    code = dict(re.findall(r"<h3>([^<]+)</h3>.*?<pre[^>]*>(.*?)</pre>", page, re.DOTALL))
    assert len(run_code(unescape(code["boto3"]))) == NUMBER
    assert len(run_code(unescape(code["azure-data-tables"]))) == NUMBER
    assert len(run_code(unescape(code["tablestore"]))) == NUMBER
    Live(server.url).create("p:S", name="with-dash.and_dots")
    assert "Azure Table allows only letters" in console.get("/table", **of("with-dash.and_dots"))


def test_examples_of_a_strict_server_leave_the_keys_to_the_caller(serve: Serve, database_url: str) -> None:
    running = serve(database_url, auth="strict", admin_token="the token")
    console = Console(running.url)
    console.sign_in("administrator", "the token")
    gateway = running.app.extensions["tablegate"].gateway
    gateway.credentials.replace([Credential(Scheme.AWS, "anybody", ("any secret",))])  # those of Live
    Live(running.url).create("p:S", name="songs")
    page = unescape(console.get("/table", **of("songs")))
    assert "aws_access_key_id" not in page and "AWS_ACCESS_KEY_ID" not in page
    assert "region_name='us-east-1'" in page and "--region us-east-1" in page
    assert DEV_AZURE_KEY not in page and "'your key id', 'your secret'" in page
    assert "use the keys of your environment or profile" in page


def run_cli(live: Live, command: str) -> list[int]:
    """Send the request of an `aws dynamodb` command, and return its sort keys."""
    keys, _, rest = command.partition("aws dynamodb ")
    assert keys.startswith("AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any ")
    words = ["aws", "dynamodb", *shlex.split(rest.replace("\\\n", " "))]
    operation, options = words[2], words[3:]
    members = live.client.meta.service_model.operation_model(operation.title()).input_shape.members
    names = {f"--{xform_name(name, '-')}": name for name in members}
    request: dict[str, Any] = {}
    while options:
        option = options.pop(0)
        if option.startswith("--no-"):
            request[names[f"--{option.removeprefix('--no-')}"]] = False
        elif option in ("--endpoint-url", "--region"):
            assert options.pop(0) in (live.url, "us-east-1")
        else:
            text = options.pop(0)
            is_text = members[names[option]].type_name == "string"
            request[names[option]] = text if is_text else json.loads(text, object_hook=_with_bytes)
    pages = live.client.get_paginator(operation).paginate(**request)
    return [int(item["s"]["N"]) for page in pages for item in page["Items"]]


def _with_bytes(document: dict[str, Any]) -> dict[str, Any]:
    """The AWS CLI (version 2) reads bytes in base64."""
    return {"B": base64.b64decode(document["B"])} if document.keys() == {"B"} else document


THINGS: list[tuple[dict[str, str], set[int]]] = [
    ({"key0": "p1"}, set(range(1, NUMBER, 4))),
    ({"key0": "p1", "order": "desc"}, set(range(1, NUMBER, 4))),
    ({"key0": "p1", "key1": "9", "upper": "20", "operator": "between"}, {9, 13, 17}),
    ({"key0": "p1", "key1": "9"}, {9}),
    ({"index": "by-kind", "key0": "odd", "key1": "35", "operator": ">"}, {37, 39}),
    ({"attribute": "doc.list[0]", "comparison": ">=", "value": "35"}, {35, 36, 37, 38, 39}),
    ({"attribute": "doc.list[0]", "comparison": "between", "value": "5, 7"}, {5, 6, 7}),
    ({"attribute": "doc.list[0]", "comparison": "in", "value": "1, 2, 99", "type": "N"}, {1, 2}),
    ({"attribute": "doc.list[0]", "comparison": "<>", "value": "7", "key0": "p3"}, set(range(3, NUMBER, 4)) - {7}),
    ({"attribute": 'doc."a.b"', "value": "dotted", "key0": "p0"}, set(range(0, NUMBER, 4))),
    ({"attribute": "kind", "comparison": "begins with", "value": "od", "key0": "p1"}, set(range(1, NUMBER, 4))),
    ({"attribute": "kind", "comparison": "in", "value": '"odd", "it\'s", "a, b"', "key0": "p2"}, set()),
    ({"attribute": "tags", "comparison": "contains", "value": "t3"}, set(range(3, NUMBER, 5))),
    ({"attribute": "flag", "comparison": "exists"}, set(range(0, NUMBER, 4))),
    ({"attribute": "flag", "comparison": "is missing", "key0": "p0"}, set()),
    ({"attribute": "flag", "value": "true"}, set(range(0, NUMBER, 8))),
    ({"attribute": "none", "comparison": "is of type", "value": "NULL"}, set(range(0, NUMBER, 4))),
    ({"attribute": "text", "comparison": "size >", "value": "100"}, {0, 1, 2}),
    ({"attribute": "digits", "comparison": ">", "value": "38"}, {38, 39}),
    ({"attribute": "digits", "value": "5.000000000000000000000000000000000001", "type": "N"}, {5}),
    (
        {"attribute": "kind", "value": "odd", "attribute1": "doc.list[0]", "comparison1": "<", "value1": "6",
         "attribute2": "s", "comparison2": "<>", "value2": "3"},
        {1, 5},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "expected"), THINGS)
def test_page_statement_and_aws_code_find_the_same(
    server: Running, console: Console, fields: dict[str, str], expected: set[int]
) -> None:
    page = console.get("/rows", **of("things", **fields))
    shown = [int(each) for each in column(page, "s")]
    assert set(shown) == expected and len(shown) == len(expected)
    items = run_code(code_of(page, "boto3"))
    assert sorted(int(item["s"]["N"]) for item in items) == sorted(expected)
    assert sorted(run_cli(Live(server.url), code_of(page, "AWS CLI"))) == sorted(expected)
    statement = console.get("/statement", **of("things", statement=code_of(page, "PartiQL")))
    assert sorted(map(int, column(statement, "s"))) == sorted(expected)
    if "order" in fields:
        assert shown == sorted(expected, reverse=True)
        assert [int(item["s"]["N"]) for item in items] == shown
        assert [int(each) for each in column(statement, "s")] == shown


@pytest.mark.parametrize(("value", "first"), [("AwU=", 4), ("JQ==", 37)])
def test_bytes_are_searched_in_base64(server: Running, console: Console, value: str, first: int) -> None:
    page = console.get("/rows", **of("things", attribute="b", comparison=">=", value=value, type="B"))
    found = [int(each) for each in column(page, "s")]
    assert set(found) == set(range(first, NUMBER))
    assert found == [int(item["s"]["N"]) for item in run_code(code_of(page, "boto3"))]
    assert sorted(found) == sorted(run_cli(Live(server.url), code_of(page, "AWS CLI")))
    assert "PartiQL has no literal" in page


def test_binary_keys_are_in_base64_everywhere(server: Running, console: Console) -> None:
    page = console.get("/rows", **of("blobs", key0="/wA8Yj4="))
    assert keys_of(page) == ["/wA8Yj4="] and ">AQI=<" in page and "k (B)" in page
    [place] = set(re.findall(r"at=([^\"&]+)", page))
    row = unescape(console.get("/row", **of("blobs", at=unquote(place))))
    assert '"B": "/wA8Yj4="' in row and '"k": "/wA8Yj4="' in row
    assert [item["k"]["B"] for item in run_code(code_of(page, "boto3"))] == [b"\xff\x00<b>"]
    changes = requests.get(f"{console.url}/changes.json", params=of("blobs"), timeout=PATIENCE_S).json()
    blob = {"k": {"B": b"\xff\x00<b>"}, "v": {"B": b"\x03"}}
    Live(server.url).client.put_item(TableName="blobs", Item=blob)
    changes = requests.get(
        f"{console.url}/changes.json", params=of("blobs", since=changes["place"]), timeout=PATIENCE_S
    ).json()
    [change] = changes["changes"]
    assert change["key"] == "/wA8Yj4=" and change["new"] == {"k": {"B": "/wA8Yj4="}, "v": {"B": "Aw=="}}
    assert "must be bytes in base64" in console.get("/rows", 400, **of("blobs", key0="not base64"))


ENTITIES: list[tuple[dict[str, str], set[int]]] = [
    ({"key0": "p1"}, set(range(1, NUMBER, 4))),
    ({"key0": "p1", "key1": "009"}, {9}),
    ({"key0": "p1", "key1": "009", "upper": "020", "operator": "between"}, {9, 13, 17}),
    ({"key0": "p1", "key1": "01", "operator": "begins with"}, {13, 17}),
    ({"attribute": "small", "comparison": ">", "value": "37", "type": "Edm.Int32"}, {38, 39}),
    ({"attribute": "large", "comparison": "between", "value": "3, 5", "type": "Edm.Int64"}, {3, 4, 5}),
    ({"attribute": "half", "comparison": "<", "value": "1.5", "type": "Edm.Double"}, {0, 1, 2}),
    ({"attribute": "flag", "value": "true", "type": "Edm.Boolean"}, set(range(0, NUMBER, 8))),
    ({"attribute": "kind", "comparison": "begins with", "value": "od"}, set(range(1, NUMBER, 2))),
    ({"attribute": "b", "value": "BQ==", "type": "Edm.Binary"}, {5}),
    ({"attribute": "small", "comparison": "in", "value": "1, 2", "type": "Edm.Int32", "key0": "p1"}, {1}),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "expected"), ENTITIES)
def test_page_and_azure_code_find_the_same(
    console: Console, fields: dict[str, str], expected: set[int]
) -> None:
    page = console.get("/rows", **of("entities", **fields))
    assert set(map(int, column(page, "RowKey"))) == expected
    assert sorted(int(each["RowKey"]) for each in run_code(code_of(page, "azure-data-tables"))) == sorted(
        expected
    )


CELLS: list[tuple[dict[str, str], set[int]]] = [
    ({}, set(range(NUMBER))),
    ({"key0": "p1"}, set(range(1, NUMBER, 4))),
    ({"key0": "p1", "order": "desc"}, set(range(1, NUMBER, 4))),
    ({"key0": "p1", "key1": "9"}, {9}),
    ({"key0": "p1", "key1": "9", "upper": "20", "operator": "between"}, {9, 13, 17}),
    ({"key0": "p1", "key1": "9", "operator": "<="}, {1, 5, 9}),
    ({"key0": "p", "operator": "begins with", "attribute": "n", "comparison": ">", "value": "37", "type": "INTEGER"}, {38, 39}),
    ({"attribute": "half", "comparison": "between", "value": "1, 2", "type": "DOUBLE"}, {2, 3, 4}),
    ({"attribute": "kind", "comparison": "in", "value": "odd, none", "key0": "p1"}, set(range(1, NUMBER, 4))),
    ({"attribute": "b", "value": "BQ==", "type": "BINARY"}, {5}),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "expected"), CELLS)
def test_page_and_table_store_code_find_the_same(
    console: Console, fields: dict[str, str], expected: set[int]
) -> None:
    page = console.get("/rows", **of("cells", **fields))
    shown = [int(each) for each in column(page, "s")]
    assert set(shown) == expected
    found = [key[1][1] for key, _ in run_code(code_of(page, "tablestore"))]
    assert sorted(found) == sorted(expected)
    if fields.get("order"):
        assert found == shown == sorted(expected, reverse=True)


FOUR: list[tuple[dict[str, str], set[int]]] = [
    ({"key0": "a1"}, set(range(1, NUMBER, 2))),
    ({"key0": "a1", "order": "desc"}, set(range(1, NUMBER, 2))),
    ({"key0": "a1", "key1": "1", "key2": "c"}, set(range(1, NUMBER, 4))),
    ({"key0": "a1", "key1": "1", "key2": "c", "key3": "30", "operator": ">"}, {33, 37}),
    ({"attribute": "d", "comparison": "<", "value": "3"}, {0, 1, 2}),
]


@pytest.mark.parametrize(("fields", "expected"), FOUR)
def test_four_key_columns_are_searched_in_dynamodb(
    console: Console, fields: dict[str, str], expected: set[int]
) -> None:
    """DynamoDB shows the last three of them as one text."""
    page = console.get("/rows", **of("four", **fields))
    shown = [int(each) for each in column(page, "d")]
    assert set(shown) == expected
    items = [int(item["x"]["N"]) for item in run_code(code_of(page, "boto3"))]
    statement = console.get("/statement", **of("four", statement=code_of(page, "PartiQL")))
    found = [int(each) for each in column(statement, "x")]
    assert set(items) == set(found) == expected
    if "order" in fields:
        assert shown == items == found


@pytest.mark.parametrize(
    ("name", "fields", "reason"),
    [
        ("entities", {"attribute": "kind", "comparison": "exists"}, "has no operator"),
        ("entities", {"attribute": "a.b", "value": "1"}, "no paths into documents"),
        ("cells", {"attribute": "kind", "comparison": "contains", "value": "o"}, "has no operator"),
    ],
)
def test_the_page_says_what_a_dialect_cannot_search(
    console: Console, name: str, fields: dict[str, str], reason: str
) -> None:
    assert reason in console.get("/rows", **of(name, **fields))


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("things", {"p (S)", "s (N)", "BOOL", "SS", "NULL", "M", "B"}),
        ("entities", {"PartitionKey (Edm.String)", "Edm.Int32", "Edm.Int64", "Edm.Double", "Edm.Boolean"}),
        ("cells", {"p (STRING)", "s (INTEGER)", "DOUBLE", "BINARY"}),
    ],
)
def test_types_have_the_names_of_the_dialect(console: Console, name: str, types: set[str]) -> None:
    page = console.get("/rows", **of(name))
    labels = set(re.findall(r"<label>(\w+ \([\w.]+\)) <input", page))
    headings = set(re.findall(r'<th scope="col" data-type="([\w.]+)">', page))
    assert types <= labels | headings


def test_values_have_their_type_if_their_column_has_several(server: Running, console: Console) -> None:
    live = Live(server.url)
    live.create("p:S", name="mixed")
    items = [{"p": {"S": "a"}, "x": {"N": "1"}, "y": {"N": "1"}}, {"p": {"S": "b"}, "x": {"S": "1"}}]
    for item in items:
        live.client.put_item(TableName="mixed", Item=item)
    page = console.get("/rows", **of("mixed"))
    assert sorted(re.findall(r'<span class="badge type">(\w+)</span>', page)) == ["N", "S"]
    assert headers(page) == ["p", "x", "y"]
    assert re.findall(r'data-type="(\w+)">', page) == ["S", "N"]


def test_each_key_column_leads_to_the_row(console: Console) -> None:
    page = console.get("/rows", **of("things", key0="p1", key1="1"))
    [row] = re.findall(r'<tr[^>]*><td class="choose">.*?</tr>', page, re.DOTALL)
    links = re.findall(r'<a href="([^"]*)">(.*?)</a>', row)
    assert [text for _, text in links] == ["p1", "1"] and links[0][0] == links[1][0]
    assert "Difference" not in console.get(unescape(links[0][0]).removeprefix("/_tablegate/console"))


def test_conditions_are_named_and_can_be_removed(console: Console) -> None:
    fields = {
        "key0": "p1",
        "attribute": "kind",
        "value": "odd",
        "attribute1": "s",
        "comparison1": "<",
        "value1": "9",
    }
    page = console.get("/rows", **of("things", **fields, order="desc"))
    links = dict(re.findall(r'<a class="badge" href="([^"]*)" aria-label="Remove ([^"]*)"', page))
    assert [unescape(text) for text in links.values()] == ["kind = odd", "s < 9", "descending"]
    assert 'data-search="p = p1, kind = odd, s &lt; 9"' in page
    for link, text in links.items():
        without = console.get(unescape(link).removeprefix("/_tablegate/console"))
        assert f'Remove {text}"' not in without and without.count('class="badge" href') == 2


def test_a_browser_of_a_phone_gets_shorter_pages(console: Console) -> None:
    console.session.headers["User-Agent"] = "Mozilla/5.0 (Linux; Android 10; K) Mobile Safari/537.36"
    assert len(keys_of(console.get("/rows", **of("things")))) == 25


# Pages


def pages(console: Console, relation: str, page: str) -> Iterator[str]:
    """Yield a page and those that its links lead to."""
    while True:
        yield page
        found = re.search(rf'rel="{relation}" href="[^"?]*\?([^"]*)"', page)
        if found is None:
            return
        page = console.get("/rows?" + unescape(found[1]))


@pytest.mark.parametrize("order", ["", "desc"])
def test_pages_lead_forwards_and_back(console: Console, order: str) -> None:
    first = console.get("/rows", **of("things", size="25", order=order))
    forwards = [column(page, "s") for page in pages(console, "next", first)]
    assert [len(each) for each in forwards] == [25, 15]
    last = list(pages(console, "next", first))[-1]
    backwards = [column(page, "s") for page in pages(console, "prev", last)]
    assert backwards == forwards[::-1]
    assert 'rel="prev"' not in first and 'rel="next"' not in last


@pytest.mark.parametrize(("size", "number"), [("25", 25), ("100", 40), ("7", 40), ("x", 40)])
def test_a_page_has_one_of_four_sizes(console: Console, size: str, number: int) -> None:
    assert len(keys_of(console.get("/rows", **of("things", size=size)))) == number


def test_a_rare_filter_goes_on_where_its_time_ended(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_SECONDS", 0.0)
    monkeypatch.setattr(reading, "_SCANNED", 10)
    page = console.get("/rows", **of("things", attribute="doc.list[0]", comparison="in", value="39, 38"))
    seen, scanned = column(page, "s"), []
    while True:
        scanned += re.findall(r"(\d+) scanned", page)
        onward = re.search(r'id="onward" href="[^"?]*\?([^"]*)"', page)
        if onward is None:
            break
        assert "so far" in page
        page = console.get("/rows?" + unescape(onward[1]))
        seen += column(page, "s")
    assert sorted(seen) == ["38", "39"]
    assert scanned == ["10", "20", "30", "40"]
    assert "2 rows found" in page


# Columns and forms of rows


def headers(page: str) -> list[str]:
    return re.findall(r'<th scope="col"(?: data-type="[^"]*")?>(?!<)([^<]*)', page)


def test_common_attributes_come_first_and_columns_are_chosen(console: Console) -> None:
    page = console.get("/rows", **of("things"))
    assert headers(page)[:2] == ["p", "s"]
    assert set(headers(page)[2:7]) == {"kind", "doc", "tags", "b", "digits"}
    assert set(headers(page)[7:9]) == {"flag", "none"} and headers(page)[9:] == ["text"]
    chosen = console.session.get(
        f"{console.url}/rows",
        params=[*of("things").items(), ("columns", "text"), ("columns", "absent")],
        timeout=PATIENCE_S,
    ).text
    assert headers(chosen) == ["p", "s", "text", "absent"]
    assert 'value="kind"> kind' in chosen  # can be chosen again


def test_long_values_are_cut_and_open_in_place(console: Console) -> None:
    page = console.get("/rows", **of("things", key0="p1", key1="1"))
    assert f"<summary>{LONG[:CUT]}<" in page and f"<span>{LONG}</span></details>" in page


@pytest.mark.parametrize(
    ("name", "form", "texts"),
    [
        ("things", "dynamodb", ['"s": {\n    "N": "1"\n  }']),
        ("things", "plain", ['"s": 1,', '"digits": 1.000000000000000000000000000000000001']),
        ("things", "azuretable", ['"PartitionKey": "p1"']),
        ("things", "tablestore", ['"primary_key"']),
        ("entities", "azuretable", ['"large@odata.type": "Edm.Int64"']),
    ],
)
def test_rows_are_json_on_request(console: Console, name: str, form: str, texts: list[str]) -> None:
    page = unescape(console.get("/rows", **{**of(name, key0="p1"), "as": form}))
    assert all(each in page for each in texts)
    assert '<table class="rows' not in page
    first = re.findall(r'aria-label="Format of rows".*?quiet" href="[^"]*as=(\w+)', page, re.DOTALL)
    assert first[0] == {"things": "dynamodb", "entities": "azuretable"}[name]  # that of its own dialect
    assert 'role="alert"' in console.get("/rows", 400, **{**of(name), "as": "xml"})


def test_through_an_index_rows_have_what_it_shows(console: Console) -> None:
    page = console.get("/rows", **of("things", index="by-kind", key0="odd"))
    assert headers(page) == ["p", "s", "kind"]
    assert "The index shows only" in page
    assert "kind (S)" in page and "p (S)" not in page  # the fields follow the index


# Wrong fields


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"value": "x"}, "needs the name of an attribute"),
        ({"attribute": "a..b", "value": "x"}, "is not a path"),
        ({"attribute": "a", "value": "x", "type": "N"}, "is not of the type N"),
        ({"attribute": "a", "value": "x", "type": "Edm.Int32"}, "type must be one of"),
        ({"attribute": "a", "comparison": "between", "value": "1"}, "requires two values"),
        ({"attribute": "a", "comparison": "size >", "value": "-1"}, "size must be"),
        ({"attribute": "a", "comparison": "is of type", "value": "X"}, "type must be one of"),
        ({"attribute": "a", "comparison": "in", "value": ""}, "1 to 100 values"),
        ({"attribute": "a", "value": "x" * 4097}, "4,096 characters"),
        ({f"attribute{number or ''}": "a" for number in range(9)}, "at most 8 filters"),
        ({"attribute": "a", "value": '{"S": 1}', "type": "M"}, "is not of the type M"),
        ({"attribute": "a", "value": '[{"B": "!"}]', "type": "L"}, "is not of the type L"),
        ({"attribute": "a", "value": "[" * 5000, "type": "L"}, "4,096 characters"),
        ({"attribute": "a", "value": "[" * 4000, "type": "L"}, "is not of the type L"),
    ],
)
def test_a_search_with_wrong_fields_keeps_its_input(
    console: Console, fields: dict[str, str], text: str
) -> None:
    page = unescape(console.get("/rows", 400, **of("things", **fields)))
    assert text in page and 'role="alert"' in page
    name, value = next(iter(fields.items()))
    assert f'name="{name}" value="{value}"' in page


# Statements


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM things",
        "INSERT INTO things VALUE {'p': 'x', 's': 1}",
        "SELECT",
        "x" * 9000,
        "SELECT * FROM things WHERE x =",
    ],
)
def test_statements_that_are_no_select_are_refused(console: Console, statement: str) -> None:
    page = unescape(console.get("/statement", 400, **of("things", statement=statement)))
    assert 'role="alert"' in page and statement[:100] in page
    assert len(keys_of(console.get("/rows", **of("things")))) == NUMBER


def test_a_statement_is_edited_run_and_gone_through(console: Console) -> None:
    page = unescape(console.get("/statement", **of("things")))
    assert 'SELECT * FROM "things"' in page
    page = console.get("/statement", **of("things", statement="SELECT s FROM things WHERE p = 'p2'"))
    assert "10 rows found" in page and headers(page) == ["p", "s"]
    other = console.get("/statement", **of("things", statement="SELECT * FROM blobs"))
    assert keys_of(other) == ["/wA8Yj4="]
    console.get("/statement", 404, **of("things", statement="SELECT * FROM absent"))


def test_without_a_dialect_of_statements_there_is_no_such_page(serve: Serve, database_url: str) -> None:
    server = serve(database_url, dialects=["azuretable"])
    LiveAzure(server.url).service.create_table("songs")
    console = Console(server.url)
    page = console.get("/rows", **of("songs"))
    assert "/statement" not in page and "PartiQL" not in page and "azure-data-tables" in page
    console.get("/statement", 404, **of("songs"))
