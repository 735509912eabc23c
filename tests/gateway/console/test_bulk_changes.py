"""Changes of all rows that a search finds: preview, bounded requests, rights, audit, and rows that change meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.console import bulk_pages
from tablegate.gateway.console.reading import read_page
from tablegate.gateway.wiring import connect, open_store
from tests.gateway.console.test_console import Console, keys_of
from tests.gateway.console.test_grants_of_visitors import KEY, OWNER, SETTINGS, SONGS, policy_for
from tests.gateway.security.test_permission_cases import allow
from tests.support.live_azure import LiveAzure
from tests.support.live_dynamodb import Index, Live
from tests.support.running import Running, start
from tests.support.waiting import PATIENCE_S

NUMBER = 60


@pytest.fixture(scope="module")
def server(shared_database_url: str) -> Iterator[Running]:
    running = start(shared_database_url, console_writes=True)
    index = Index("by-kind", "kind:S", projection="KEYS_ONLY")
    Live(running.url).create("p:S", "s:N", name="songs", indexes=[index])
    yield running
    running.stop()


@pytest.fixture
def songs(server: Running) -> Live:
    """The table `songs` with NUMBER items, every third of the kind `a`."""
    live = Live(server.url)
    _fill(live)
    return live


def _fill(live: Live) -> None:
    keys = [{name: item[name] for name in ("p", "s")} for item in items(live)]
    rows = [
        {"p": {"S": f"p{number % 2}"}, "s": {"N": str(number)}, "kind": {"S": "b" if number % 3 else "a"}, "x": {"S": "old"}}
        for number in range(NUMBER)
    ]  # fmt: skip
    stale = [key for key in keys if not any(key.items() <= row.items() for row in rows)]
    requests = [{"DeleteRequest": {"Key": key}} for key in stale] + [
        {"PutRequest": {"Item": row}} for row in rows
    ]
    for first in range(0, len(requests), 25):
        live.client.batch_write_item(RequestItems={"songs": requests[first : first + 25]})


@pytest.fixture
def console(server: Running) -> Console:
    return Console(server.url)


def of(**more: str) -> dict[str, str]:
    return {"namespace": "shared", "name": "songs", **more}


def items(live: Live) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = live.client.scan(TableName="songs", ConsistentRead=True)["Items"]
    return found


OF_A = {"attribute": "kind", "value": "a"}
"""The search for the items of the kind `a`."""


def hidden(page: str) -> dict[str, str]:
    """Return the fields of the form that goes on."""
    form = page.partition('id="bulk"')[2].partition("</form>")[0]
    return {name: unescape(value) for name, value in re.findall(r'name="([^"]+)" value="([^"]*)"', form)}


@pytest.mark.parametrize("search", [OF_A, {"index": "by-kind", "key0": "a"}], ids=["filter", "index"])
def test_an_attribute_of_all_found_rows_is_set_and_removed(
    songs: Live, console: Console, search: dict[str, str]
) -> None:
    preview = unescape(console.get("/rows/bulk", **of(**search)))
    assert "20 rows found" in preview and len(keys_of(preview)) == 5 and "kind = a" in preview
    change = {"target": "x", "target_type": "N", "target_value": "12.50"}
    done = console.post("/rows/bulk", **of(**search, change="set", **change))
    assert "20 rows changed, 0 left as they are" in done
    for item in items(songs):
        assert item["x"] == ({"N": "12.5"} if item["kind"]["S"] == "a" else {"S": "old"})
        assert set(item) == {"p", "s", "kind", "x"}
    console.post("/rows/bulk", **of(**search, change="remove", target="x"))
    assert sum("x" not in item for item in items(songs)) == 20


def test_all_found_rows_are_deleted(songs: Live, console: Console) -> None:
    preview = console.get("/rows/bulk", **of(**OF_A, key0="p1", change="delete"))
    assert "10 rows found" in preview and "p = p1" in preview and "Delete all found rows" in preview
    assert len(items(songs)) == NUMBER  # a preview changes nothing
    assert "10 rows deleted" in console.post("/rows/bulk", **of(**OF_A, key0="p1", change="delete"))
    assert len(items(songs)) == NUMBER - 10


def test_a_long_change_goes_on_in_several_requests(
    songs: Live, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_pages, "_ROWS", 7)
    monkeypatch.setattr(bulk_pages, "_AT_ONCE", 3)
    page = console.post("/rows/bulk", **of(**OF_A, change="delete"))
    done = []
    while True:
        done += map(int, re.findall(r"(\d+) rows deleted", page))
        fields = hidden(page)
        if "after" not in fields:
            break
        assert "so far" in page
        page = console.post("/rows/bulk", **fields)
    assert done == [7, 14, 20] or done == [7, 14, 20, 20]
    assert "Show the rows" in page and len(items(songs)) == NUMBER - 20


def test_a_request_ends_after_its_time(
    songs: Live, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_pages, "_SECONDS", 0.0)
    monkeypatch.setattr(bulk_pages, "_AT_ONCE", 3)
    page = console.post("/rows/bulk", **of(**OF_A, change="delete"))
    assert "3 rows deleted" in page and len(items(songs)) == NUMBER - 3
    page = console.post("/rows/bulk", **hidden(page))
    assert "6 rows deleted" in page


def test_a_row_that_changed_meanwhile_is_left(
    songs: Live, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_then_change(*given: Any) -> Any:
        page = read_page(*given)
        songs.client.put_item(
            TableName="songs", Item={"p": {"S": "p0"}, "s": {"N": "0"}, "x": {"S": "theirs"}}
        )
        return page

    monkeypatch.setattr(bulk_pages, "read_page", read_then_change)
    for search in (OF_A, {"index": "by-kind", "key0": "a"}):
        _fill(songs)
        page = console.post(
            "/rows/bulk", **of(**search, change="set", target="x", target_type="S", target_value="mine")
        )
        assert "19 rows changed, 1 left as they are" in page
        assert {item["x"]["S"] for item in items(songs) if item["s"]["N"] == "0"} == {"theirs"}


def test_other_attributes_keep_the_types_of_other_dialects(
    server: Running, songs: Live, console: Console
) -> None:
    table = LiveAzure(server.url).service.create_table("entities")
    table.create_entity({"PartitionKey": "a", "RowKey": "b", "small": 1, "half": 0.5, "flag": True})
    fields = {
        "namespace": "shared",
        "name": "entities",
        "key0": "a",
        "target": "new",
        "target_type": "Edm.Int64",
    }
    console.post("/rows/bulk", **fields, change="set", target_value="9")
    entity = table.get_entity("a", "b")
    assert (
        entity["new"].value == 9 and entity["small"] == 1 and entity["half"] == 0.5 and entity["flag"] is True
    )
    shared = songs.client.get_item(
        TableName="entities", Key={"PartitionKey": {"S": "a"}, "RowKey": {"S": "b"}}
    )
    assert shared["Item"]["new"] == {"N": "9"}


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (
            {**OF_A, "change": "set", "target": "x", "target_type": "N", "target_value": "one"},
            "is not of the type N",
        ),
        ({**OF_A, "change": "set", "target": "", "target_type": "S"}, "needs a name"),
        (
            {**OF_A, "change": "set", "target": "s", "target_type": "N", "target_value": "1"},
            "is a key column",
        ),
        ({**OF_A, "change": "remove", "target": "p"}, "is a key column"),
        ({**OF_A, "change": "set", "target": "x", "target_type": "NONE"}, "type must be one of"),
        (
            {**OF_A, "change": "set", "target": "kind", "target_type": "S", "target_value": ""},
            "cannot be changed",
        ),
        ({**OF_A, "change": "truncate"}, "change must be one of"),
        ({"change": "delete"}, "Search by a key or a filter first"),
        ({"index": "by-kind", "change": "delete"}, "Search by a key or a filter first"),
        ({"attribute": "kind", "value": "a", "after": "!", "change": "delete"}, "not a position"),
        ({"value": "a", "change": "delete"}, "needs the name of an attribute"),
        (
            {**{f"attribute{number or ''}": "kind" for number in range(9)}, "change": "delete"},
            "at most 8 filters",
        ),
        (
            {"attribute": "kind", "comparison": "<>", "value": "a" * 5000, "change": "delete"},
            "4,096 characters",
        ),
    ],
)
def test_wrong_changes_are_refused(songs: Live, console: Console, form: dict[str, str], text: str) -> None:
    before = sorted(items(songs), key=str)
    page = unescape(console.post("/rows/bulk", 400, **of(**form)))
    assert text in page
    if "target" in form and form["target"] not in ("", "kind"):
        assert f'name="target" value="{form["target"]}"' in page
    assert sorted(items(songs), key=str) == before


def test_bulk_pages_are_absent_without_console_writes(shared_database_url: str) -> None:
    running = start(shared_database_url)
    try:
        console = Console(running.url)
        page = console.get("/rows", **of(**OF_A))
        assert "all found" not in page and "Add a row" not in page
        for path in ("/rows/bulk", "/row/new", "/row/edit"):
            console.get(path, 404, **of(**OF_A))
        for path in ("/rows/bulk", "/row/put", "/row/delete"):
            console.post(path, 404, **of(**OF_A, change="delete"))
    finally:
        running.stop()


def test_a_page_of_another_site_changes_nothing(songs: Live, console: Console) -> None:
    foreign = {"Origin": "http://evil.example"}
    console.post("/rows/bulk", 403, foreign, **of(**OF_A, change="delete"))
    assert len(items(songs)) == NUMBER


# Rights


@pytest.fixture
def strict(shared_database_url: str) -> Iterator[Running]:
    """A strict server on the same database."""
    settings = load({"database": shared_database_url, **SETTINGS}, {})
    open_store(settings, connect(settings)).close()
    running = start(shared_database_url, **SETTINGS)
    yield running
    running.stop()


def visitor(server: Running, *statements: dict[str, Any]) -> Console:
    gateway = server.app.extensions["tablegate"].gateway
    gateway.credentials.replace([OWNER, replace(KEY, policy=policy_for(*statements))])
    console = Console(server.url)
    console.sign_in("KEY", "secret of KEY")
    return console


SET = {**OF_A, "change": "set", "target": "x", "target_type": "S", "target_value": "new"}


def test_changes_need_the_rights_of_their_writes(songs: Live, strict: Running) -> None:
    console = visitor(strict, allow("Scan", "GetItem", on=SONGS))
    page = console.get("/rows", **of(**OF_A))
    assert "all found" not in page and "Add a row" not in page
    for form in (SET, {**OF_A, "change": "delete"}):
        console.get("/rows/bulk", 403, **of(**form))
        console.post("/rows/bulk", 403, **of(**form))
    console = visitor(strict, allow("Scan", "GetItem", "DeleteItem", on=SONGS))
    page = console.get("/rows", **of(**OF_A))
    assert "Delete all found" in page and "Change all found" not in page
    console.post("/rows/bulk", 403, **of(**SET))
    console = visitor(strict, allow("PutItem", on=SONGS))
    console.post("/rows/bulk", 403, **of(**SET))  # it cannot find the rows
    assert {item["x"]["S"] for item in items(songs)} == {"old"}


def test_a_grant_on_an_index_shows_no_other_attributes(songs: Live, strict: Running) -> None:
    console = visitor(strict, allow("Query", on=f"{SONGS}/index/by-kind"))
    page = console.get("/rows", **of(index="by-kind", key0="a"))
    assert len(keys_of(page)) == 20 and ">old<" not in page
    console = visitor(strict, allow("Query", on=f"{SONGS}/index/by-kind"), allow("PutItem", on=SONGS))
    change = {name: value for name, value in SET.items() if name not in OF_A}
    console.post("/rows/bulk", 403, **of(**change, index="by-kind", key0="a"))
    assert {item["x"]["S"] for item in items(songs)} == {"old"}


def test_a_grant_of_some_partitions_changes_those_only(songs: Live, strict: Running) -> None:
    leading = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["p1"]}}
    console = visitor(strict, allow("Query", on=SONGS), allow("DeleteItem", on=SONGS, **leading))
    console.post("/rows/bulk", 403, **of(key0="p0", change="delete"))
    assert "30 rows deleted" in console.post("/rows/bulk", **of(key0="p1", change="delete"))
    assert {item["p"]["S"] for item in items(songs)} == {"p0"}


ACTIONS: list[tuple[tuple[str, ...], str, str, dict[str, str]]] = [
    (("Scan",), "GET", "/rows", OF_A),
    (("Query",), "GET", "/rows", {"key0": "p0"}),
    (("GetItem",), "GET", "/row", {"at": "{place}"}),
    (("PutItem",), "POST", "/row/put", {"row": '{"p": {"S": "new"}, "s": {"N": "1"}}'}),
    (("PutItem", "GetItem"), "GET", "/row/new", {"copy": "{place}"}),
    (("PutItem", "GetItem"), "GET", "/row/edit", {"at": "{place}"}),
    (("DeleteItem", "GetItem"), "POST", "/row/delete", {"at": "{place}"}),
    (("PutItem", "Scan"), "POST", "/rows/bulk", SET),
    (("PutItem", "Query"), "POST", "/rows/bulk", {**SET, "key0": "p0"}),
    (("DeleteItem", "Scan"), "POST", "/rows/bulk", {**OF_A, "change": "delete"}),
]
"""The table of docs/operate/console.md: permissions, and a request that needs them."""


@pytest.mark.parametrize(("permissions", "method", "path", "fields"), ACTIONS)
def test_an_action_needs_the_permissions_that_the_docs_name(
    songs: Live, console: Console, strict: Running,
    permissions: tuple[str, ...], method: str, path: str, fields: dict[str, str],
) -> None:  # fmt: skip
    [place] = re.findall(r'name="at" value="([^"]+)"', console.get("/rows", **of(key0="p0", key1="0")))
    form = of(**{name: value.replace("{place}", place) for name, value in fields.items()})
    every = {"Scan", "Query", "GetItem", "PutItem", "DeleteItem"}

    def status(*actions: str) -> int:
        session = visitor(strict, allow(*actions, on=SONGS)).session
        sent = {"params": form} if method == "GET" else {"data": form}
        url = f"{strict.url}/_tablegate/console{path}"
        return session.request(method, url, **sent, allow_redirects=False, timeout=PATIENCE_S).status_code

    for missing in permissions:
        others = every - {missing} - ({"Scan", "Query"} if missing in ("Scan", "Query") else set())
        assert status(*others) == 403, missing
    assert status(*permissions) in (200, 303)
