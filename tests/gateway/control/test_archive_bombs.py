"""Uploads that are small and claim any size: snapshot files and seeds are read within bounds, and refused by name."""

from __future__ import annotations

import base64
import gzip
import io
import tarfile
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson
import pytest

from tablegate.gateway.control import archives, snapshots
from tablegate.gateway.control.documents import BadRequest, OperationRejected, run
from tablegate.gateway.control.routes import _document, _tables_in
from tablegate.gateway.control.seeds import from_request
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.history.backup_commands import ListNamespaces
from tablegate.gateway.model.values import row_lines
from tests.adapters.dynamodb.client import DynamoDBService
from tests.support.clock import Clock

MIB = 1 << 20
LARGE = 9 * MIB
"""Size of each text without its compression. Parsed, lists of it take 200 MB."""
PEAK_BYTES = 40 * MIB
"""Maximum memory while one is refused, with smaller bounds than those of the product: some copies of a line."""
HEAD = b'{"tablegate":"snapshot","version":1,"saved_at_ms":1,"namespaces":["a"],"whole":true,"tables":['


@pytest.fixture
def service() -> Iterator[DynamoDBService]:
    with DynamoDBService.opened(Clock()) as opened:
        yield opened


@pytest.fixture
def engine(service: DynamoDBService) -> Engine:
    return service.gateway.engine


def filled(start: bytes, repeated: bytes, end: bytes = b"", size: int = LARGE) -> bytes:
    return start + repeated * (size // len(repeated)) + end


def packed(*members: tuple[bytes, bytes, bytes]) -> bytes:
    """Return a compressed archive of (name, type, contents)."""
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", compresslevel=1, mtime=0) as file:
        for name, kind, content in members:
            head = tarfile.TarInfo(name.decode())
            head.type, head.size = kind, len(content)
            file.write(head.tobuf(tarfile.USTAR_FORMAT))
            file.write(content + bytes(-len(content) % tarfile.BLOCKSIZE))
        file.write(bytes(2 * tarfile.BLOCKSIZE))
    return made.getvalue()


def manifest(content: bytes) -> bytes:
    return packed((b"snapshot.json", tarfile.REGTYPE, content))


def with_rows(content: bytes, definition: Any) -> bytes:
    entry = {"file": "0.jsonl", "namespace": "a", "definition": definition, "rows": 1, "sha256": ""}
    return packed(
        (b"snapshot.json", tarfile.REGTYPE, HEAD + orjson.dumps(entry) + b"]}"),
        (b"0.jsonl", tarfile.REGTYPE, content),
    )


def a_definition(service: DynamoDBService) -> Any:
    service.table("origin")
    snapshots.save(service.gateway.engine, {"name": "own"}, 1)
    with tarfile.open(fileobj=io.BytesIO(snapshots.export(service.gateway.engine, "own").body)) as archive:
        found = archive.extractfile("snapshot.json")
        assert found is not None
        return orjson.loads(found.read())["tables"][0]["definition"]


def refused(call: Callable[[], object], says: str, name: str) -> None:
    """The call must be refused with these words, and take little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(BadRequest, match=says):
            call()
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < PEAK_BYTES, f"{name}: {peak_bytes >> 20} MB"


def test_a_snapshot_that_grows_without_end_is_refused_in_little_memory(
    service: DynamoDBService, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = service.gateway.engine
    definition = a_definition(service)
    monkeypatch.setattr(archives, "VALUE_CHARACTERS", 1 << 17)
    monkeypatch.setattr(archives, "MOST_TABLES", 1_000)
    monkeypatch.setattr(row_lines, "LINE_NODES", 100_000)
    files: Iterable[tuple[str, bytes, str]] = (
        ("a manifest of one text", manifest(filled(b'{"tablegate":"', b"a", b'"}')), "too long"),
        ("a manifest of lists", manifest(filled(b'{"x":[', b"[],", b"0]}")), "too long"),
        ("a table of lists", manifest(filled(HEAD + b'{"definition":[', b"[],", b"0]}]}")), "too long"),
        ("a list of namespaces", manifest(filled(b'{"namespaces":["', b'a","', b'"]}')), "too long"),
        ("many tables", manifest(filled(HEAD, b'{"namespace":"a"},', b"{}]}")), "more than 1,000 tables"),
        ("many members", manifest(filled(b'{"a":1', b',"a":1', b"}")), "more than"),
        ("deep lists", manifest(filled(HEAD, b"[", b"")), "too long|nested"),
        ("blanks", manifest(filled(HEAD, b" ", b"]}x")), "the snapshot"),
        ("a number", manifest(filled(b'{"version":', b"1", b"}")), "too long"),
        ("a PAX header", packed((b"x", tarfile.XHDTYPE, filled(b"", b"\0"))), "too long"),
        ("a global PAX header", packed((b"x", tarfile.XGLTYPE, filled(b"", b"9"))), "too long"),
        ("a long name", packed((b"x", tarfile.GNUTYPE_LONGNAME, filled(b"", b"n"))), "too long"),
        ("a row of lists", with_rows(filled(b'{"row":[', b"[],", b"0]}\n"), definition), "more than"),
        ("a long row", with_rows(filled(b'{"row":{"pk":{"S":"', b"a", b'"}}}', 17 * MIB), definition), "a line is too long"),
        ("a row of braces", with_rows(filled(b"", b"{"), definition), "more than"),
        ("data after the end", manifest(HEAD + b"]}") + gzip.compress(bytes(LARGE), 1), "data after"),
    )  # fmt: skip
    for name, file, says in files:
        refused(lambda file=file: snapshots.put(engine, file, "bomb"), says, name)  # type: ignore[misc]
    assert [*snapshots.listed(engine)["snapshots"]] == ["own"]
    assert [each for each in run(engine, ListNamespaces()) if each.startswith("snapshot/.")] == []


def test_a_manifest_is_read_in_any_order_and_layout(service: DynamoDBService) -> None:
    """Spaces, line ends and the order of members have no meaning in JSON. Values cross the ends of pieces."""
    engine = service.gateway.engine
    definition = a_definition(service)
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    tables = [
        {
            "file": f"{number}.jsonl",
            "namespace": "a",
            "definition": {**definition, "azure_name": f"t{number}", "name": f"t{number}-" + "é" * 999},
            "rows": 0,
            "sha256": empty,
        }
        for number in range(90)
    ]
    facts = {"tablegate": "snapshot", "version": 1, "saved_at_ms": 1, "namespaces": ["a"], "whole": True}
    rows = [(f"{number}.jsonl".encode(), tarfile.REGTYPE, b"") for number in range(90)]
    for document in ({"tables": tables, **facts, "more": [1.5, None]}, {**facts, "tables": tables}):
        for indent in (0, orjson.OPT_INDENT_2):
            text = orjson.dumps(document, option=indent)
            file = packed((b"snapshot.json", tarfile.REGTYPE, text), *rows)
            assert snapshots.put(engine, file, "many")["tables"] == 90
    for text in (
        b"",
        b"[]",
        b"{}",
        b'{"tables":{}}',
        HEAD,
        HEAD + b"]",
        HEAD + b"]}]",
        HEAD + b",]}",
        HEAD + b'"\xff"]}',
    ):
        with pytest.raises(BadRequest, match=r"the snapshot|not a snapshot"):
            snapshots.put(engine, manifest(text), "none")


def test_a_snapshot_that_could_not_be_read_back_is_not_written(
    engine: Engine, service: DynamoDBService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.table("first")
    service.table("second")
    service.call("PutItem", {"TableName": "first", "Item": {"pk": {"S": "a" * 300}}})
    snapshots.save(engine, {"name": "two"}, 1)
    assert snapshots.export(engine, "two").body
    for module, name, bound in (
        (archives, "MOST_TABLES", 1),
        (archives, "MOST_MANIFEST_BYTES", 900),
        (archives, "VALUE_CHARACTERS", 200),
        (archives, "ROW_BYTES", 300),
        (archives, "LINE_NODES", 1),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, bound)
            with pytest.raises(OperationRejected, match="does not fit in a file"):
                archives.write(
                    engine, "snapshot/two/", snapshots.listed(engine)["snapshots"]["two"], io.BytesIO()
                )


def test_a_seed_that_grows_without_end_is_refused_in_little_memory(
    service: DynamoDBService,
) -> None:
    service.table("seeded")

    def load(name: str, content: bytes) -> object:
        given = {"name": name, "base64": base64.b64encode(gzip.compress(content, 1)).decode()}
        return from_request([service.dialect], {"files": [given]})

    for name, content in (
        ("a.json.gz", filled(b"[", b"[],", b"0]")),
        ("b.json.gz", filled(b'{"TableName":"', b"a", b'"}', 17 * MIB)),
        ("c.json.gz", b"[" * 1000 + b"1" + b"]" * 1000),
        ("seeded.jsonl.gz", filled(b'{"pk":{"L":[', b'{"L":[]},', b"]}}")),
        ("seeded.ndjson.gz", filled(b"{'a':[", b"[],", b"]}", 4 * MIB)),
        ("seeded.jsonl.gz", filled(b"", b"\n", b"{", MIB >> 4)),
        ("seeded.csv.gz", filled(b"pk:S,", b"a:S,", b"b:S")),
        ("seeded.csv.gz", filled(b'pk:S\n"', b"a" * 60 + b"\n")),
        ("x/manifest-summary.json", filled(b"", b"{")),
    ):
        refused(lambda name=name, content=content: load(name, content), name, f"{name} {content[:20]!r}")  # type: ignore[misc]


def test_a_document_of_the_control_api_has_a_bounded_number_of_members() -> None:
    body = filled(b'{"tables":[', b"[],", b"0]}", 6 * MIB)
    assert _tables_in(body) == []
    refused(lambda: _document(body), "at most", "a document")
    assert _document(b'{"files":["' + b"[" * MIB + b'"]}') == {"files": ["[" * MIB]}
