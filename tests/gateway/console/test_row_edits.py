"""Forms of the console that add, copy, change and delete rows: types are kept, wrong values and conflicts keep the form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import pytest
from azure.data.tables import EdmType, EntityProperty

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import plain
from tests.gateway.console.test_console import Console
from tests.support.live_azure import LiveAzure
from tests.support.live_dynamodb import Live
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import Running, start
from tests.support.waiting import PATIENCE_S

KEY = {"p": {"S": "a"}, "s": {"N": "1"}}
ITEM: dict[str, Any] = {
    **KEY, "text": {"S": "two\nlines <b>"}, "empty": {"S": ""}, "digits": {"N": "1234567890123456789012345678901234567.8"},
    "bytes": {"B": b"\x00\xff"}, "yes": {"BOOL": True}, "none": {"NULL": True},
    "list": {"L": [{"S": "a"}, {"N": "1"}, {"M": {"b": {"B": b"\x01"}}}]}, "map": {"M": {"n": {"NULL": True}}},
    "texts": {"SS": ["a", "b"]}, "numbers": {"NS": ["1", "2.5"]}, "many": {"BS": [b"\x01", b"\x02"]},
}  # fmt: skip


@pytest.fixture(scope="module")
def server(shared_database_url: str) -> Iterator[Running]:
    running = start(shared_database_url, console_writes=True)
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    Live(running.url).create("p:S", "s:N", name="things", StreamSpecification=stream)
    yield running
    running.stop()


@pytest.fixture
def things(server: Running) -> Iterator[Live]:
    """The table `things` with one item."""
    live = Live(server.url)
    live.client.put_item(TableName="things", Item=ITEM)
    yield live
    for item in live.client.scan(TableName="things")["Items"]:
        live.client.delete_item(TableName="things", Key={name: item[name] for name in KEY})


@pytest.fixture
def console(server: Running) -> Console:
    return Console(server.url)


def of(name: str, **more: str) -> dict[str, str]:
    return {"namespace": "shared", "name": name, **more}


def item_of(live: Live, key: dict[str, Any] = KEY) -> Any:
    return live.client.get_item(TableName="things", Key=key, ConsistentRead=True).get("Item")


def place_in(page: str) -> str:
    return unquote(re.findall(r"at=([^\"&]+)", page)[0])


def place_of_first(console: Console, name: str, **fields: str) -> str:
    [found] = re.findall(
        r'<th scope="row"><a href="[^"]*at=([^"&]+)', console.get("/rows", **of(name, **fields))
    )
    return unquote(found)


def fields_of(page: str) -> dict[str, str]:
    """Return the fields of the form on an edit page, as a browser sends them."""
    form = re.findall(r'<form [^>]*class="edit">(.*?)</form>', page, re.DOTALL)[0]
    form = re.sub("<template.*</template>", "", form, flags=re.DOTALL)
    fields: dict[str, str] = {}
    for tag in re.findall("<input [^>]*>", form):
        given = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        if given.get("type") != "checkbox" or " checked" in tag:
            fields[given["name"]] = given["value"]
    for name, options in re.findall(r'<select name="([^"]+)">(.*?)</select>', form, re.DOTALL):
        chosen = re.findall(r"<option[^>]* selected>([^<]+)", options)
        fields[name] = chosen[0] if chosen else re.findall("<option[^>]*>([^<]+)", options)[0]
    for name, text in re.findall(r'<textarea [^>]*?name="([^"]+)"[^>]*>\n(.*?)</textarea>', form, re.DOTALL):
        fields[name] = text
    lines = {name: unescape(text).replace("\r\n", "\n") for name, text in fields.items()}
    return {name: text.replace("\n", "\r\n") for name, text in lines.items()}


def number_of(fields: dict[str, str], attribute: str) -> str:
    """Return the number of an attribute in the names of a form's fields."""
    [name] = [
        name
        for name, text in fields.items()
        if name.startswith("name") and name != "name" and text == attribute
    ]
    return name.removeprefix("name")


def canonical(item: Any) -> Any:
    return {
        name: {tag: sorted(data) if tag in ("SS", "NS", "BS") else data for tag, data in value.items()}
        for name, value in item.items()
    }


# Types


def test_a_form_that_is_saved_unchanged_changes_nothing(things: Live, console: Console) -> None:
    form = fields_of(console.get("/row/edit", **of("things", at=place_of_first(console, "things"))))
    console.post("/row/put", **form)
    assert canonical(item_of(things)) == canonical(ITEM)


@pytest.mark.parametrize(
    ("attribute", "type_name", "text", "expected"),
    [
        (
            "digits",
            "N",
            "12345678901234567890123456789012345678",
            {"N": "12345678901234567890123456789012345678"},
        ),
        ("digits", "S", "5", {"S": "5"}),
        ("bytes", "B", "AQID", {"B": b"\x01\x02\x03"}),
        ("yes", "BOOL", "false", {"BOOL": False}),
        ("list", "L", '[{"N": "2"}, {"BOOL": false}]', {"L": [{"N": "2"}, {"BOOL": False}]}),
        ("map", "M", '{"a": {"SS": ["x"]}}', {"M": {"a": {"SS": ["x"]}}}),
        ("numbers", "NS", "[3, 4.5]", {"NS": ["3", "4.5"]}),
        ("many", "BS", '["AQ=="]', {"BS": [b"\x01"]}),
        ("none", "NULL", "", {"NULL": True}),
    ],
)
def test_a_value_is_changed_and_its_type_kept(
    things: Live, console: Console, attribute: str, type_name: str, text: str, expected: Any
) -> None:
    form = fields_of(console.get("/row/edit", **of("things", at=place_of_first(console, "things"))))
    number = number_of(form, attribute)
    page = console.post("/row/put", **{**form, f"type{number}": type_name, f"value{number}": text})
    assert canonical(item_of(things)) == canonical({**ITEM, attribute: expected})
    assert "As JSON" in page  # the page of the row


def test_each_type_has_its_control(server: Running, console: Console, things: Live) -> None:
    page = console.get("/row/edit", **of("things", at=place_of_first(console, "things")))
    number = number_of(fields_of(page), "yes")
    assert f'<input type="checkbox" role="switch" name="value{number}" value="true" checked>' in page
    number = number_of(fields_of(page), "digits")
    assert (
        f'name="value{number}" value="{ITEM["digits"]["N"]}" autocomplete="off" inputmode="decimal"' in page
    )
    table = LiveAzure(server.url).service.create_table("times")
    entity = {"PartitionKey": "a", "RowKey": "b", "at": datetime(2026, 1, 31, 8, 0, 0, 0, UTC)}
    table.create_entity(entity)
    form = fields_of(console.get("/row/edit", **of("times", at=place_of_first(console, "times"))))
    assert form["value2"] == "2026-01-31T08:00:00"
    console.post("/row/put", **form)
    assert dict(table.get_entity("a", "b")) == entity
    form = fields_of(console.get("/row/edit", **of("times", at=place_of_first(console, "times"))))
    console.post("/row/put", **{**form, "value2": "2026-01-31T09:30"})  # as browsers send a whole minute
    assert table.get_entity("a", "b")["at"] == datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def test_attributes_that_the_script_removed_leave_gaps_in_the_numbers(things: Live, console: Console) -> None:
    form = fields_of(console.get("/row/edit", **of("things", at=place_of_first(console, "things"))))
    number = number_of(form, "text")
    for part in ("name", "type", "value"):
        del form[f"{part}{number}"]
    console.post("/row/put", **form)
    assert canonical(item_of(things)) == canonical({name: ITEM[name] for name in ITEM if name != "text"})


def test_entities_keep_their_types(server: Running, console: Console) -> None:
    table = LiveAzure(server.url).service.create_table("entities")
    entity = {
        "PartitionKey": "a", "RowKey": "b", "small": 1, "large": EntityProperty(2**40, EdmType.INT64), "half": 0.5,
        "at": datetime(2026, 1, 31, 8, 0, 0, 1, UTC), "id": UUID(int=7), "b": b"\x00", "flag": True,
    }  # fmt: skip
    table.create_entity(entity)
    form = fields_of(console.get("/row/edit", **of("entities", at=place_of_first(console, "entities"))))
    types = {form[f"name{n}"]: form[f"type{n}"] for n in range(9)}
    assert types["small"] == "Edm.Int32" and types["large"] == "Edm.Int64" and types["id"] == "Edm.Guid"
    number = number_of(form, "small")
    console.post("/row/put", **{**form, f"value{number}": "2"})
    assert dict(table.get_entity("a", "b")) == {**entity, "small": 2}
    form = fields_of(console.get("/row/edit", **of("entities", at=place_of_first(console, "entities"))))
    page = console.post("/row/put", 400, **{**form, f"value{number}": str(2**31)})
    assert "a whole number of 32 bits" in page


def test_table_store_rows_keep_types_and_versions(server: Running, console: Console) -> None:
    store = LiveTableStore(server.url)
    options = messages.TableOptions(time_to_live=-1, max_versions=3)
    store.create("cells", ("p", messages.STRING), table_options=options)
    cells = {"n": 2**60, "half": 0.5, "b": b"\x00", "flag": True, "text": "a"}
    store.put({"p": "a"}, cells, "cells")
    store.update({"p": "a"}, {"text": "b"}, "cells")
    form = fields_of(console.get("/row/edit", **of("cells", at=place_of_first(console, "cells"))))
    console.post("/row/put", **{**form, f"value{number_of(form, 'half')}": "1.5"})
    found = store.get({"p": "a"}, "cells", max_versions=3)
    assert found is not None
    assert plain(found) == {"p": "a", **cells, "text": "b", "half": 1.5}
    versions = [cell.name for cell in found.cells]
    assert versions.count("text") == 2 and versions.count("half") == 2 and versions.count("n") == 1


@pytest.mark.parametrize("dialect", ["azuretable", "tablestore"])
@pytest.mark.parametrize("bulk", [False, True])
def test_a_form_keeps_what_its_dialect_does_not_show(
    server: Running, console: Console, dialect: str, bulk: bool
) -> None:
    """NULL of DynamoDB, in tables of other dialects."""
    name = f"nulls{dialect}{bulk}"
    if dialect == "azuretable":
        LiveAzure(server.url).service.create_table(name)
        key = {"PartitionKey": {"S": "a"}, "RowKey": {"S": "b"}}
    else:
        LiveTableStore(server.url).create(name, ("p", messages.STRING))
        key = {"p": {"S": "a"}}
    client = Live(server.url).client
    item = {**key, "none": {"NULL": True}, "map": {"M": {"a": {"N": "1"}}}, "text": {"S": "old"}}
    client.put_item(TableName=name, Item=item)
    if bulk:
        type_name = {"azuretable": "Edm.String", "tablestore": "STRING"}[dialect]
        change = {"target": "text", "target_type": type_name, "target_value": "new"}
        console.post("/rows/bulk", **of(name, key0="a", change="set", **change))
    else:
        form = fields_of(console.get("/row/edit", **of(name, at=place_of_first(console, name))))
        console.post("/row/put", **{**form, f"value{number_of(form, 'text')}": "new"})
    assert client.get_item(TableName=name, Key=key)["Item"] == {**item, "text": {"S": "new"}}


# Add, copy, delete


def test_a_row_is_added_by_form_with_more_and_fewer_attributes(things: Live, console: Console) -> None:
    form = fields_of(console.get("/row/new", **of("things")))
    assert [form["name0"], form["type0"], form["name1"], form["type1"], form["name2"]] == [
        "p",
        "S",
        "s",
        "N",
        "",
    ]
    form |= {"value0": "new", "value1": "7", "name2": "x", "type2": "N", "value2": "5"}
    form = fields_of(console.post("/row/put", **{**form, "step": "add"}))
    assert form["value0"] == "new" and form["type2"] == "N" and "name3" in form
    form |= {"name3": "y", "value3": "gone"}
    form = fields_of(console.post("/row/put", **{**form, "step": "remove-3"}))
    assert "name3" not in form
    console.post("/row/put", **form)
    key = {"p": {"S": "new"}, "s": {"N": "7"}}
    assert item_of(things, key) == {**key, "x": {"N": "5"}}
    again = console.post("/row/put", 409, **form)
    assert "There is a row with this key already" in again and fields_of(again)["value0"] == "new"


def test_a_row_is_added_as_json(things: Live, console: Console) -> None:
    page = console.get("/row/new", **of("things", json="1"))
    assert 'name="row"' in page
    row = json.dumps({"p": {"S": "json"}, "s": {"N": "2"}, "set": {"NS": ["1", "2"]}})
    console.post("/row/put", **of("things", row=row))
    key = {"p": {"S": "json"}, "s": {"N": "2"}}
    assert canonical(item_of(things, key)) == {**key, "set": {"NS": ["1", "2"]}}


@pytest.mark.parametrize(
    "row", ["", "{", "[]", "5", '{"p": {"S": "a"}}', '{"p": {"S": "a"}, "s": {"N": "x"}}', "[" * 100_000]
)
def test_wrong_json_keeps_the_form(things: Live, console: Console, row: str) -> None:
    page = unescape(console.post("/row/put", 400, **of("things", row=row)))
    assert 'id="row-error"' in page and f">\n{row}</textarea>" in page


def test_a_row_is_copied(things: Live, console: Console) -> None:
    place = place_of_first(console, "things")
    form = fields_of(console.get("/row/new", **of("things", copy=place)))
    assert form["at"] == "" and form["value0"] == "a"
    console.post("/row/put", **{**form, "value0": "copy"})
    assert canonical(item_of(things, {**KEY, "p": {"S": "copy"}})) == canonical({**ITEM, "p": {"S": "copy"}})
    assert item_of(things) is not None


def test_a_changed_key_is_refused(things: Live, console: Console) -> None:
    form = fields_of(console.get("/row/edit", **of("things", at=place_of_first(console, "things"))))
    page = console.post("/row/put", 400, **{**form, "value0": "other"})
    assert "its key is another one" in page
    assert len(things.client.scan(TableName="things")["Items"]) == 1


# Wrong values and conflicts


@pytest.mark.parametrize(
    ("attribute", "type_name", "text"),
    [
        ("digits", "N", "one"),
        ("digits", "N", "1" * 39),
        ("bytes", "B", "not base64"),
        ("yes", "BOOL", "maybe"),
        ("list", "L", '["untyped"]'),
        ("list", "L", '[{"S": 5}]'),
        ("list", "L", '[{"I64": "5"}]'),
        ("list", "L", "[" * 100_000),
        ("map", "M", "[]"),
        ("texts", "SS", "[]"),
        ("numbers", "NS", '["a"]'),
        ("none", "NULL", "x"),
        ("text", "Edm.Int32", "1"),
    ],
)
def test_a_wrong_value_is_marked_and_the_form_kept(
    things: Live, console: Console, attribute: str, type_name: str, text: str
) -> None:
    form = fields_of(console.get("/row/edit", **of("things", at=place_of_first(console, "things"))))
    number = number_of(form, attribute)
    page = console.post("/row/put", 400, **{**form, f"type{number}": type_name, f"value{number}": text})
    assert f'id="error{number}"' in page and f'aria-describedby="error{number}"' in page
    assert fields_of(page)[f"value{number}"] == text and 'role="alert"' in page
    assert page.count('<fieldset class="attribute invalid changed">') == 1
    assert canonical(item_of(things)) == canonical(ITEM)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"name99": ""}, ""),
        ({"name2": "p"}, "another attribute of this name"),
        ({"name2": ""}, "needs a name"),
    ],
)
def test_names_of_attributes_are_checked(
    things: Live, console: Console, changes: dict[str, str], text: str
) -> None:
    form = fields_of(console.get("/row/edit", **of("things", at=place_of_first(console, "things"))))
    status = 400 if text else 200
    assert text in console.post("/row/put", status, **{**form, **changes})


@pytest.mark.parametrize("as_json", [False, True])
def test_a_row_that_changed_meanwhile_is_not_replaced(things: Live, console: Console, as_json: bool) -> None:
    more = {"json": "1"} if as_json else {}
    place = place_of_first(console, "things")
    form = fields_of(console.get("/row/edit", **of("things", at=place, **more)))
    if as_json:
        form["row"] = form["row"].replace("two", "mine")
    else:
        form[f"value{number_of(form, 'text')}"] = "mine"
    things.client.put_item(TableName="things", Item={**ITEM, "text": {"S": "theirs"}})
    page = console.post("/row/put", 409, **form)
    assert "The row was changed after this form was opened" in page
    [change] = re.findall(r"<del>(.*?)</del>.*?<ins>(.*?)</ins>", page, re.DOTALL)
    assert "theirs" in change[0] and "mine" in change[1]
    assert item_of(things)["text"] == {"S": "theirs"}
    console.post("/row/put", **fields_of(page))
    assert "mine" in item_of(things)["text"]["S"]


def test_a_wrong_value_is_marked_before_the_conflict_is_shown(things: Live, console: Console) -> None:
    """The difference can only be shown once all values are valid."""
    form = fields_of(console.get("/row/edit", **of("things", at=place_of_first(console, "things"))))
    number = number_of(form, "digits")
    things.client.put_item(TableName="things", Item={**ITEM, "text": {"S": "theirs"}})
    wrong = fields_of(console.post("/row/put", 400, **{**form, f"value{number}": "x"}))
    assert wrong["revision"] == form["revision"]
    page = console.post("/row/put", 409, **{**wrong, f"value{number}": "5"})
    assert re.findall(r'<tr><th scope="row">(\w+)</th>', page) == ["digits", "text"]
    assert item_of(things)["text"] == {"S": "theirs"}


def test_a_row_that_was_deleted_meanwhile_is_not_created_unasked(things: Live, console: Console) -> None:
    form = fields_of(console.get("/row/edit", **of("things", at=place_of_first(console, "things"))))
    things.client.delete_item(TableName="things", Key=KEY)
    page = console.post("/row/put", 409, **form)
    assert "was deleted after this form was opened" in page and item_of(things) is None
    console.post("/row/put", **fields_of(page))
    assert canonical(item_of(things)) == canonical(ITEM)


def test_a_row_that_changed_is_not_deleted(things: Live, console: Console) -> None:
    place = place_of_first(console, "things")
    page = console.get("/row", **of("things", at=place))
    [revision] = re.findall(r'name="revision" value="(\d+)"', page)
    things.client.put_item(TableName="things", Item={**ITEM, "text": {"S": "theirs"}})
    assert "it was not deleted" in console.post(
        "/row/delete", 400, **of("things", at=place, revision=revision)
    )
    assert item_of(things) is not None


# Limits of the form


def test_a_form_has_a_thousand_attributes_and_the_largest_row(things: Live, console: Console) -> None:
    form = {"value0": "large", "value1": "1"} | of("things", name0="p", type0="S", name1="s", type1="N")
    for number in range(2, 1000):
        form |= {f"name{number}": f"a{number}", f"type{number}": "S", f"value{number}": "<" * 380}
    console.post("/row/put", **form)
    stored = item_of(things, {"p": {"S": "large"}, "s": {"N": "1"}})
    assert len(stored) == 1000
    for number in range(1000, 1100):
        form |= {f"name{number}": f"a{number}", f"type{number}": "S", f"value{number}": "x"}
    console.post("/row/put", 413, **form)


def test_control_characters_are_changed_as_json(things: Live, console: Console) -> None:
    """Browsers change line breaks and control characters in forms, which would change the row."""
    things.client.put_item(TableName="things", Item={**KEY, "text": {"S": "a\x00b"}, "x": {"S": "a\r\nb"}})
    form = fields_of(console.get("/row/edit", **of("things", at=place_of_first(console, "things"))))
    assert "row" in form
    console.post("/row/put", **{**form, "row": form["row"].replace('"x"', '"y"')})
    assert item_of(things) == {**KEY, "text": {"S": "a\x00b"}, "y": {"S": "a\r\nb"}}


def test_the_largest_entity_is_changed_in_any_script(server: Running, console: Console) -> None:
    """A form encodes a character of two bytes of UTF-16 as nine."""
    table = LiveAzure(server.url).service.create_table("large")
    texts = {f"a{number}": "\u6f22" * 32_000 for number in range(16)}
    table.create_entity({"PartitionKey": "a", "RowKey": "b", **texts})
    form = fields_of(console.get("/row/edit", **of("large", at=place_of_first(console, "large"))))
    number = number_of(form, "a15")
    console.post("/row/put", **{**form, f"value{number}": "\u5b57" * 32_000})
    assert dict(table.get_entity("a", "b")) == {
        "PartitionKey": "a",
        "RowKey": "b",
        **texts,
        "a15": "\u5b57" * 32_000,
    }


# Differences


def test_two_rows_are_compared(things: Live, console: Console) -> None:
    things.client.put_item(
        TableName="things", Item={**ITEM, "p": {"S": "b"}, "text": {"S": "other"}, "more": {"N": "1"}}
    )
    page = console.get("/rows", **of("things"))
    places = [unquote(each) for each in re.findall(r'name="at" value="([^"]+)"', page)]
    answer = console.session.get(
        f"{console.url}/difference",
        params=[*of("things").items(), *(("at", each) for each in places)],
        timeout=PATIENCE_S,
    )
    assert answer.status_code == 200
    assert re.findall(r'<tr><th scope="row">(\w+)</th>', answer.text) == ["more", "p", "text"]
    assert "Choose two rows" in console.get("/difference", 400, **of("things", at=places[0]))


def test_versions_of_a_row_are_compared_with_it(things: Live, console: Console) -> None:
    key = {"p": {"S": "v"}, "s": {"N": "1"}}
    for number in range(3):
        things.client.put_item(
            TableName="things", Item={**key, "n": {"N": str(number)}, f"a{number}": {"S": "x"}}
        )
    place = place_of_first(console, "things", key0="v")
    page = console.get("/row", **of("things", at=unquote(place)))
    assert len(re.findall("Changed attributes", page)) == 3
    assert len(re.findall("Compared with the current row", page)) == 2
    second = page.partition('<ol class="history">')[2].split("</li>")[1]
    since = second.partition("Compared with the current row")[2]
    assert re.findall(r'<th scope="row">(\w+)</th>', since) == ["a1", "a2", "n"]
