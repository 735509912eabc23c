"""Parquet files in the console: they are restored exactly, and a file that claims too much is refused."""

from __future__ import annotations

import io
import re
import subprocess
import tempfile
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablegate.gateway.console import row_files
from tablegate.gateway.console.row_files import NotConverted, lines_of_parquet
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tablegate.transfer.endpoints.files.parquet import ParquetFile
from tablegate.transfer.endpoints.files.parquet_conversion import check_footer
from tablegate.transfer.errors import BadFile
from tests.conftest import Serve
from tests.gateway.console.test_console import Console
from tests.gateway.console.test_transfer import EVERY_TYPE, SONGS, upload
from tests.support.live_dynamodb import Live
from tests.support.waiting import PATIENCE_S

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
SCHEMA = KeySchema((KeyColumn("p", Kind.TEXT),), ())


def parquet(columns: Mapping[str, Any], **options: Any) -> bytes:
    """Return a file that tablegate did not write."""
    found = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), found, **options)
    return found.getvalue()


def exported(console: Console, table: str) -> bytes:
    fields = {"namespace": "shared", "name": table, "format": "parquet"}
    answer = console.session.get(f"{console.url}/export", params=fields, timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{table}.parquet"'
    return answer.content


@on_sqlite
def test_an_exported_file_can_be_imported(serve: Serve, database_url: str) -> None:
    running = serve(database_url, console_writes=True)
    live, console = Live(running.url), Console(running.url)
    live.create("p:S", name="songs")
    live.client.put_item(TableName="songs", Item=EVERY_TYPE)
    found = live.client.scan(TableName="songs")["Items"]
    file = exported(console, "songs")
    assert pq.read_table(io.BytesIO(file)).column("bytes").to_pylist() == [b"\xff\x00"]
    live.client.delete_item(TableName="songs", Key={"p": EVERY_TYPE["p"]})
    assert "1 row imported." in upload(console, file, "parquet")
    assert live.client.scan(TableName="songs")["Items"] == found


@on_sqlite
def test_a_file_of_another_program_is_imported_by_its_types(serve: Serve, database_url: str) -> None:
    running = serve(database_url, console_writes=True)
    live, console = Live(running.url), Console(running.url)
    live.create("p:S", name="songs")
    file = parquet({"p": ["a", "b"], "n": [1, None], "half": [0.5, 1.5], "tags": [["x"], []]})
    assert "2 rows imported." in upload(console, file, "parquet")
    assert {"p": {"S": "a"}, "n": {"N": "1"}, "half": {"N": "0.5"}, "tags": {"L": [{"S": "x"}]}} in live.client.scan(
        TableName="songs"
    )["Items"]  # fmt: skip


@on_sqlite
def test_an_unreadable_file_is_explained(
    serve: Serve, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = serve(database_url, console_writes=True)
    Live(running.url).create("p:S", name="songs")
    console = Console(running.url)
    page = upload(console, b"PAR1 \xff no file", "parquet", 400)
    assert "rows.parquet is not a complete Parquet file" in page
    assert re.findall(r'name="lines"[^>]*>\n(.*?)</textarea>', page, re.DOTALL) == [""]
    with row_files._one_at_a_time:
        assert "another Parquet file is being converted" in upload(console, b"", "parquet", 400)
        busy = console.get("/export", 400, **SONGS, format="parquet")
        assert "another Parquet file is being converted" in unescape(busy)


def test_a_file_that_claims_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file, limit = tmp_path / "rows.parquet", 32 << 20

    def footer(data: bytes) -> tuple[int, int]:
        file.write_bytes(data)
        return ParquetFile(file, {"keys": "p:S"}).footer_sizes()

    many = footer(parquet({"p": ["x"] * 1001}))
    check_footer(*many, 1001)
    with pytest.raises(BadFile, match=r"has 1,001 rows\. The limit is 1,000"):
        check_footer(*many, 1000)
    long = footer(parquet({"p": ["x" * (limit // 2)] * 2}, use_dictionary=False, compression="zstd"))
    assert long[0] == 2 and file.stat().st_size < 200_000
    with pytest.raises(BadFile, match=r"bytes of values\. The limit is 33,554,432"):
        check_footer(*long, 1000)
    check_footer(2, limit, 2)


def test_a_file_whose_footer_is_wrong_gets_no_more_memory() -> None:
    """The footer counts a value of a dictionary once. The rows of this file have 10 GB."""
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 1000), pa.array(["x" * 10_000_000]))
    file = parquet({"p": values}, compression="zstd", dictionary_pagesize_limit=64 << 20)
    assert len(file) < 10_000
    with pytest.raises(NotConverted, match=r"malloc|memory"):
        lines_of_parquet(file, SCHEMA, row_files.IMPORT_ROWS)


def test_without_a_folder_for_temporary_files_no_file_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    for _ in range(2):
        with pytest.raises(NotConverted, match=r"cannot run: .*/nowhere"):
            lines_of_parquet(b"", SCHEMA, 1)


def test_the_process_has_no_settings_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLEGATE_SECRET_KEY", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    given: list[Mapping[str, str]] = []

    def run(*_: Any, env: Mapping[str, str], **__: Any) -> subprocess.CompletedProcess[bytes]:
        given.append(env)
        return subprocess.CompletedProcess([], -9)

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(NotConverted, match="more memory or time"):
        lines_of_parquet(b"", SCHEMA, 1)
    assert "secret" not in given[0].values()
