"""The search page of the console: conditions on the fields of a search index, order, pages, code and grants."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as table_messages
from tests.adapters.tablestore.search_messages import field, schema
from tests.gateway.console.test_console import EVIL, Console, keys_of
from tests.gateway.console.test_row_searches import code_of
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import Running, start

NUMBER = 60


@pytest.fixture(scope="module")
def server(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with the table `things` and its index `i`, and the table `plain` without one."""
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("search"))
    running = start(f"sqlite:///{path}")
    try:
        store = LiveTableStore(running.url)
        store.create("plain")
        store.create("things", ("pk", table_messages.INTEGER))
        fields = schema(
            ("kind", messages.KEYWORD), ("number", messages.LONG), ("text", messages.TEXT), ("ip", messages.IP),
            field("day", messages.DATE, date_formats=["yyyy-MM-dd"]), ("flag", messages.BOOLEAN),
            field("parts", messages.NESTED, field_schemas=[field("name", messages.KEYWORD)]),
        )  # fmt: skip
        store.call("CreateSearchIndex", table_name="things", index_name="i", schema=fields)
        for number in range(NUMBER):
            cells = {
                "kind": "odd" if number % 2 else "even", "number": number, "text": f"Word {number} of {EVIL}",
                "ip": f"10.0.{number}.1", "day": f"2026-01-{number % 28 + 1:02}", "flag": number == 3,
                "parts": json.dumps([{"name": f"p{number}"}]),
            }  # fmt: skip
            store.put({"pk": number}, cells, "things")
        store.wait_for_search_index("things", "i", NUMBER)
        yield running
    finally:
        running.stop()


@pytest.fixture
def console(server: Running) -> Console:
    return Console(server.url)


def found(console: Console, *conditions: tuple[str, str, str], **more: str) -> list[str]:
    """Return the keys that a search shows."""
    return keys_of(page_of(console, *conditions, **more))


def page_of(console: Console, *conditions: tuple[str, str, str], status: int = 200, **more: str) -> str:
    fields = {
        f"{member}{number}": text
        for number, condition in enumerate(conditions)
        for member, text in zip(("field", "comparison", "value"), condition, strict=True)
    }
    return console.get("/search", status, namespace="shared", name="things", **fields, **more)


def test_conditions_of_each_type(console: Console) -> None:
    assert found(console, ("number", "=", "7")) == ["7"]
    assert found(console, ("number", ">=", "57"), ("kind", "=", "odd")) == ["57", "59"]
    assert found(console, ("number", "<", "2")) == ["0", "1"]
    assert found(console, ("ip", "=", "10.0.4.0/22")) == ["4", "5", "6", "7"]
    assert found(console, ("day", ">", "2026-01-27")) == ["27", "55"]
    assert found(console, ("flag", "=", "true")) == ["3"]
    assert found(console, ("text", "matches", "12 13")) == ["12", "13"]
    assert found(console, ("text", "has the phrase", "word 12")) == ["12"]
    assert found(console, ("parts.name", "begins with", "p5"), ("number", "<=", "50")) == ["5", "50"]
    assert found(console, ("parts.name", "is like", "p?3"), ("flag", "exists", "")) == [
        "13",
        "23",
        "33",
        "43",
        "53",
    ]


def test_order_total_and_pages(console: Console) -> None:
    first = page_of(console, index="i", sort="number", order="desc")
    assert keys_of(first) == [str(number) for number in range(59, 9, -1)]
    assert "60 rows found." in first
    after = re.search(r'<a class="button" rel="next" href="/_tablegate/console([^"]*)"', first)
    assert after is not None
    second = console.get(unescape(after[1]))
    assert keys_of(second) == [str(number) for number in range(9, -1, -1)]
    assert 'rel="prev"' in second
    assert 'rel="next"' not in second
    assert found(console, ("text", "matches", "7"), sort="score") == ["7"]


def test_values_of_rows_are_shown_as_text(console: Console) -> None:
    page = page_of(console, ("number", "=", "7"))
    assert EVIL not in page
    assert "Word 7 of" in page


@pytest.mark.parametrize(
    ("condition", "more", "text"),
    [
        (("number", "=", "many"), {}, "is no value of the type long"),
        (("number", "matches", "1"), {}, "is compared by"),
        (("text", "=", "1"), {}, "is compared by"),
        (("ip", "=", "10.0.0.0/33"), {}, "is no value of the type ip"),
        (("absent", "=", "1"), {}, "no field absent"),
        (("kind", "is like", "*" * 33), {}, "at most 32 characters"),
        (("kind", "exists", ""), {"sort": "text"}, "cannot be sorted"),
        (("kind", "exists", ""), {"index": "absent"}, "no search index absent"),
    ],
    ids=["number", "match", "equal", "block", "field", "pattern", "sort", "index"],
)
def test_mistakes_are_explained(
    console: Console, condition: tuple[str, str, str], more: dict[str, str], text: str
) -> None:
    assert text in unescape(page_of(console, condition, status=400, **more))


def test_a_table_without_a_search_index_says_so(console: Console) -> None:
    assert "The table has no search index" in console.get("/search", namespace="shared", name="plain")
    assert "/search?" not in console.get("/rows", namespace="shared", name="plain")
    assert "/search?" in console.get("/rows", namespace="shared", name="things")


def test_the_code_finds_the_same_rows(console: Console, tmp_path: Path) -> None:
    """The code runs with Alibaba's SDK."""
    conditions = (
        ("number", "<=", "30"), ("number", ">", "5"), ("kind", "=", "odd"), ("text", "matches", "7 9 11 40"),
        ("parts.name", "begins with", "p"), ("flag", "=", "false"), ("ip", "=", "10.0.0.0/8"), ("day", "exists", ""),
    )  # fmt: skip
    page = page_of(console, *conditions, sort="number", order="desc")
    assert keys_of(page) == ["11", "9", "7"]
    code = code_of(page, "tablestore")
    script = tmp_path / "search.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert re.findall(r"\('pk', (\d+)\)", done.stdout) == ["11", "9", "7"]
