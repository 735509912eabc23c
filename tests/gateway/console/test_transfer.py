"""Export and import of rows in the console: formats, bounds, bad lines, and who may not."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import requests
from azure.data.tables import EdmType, EntityProperty

from tablegate.gateway.console import row_files, transfer_pages
from tests.conftest import Serve
from tests.gateway.console.test_console import Console
from tests.gateway.console.test_grants_of_visitors import server, visitor  # noqa: F401
from tests.gateway.security.test_permission_cases import allow
from tests.support.live_azure import LiveAzure
from tests.support.live_dynamodb import Live
from tests.support.running import Running
from tests.support.waiting import PATIENCE_S

SONGS = {"namespace": "shared", "name": "songs"}
ARN = "arn:aws:dynamodb:*:*:table/songs"


@pytest.fixture
def console(serve: Serve, database_url: str) -> Console:
    """A console of a server with the table `songs`: two items."""
    running = serve(database_url, console_writes=True)
    live = Live(running.url)
    live.create("p:S", name="songs")
    live.client.put_item(TableName="songs", Item={"p": {"S": "a"}, "n": {"N": "1.50"}, "b": {"B": b"\xff"}})
    live.client.put_item(TableName="songs", Item={"p": {"S": "=b,\n"}, "l": {"L": [{"S": "x"}]}})
    return Console(running.url)


def test_rows_are_exported_in_each_format(console: Console) -> None:
    typed = [json.loads(line) for line in console.get("/export", **SONGS, format="typed").splitlines()]
    assert {"p": {"S": "a"}, "n": {"N": "1.5"}, "b": {"B": "/w=="}} in typed and len(typed) == 2
    plain = [json.loads(line) for line in console.get("/export", **SONGS, format="plain").splitlines()]
    assert {"p": "=b,\n", "l": ["x"]} in plain
    rows = list(csv.reader(io.StringIO(console.get("/export", **SONGS, format="csv"))))
    assert rows[0] == ["p", "b", "l", "n"]
    assert ["a", "/w==", "", "1.5"] in rows and ["'=b,\n", "", '["x"]', ""] in rows
    reply = console.session.get(
        f"{console.url}/export", params={**SONGS, "format": "csv"}, timeout=PATIENCE_S
    )
    assert reply.headers["Content-Disposition"] == 'attachment; filename="songs.csv"'
    console.get("/export", 400, **SONGS, format="xml")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_texts_are_no_formulas_in_csv(serve: Serve, database_url: str) -> None:
    """OWASP, "CSV Injection": cells that begin with = + - @, tab or a line break. A number stays a number."""
    running = serve(database_url)
    live = Live(running.url)
    live.create("p:S", name="songs")
    for text in ("=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "'x", "x=1"):
        live.client.put_item(TableName="songs", Item={"p": {"S": text}, "n": {"N": "-1"}, "=h": {"S": ""}})
    export = partial(
        Console(running.url).session.get, f"{running.url}/_tablegate/console/export", timeout=PATIENCE_S
    )
    plain = export(params={**SONGS, "format": "csv"}).content.decode()
    rows = list(csv.reader(io.StringIO(plain, newline="")))
    assert rows[0] == ["p", "'=h", "n"]
    guarded = {"'=1+1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "'\nx"}
    assert {row[0] for row in rows[1:]} == guarded | {"'x", "x=1"} and {row[2] for row in rows[1:]} == {"-1"}
    typed = export(params={**SONGS, "format": "typed-csv"}).content.decode()
    rows = list(csv.reader(io.StringIO(typed, newline="")))
    assert rows[0] == ["p", "'=h", "'=h@type", "n", "n@type"]
    assert {row[0] for row in rows[1:]} == guarded | {"'x", "x=1"} and {row[3] for row in rows[1:]} == {"-1"}


def test_an_export_that_is_too_large_is_refused(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer_pages, "EXPORT_ROWS", 2)
    console.get("/export", **SONGS)
    monkeypatch.setattr(transfer_pages, "EXPORT_ROWS", 1)
    command = "tablegate copy \"tablegate:$TABLEGATE_DATABASE\"'#shared/songs' file:songs.jsonl"
    page = unescape(console.get("/export", 400, **SONGS))
    assert f"{command}</pre>" in page
    assert "nothing was exported. A file has at most 1 rows and 8 MB" in page
    monkeypatch.setattr(transfer_pages, "EXPORT_ROWS", 2)
    monkeypatch.setattr(transfer_pages, "EXPORT_BYTES", 10)
    assert command in unescape(console.get("/export", 400, **SONGS))


def test_an_export_can_be_imported(console: Console) -> None:
    exported = console.get("/export", **SONGS)
    lines = exported + '\n{"p": {"S": "new"}, "x": {"N": "7"}}\n'
    assert "The table has 2 rows. Imported rows are added." in console.get("/transfer", **SONGS)
    assert "3 rows imported." in console.post("/import", **SONGS, lines=lines)
    assert '{"p":{"S":"new"},"x":{"N":"7"}}' in console.get("/export", **SONGS)


EVERY_TYPE: dict[str, Any] = {
    "p": {"S": '=x,"\r\n\u2028é'}, "text": {"S": "1.5"}, "empty": {"S": ""}, "lines": {"S": "a\r\nb\nc"},
    "number": {"N": "1.5"}, "long": {"N": "12345678901234567890123456789012345678"}, "bytes": {"B": b"\xff\x00"},
    "true": {"BOOL": True}, "null": {"NULL": True}, "a@type": {"S": "x"}, "list": {"L": [{"S": "1"}, {"N": "1"}]},
    "map": {"M": {"k": {"B": b"\x01"}}}, "texts": {"SS": ["a", "b"]}, "numbers": {"NS": ["1", "2.5"]},
    "all bytes": {"BS": [b"\x01", b"\x02"]},
}  # fmt: skip


@pytest.mark.parametrize("name", ["typed", "typed-csv"])
def test_an_exported_file_can_be_uploaded(serve: Serve, database_url: str, name: str) -> None:
    running = serve(database_url, console_writes=True)
    live, console = Live(running.url), Console(running.url)
    live.create("p:S", name="songs")
    items = [
        EVERY_TYPE,
        {"p": {"S": "other"}, "text": {"N": "-7"}, "bytes": {"B": b"\xfb"}, "=h": {"S": "+"}},
    ]
    items += [{"p": {"S": text}, "'-h": {"S": text}} for text in ("'=1", "''\t", "\r", "'", "'x", "@", "-1")]
    for item in items:
        live.client.put_item(TableName="songs", Item=item)
    found = live.client.scan(TableName="songs")["Items"]
    exported = console.session.get(
        f"{console.url}/export", params={**SONGS, "format": name}, timeout=PATIENCE_S
    ).content
    for item in items:
        live.client.delete_item(TableName="songs", Key={"p": item["p"]})
    assert "9 rows imported." in upload(console, exported, name)
    assert sorted(live.client.scan(TableName="songs")["Items"], key=str) == sorted(found, key=str)


@pytest.mark.parametrize("name", ["typed", "typed-csv"])
def test_entities_keep_their_types(serve: Serve, database_url: str, name: str) -> None:
    running = serve(database_url, console_writes=True)
    table = LiveAzure(running.url).service.create_table("songs")
    console = Console(running.url)
    entity = {
        "PartitionKey": "p", "RowKey": "r", "text": "1", "int": 1, "long": EntityProperty(1, EdmType.INT64), "half": 0.5,
        "whole": 1.0, "flag": False, "guid": UUID(int=7), "bytes": b"\x00", "time": datetime(2026, 1, 31, tzinfo=UTC),
        "none": math.inf,
    }  # fmt: skip
    table.create_entity(entity)
    before = table.get_entity("p", "r")
    exported = console.session.get(
        f"{console.url}/export", params={**SONGS, "format": name}, timeout=PATIENCE_S
    ).content
    table.delete_entity("p", "r")
    assert "1 row imported." in upload(console, exported, name)
    after = table.get_entity("p", "r")
    assert dict(after) == dict(before)
    assert {name: type(after[name]) for name in after} == {name: type(before[name]) for name in before}


def upload(console: Console, data: bytes, name: str, status: int = 200) -> str:
    """Submit the form of imports with a file, as a browser does."""
    answer = console.session.post(
        f"{console.url}/import",
        data={**SONGS, "format": name, "lines": ""},
        files={"file": ("rows", data)},
        timeout=PATIENCE_S,
    )
    assert answer.status_code == status, answer.text
    return unescape(answer.text)


def test_rows_of_csv_can_be_pasted(console: Console) -> None:
    text = 'p,n,n@type\r\n"c\r\nd",2,N\r\ne,,\r\n'
    assert "2 rows imported." in console.post("/import", **SONGS, format="typed-csv", lines=text)
    exported = console.get("/export", **SONGS)
    assert '{"p":{"S":"c\\nd"},"n":{"N":"2"}}' in exported and '{"p":{"S":"e"}}' in exported


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("p,n,n@type\nnew,1,N\nb,x,N", "Line 3: column n: This must be a number of at most 38 digits."),
        ('p,n,n@type\nnew,1,N\n"b\n",1,N\nc,1,Q', "Line 5: n@type must be one of S, N, B,"),
        ("p,n,n@type\nnew,1,N\nb,1,", "Line 3: n@type must be one of S, N, B,"),
        ("p,n,n@type\nnew,1,N\nb,1", "Line 3: it has 2 fields, and the first line 3."),
        ("p,n,n@type\nnew,1,N\n,1,N", "Line 3: "),
        ('p,n,n@type\nnew,1,N\n"b', "Line 3: unexpected end of data."),
        ("p,n\nnew,1", "Line 1: the column after n must be n@type."),
        ("p,n,n@type,n,n@type\nnew,1,N,1,N", "Line 1: two columns have the same name."),
        ("n,p\n1,new", "Line 1: the first columns must be p."),
        ("p\n", "Give at least one row."),
    ],
)
def test_a_bad_line_of_csv_is_named_and_nothing_is_written(console: Console, text: str, problem: str) -> None:
    page = unescape(console.post("/import", 400, **SONGS, format="typed-csv", lines=text))
    assert problem in page and f"{text.strip()}" in page
    assert '<option value="typed-csv" selected>' in page
    assert problem in upload(console, text.encode(), "typed-csv", 400)
    assert "new" not in console.get("/export", **SONGS)


def test_a_file_that_has_no_rows_is_refused(console: Console) -> None:
    for data in (b"\xff\xfe\x00", b"\x00\x01PAR1", b"p\n\xff"):
        for name in ("typed", "typed-csv"):
            assert "Line 1: " in upload(console, data, name, 400)
    assert "The format must be one of typed, typed-csv" in upload(console, b"", "csv", 400)
    assert "Give at least one row." in upload(console, b"", "typed", 400)


@pytest.mark.parametrize("is_file", [True, False], ids=["file", "text"])
def test_a_form_of_2_mb_is_imported_and_a_longer_one_is_refused(console: Console, is_file: bool) -> None:
    middle = "&" * 30 if is_file else "a"
    rows = "\n".join(
        json.dumps({"p": {"S": f"{number}{middle}"}, "x": {"S": "x" * 200_000}}) for number in range(10)
    )

    def prepared(space: int) -> requests.PreparedRequest:
        text = rows + " " * space
        fields = {**SONGS, "format": "typed"} if is_file else {**SONGS, "format": "typed", "lines": text}
        files = {"file": text} if is_file else None
        return requests.Request("POST", f"{console.url}/import", data=fields, files=files).prepare()

    def length(space: int) -> int:
        return len(prepared(space).body or "")

    def sent(space: int) -> requests.Response:
        return console.session.send(prepared(space), timeout=PATIENCE_S)

    space = (2 << 20) - length(0)
    assert length(space) == 2 << 20
    reply = sent(space)
    assert (reply.status_code, "10 rows imported." in reply.text) == (200, True), reply.text
    assert sent(space + 1).status_code == 413


def test_a_form_of_too_many_parts_is_refused(console: Console) -> None:
    many = {f"part{number}": ("", "x") for number in range(20)}
    reply = console.session.post(f"{console.url}/import", files={**many}, data=SONGS, timeout=PATIENCE_S)
    assert reply.status_code == 413 and "<h1>This is too long</h1>" in reply.text


def test_csv_of_too_many_attributes_is_refused(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_files, "CELLS", 6)
    console.get("/export", **SONGS, format="csv")
    monkeypatch.setattr(row_files, "CELLS", 5)
    for name in ("csv", "typed-csv"):
        assert "Use JSON Lines." in console.get("/export", 400, **SONGS, format=name)


@pytest.mark.extended
@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_the_commands_on_the_page_copy_the_table_and_back(
    console: Console, database_url: str, tmp_path: Path, ending: str
) -> None:
    page = console.get("/transfer", **SONGS)
    environment = {**os.environ, "TABLEGATE_DATABASE": database_url}
    before = console.get("/export", **SONGS)

    def run(name: str) -> None:
        [command] = re.findall(f'<pre id="{name}"[^>]*>(.*?)</pre>', page)
        command = unescape(command).replace(
            "tablegate copy", f"{shlex.quote(sys.executable)} -m tablegate copy"
        )
        command = command.replace("songs.jsonl", f"songs{ending}")
        subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, check=True, timeout=300)

    run("copy")
    changed = '{"p": {"S": "a"}, "n": {"S": "changed"}}'
    assert "1 row imported." in console.post("/import", **SONGS, lines=changed)
    assert console.get("/export", **SONGS) != before
    run("copy-back")
    assert console.get("/export", **SONGS) == before


def test_a_bad_line_is_named_and_nothing_is_written(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bad in ("{", "[]", '{"p": {"N": "1"}}', '{"x": {"S": "no key"}}'):
        page = unescape(console.post("/import", 400, **SONGS, lines=f'{{"p": {{"S": "new"}}}}\n{bad}'))
        assert "Line 2: " in page and f"{bad}</textarea>" in page
    assert "Give at least one row." in console.post("/import", 400, **SONGS, lines=" ")
    page = unescape(
        console.post(
            "/import", 400, **SONGS, lines='{"p": {"S": "new"}}\n\n{"p": {"S": "new"}, "x": {"N": "1"}}'
        )
    )
    assert "Line 3: it has the same key as line 1." in page
    monkeypatch.setattr(transfer_pages, "IMPORT_ROWS", 1)
    lines = '{"p": {"S": "new"}}\n{"p": {"S": "newer"}}\n'
    assert "At most 1 rows can be imported at once." in console.post("/import", 400, **SONGS, lines=lines)
    assert "new" not in console.get("/export", **SONGS)


def test_a_key_needs_the_permissions_of_an_sdk(server: Running) -> None:  # noqa: F811
    console = visitor(server, allow("Query", on=ARN))
    page = console.get("/transfer", **SONGS)
    assert "not allowed to scan" in page and "Import rows" not in page
    console.get("/export", 403, **SONGS)
    console.post("/import", 403, **SONGS, lines='{"p": {"S": "a"}, "s": {"N": "1"}}')
    for path in ("/transfer", "/export"):
        forbidden = console.get(path, 403, namespace="shared", name="secrets")
        assert forbidden == console.get(path, 403, namespace="shared", name="absent").replace(
            "absent", "secrets"
        )
