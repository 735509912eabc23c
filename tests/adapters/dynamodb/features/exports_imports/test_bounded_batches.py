"""A batch of a job is bounded work, whatever its objects and rows contain.

Between two checks of the stop flag, no more is inflated, parsed or read than the batch's limit permits.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson
import pytest
import zstandard

from tablegate.adapters.dynamodb.export_files import records
from tablegate.adapters.dynamodb.export_files.compression import BLOCK_BYTES, Compression, blocks
from tablegate.adapters.dynamodb.export_files.records import ImportFormat
from tablegate.adapters.dynamodb.features.exports_imports import export_worker, object_worker
from tablegate.adapters.dynamodb.features.exports_imports.object_stores import (
    BucketReference,
    ObjectStore,
    OpenObject,
    StoredObject,
)
from tablegate.adapters.dynamodb.features.exports_imports.object_worker import (
    ObjectSource,
    SourceCursor,
    SourceObjects,
)
from tablegate.gateway.engine import scheduler
from tablegate.gateway.engine.scheduler import MAX_ROWS, MIN_ROWS
from tablegate.gateway.model.commands.row_commands import Read, ReadAll
from tests.adapters.dynamodb.features.exports_imports.conftest import TABLE_ARN, Exporter
from tests.adapters.dynamodb.features.exports_imports.test_import_api import begun, counts, described, line

MIB = 1 << 20


class Objects:
    """A place with some objects."""

    def __init__(self, *objects: bytes) -> None:
        self.objects = {f"{number:04}": data for number, data in enumerate(objects)}

    def listed(self, bucket: BucketReference, prefix: str, after: str = "") -> Iterator[StoredObject]:
        return (StoredObject(key, len(data)) for key, data in self.objects.items() if key > after)

    def read(self, bucket: BucketReference, key: str) -> OpenObject:
        return OpenObject(io.BytesIO(self.objects[key]), "")

    def write(self, *_: Any) -> str:
        raise NotImplementedError


def opened_at(store: ObjectStore, source: ObjectSource, cursor: SourceCursor) -> SourceObjects:
    """Open the objects for a caller that can read all tables."""
    return SourceObjects(store, source, cursor, lambda table, place: None)


@pytest.fixture
def inflated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the blocks that were inflated since it was cleared."""
    sizes: list[int] = []

    def noted(stream: BinaryIO, compression: Compression, window_bytes: int) -> Iterator[bytes]:
        for block in blocks(stream, compression, window_bytes):
            sizes.append(len(block))
            yield block

    monkeypatch.setattr(object_worker, "blocks", noted)
    return sizes


def source_of(format_: str, compression: Compression) -> ObjectSource:
    return ObjectSource(BucketReference("b"), "", compression, ImportFormat(format_, header=("pk",)))


def packed(data: bytes, compression: Compression) -> bytes:
    if compression is Compression.GZIP:
        return gzip.compress(data, 1)
    return zstandard.ZstdCompressor().compress(data) if compression is Compression.ZSTD else data


@pytest.mark.extended
@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize(
    ("format_", "piece"),
    [
        ("DYNAMODB_JSON", b"\n"),
        ("DYNAMODB_JSON", b" "),
        ("DYNAMODB_JSON", b"  \r\n"),
        ("ION", b"\n"),
        ("ION", b"{"),
        ("CSV", b"\n"),
        ("CSV", b"\r"),
        ("CSV", b","),
        ("CSV", b'"'),
        ("CSV", b'x"\n' * 20 + b'"' + b"\n" * 3_000 + b'"\n'),
        ("CSV", b'"\n",'),
    ],
)
def test_a_batch_inflates_a_bounded_number_of_bytes(
    inflated: list[int], format_: str, piece: bytes, compression: Compression
) -> None:
    opened = opened_at(
        Objects(packed(piece * (3 * MIB // len(piece)), compression), b""),
        source_of(format_, compression),
        SourceCursor(),
    )
    while True:
        inflated.clear()
        taken = opened.take(MIN_ROWS)
        assert sum(inflated) <= MIN_ROWS * 1024 + BLOCK_BYTES
        assert len(inflated) <= MIN_ROWS * 16
        if taken.is_over:
            break


def test_empty_members_and_objects_count_as_work(inflated: list[int]) -> None:
    """Empty members behind each other, and objects without a byte."""
    opened = opened_at(
        Objects(gzip.compress(b"") * 50_000, *[b""] * 200),
        source_of("DYNAMODB_JSON", Compression.GZIP),
        SourceCursor(),
    )
    batches = 0
    while not opened.take(MIN_ROWS).is_over:
        assert len(inflated) <= MIN_ROWS * 16
        inflated.clear()
        batches += 1
    assert batches > 20


@pytest.mark.parametrize(("window_log", "is_read"), [(23, True), (24, False)])
def test_a_window_of_zstandard_above_8_mib_is_refused(window_log: int, is_read: bool) -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=window_log)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    data = packer.compress(line("a")) + packer.flush()
    taken = opened_at(Objects(data), source_of("DYNAMODB_JSON", Compression.ZSTD), SourceCursor()).take(1_000)
    assert [bool(each.record.error) for each in taken.found] == [not is_read]


def test_records_that_are_skipped_are_work_too(inflated: list[int]) -> None:
    """A server that continues after a kill reads the object from its beginning, in normal batches."""
    data = b"".join(line(f"{number:05}", x={"S": "x" * 500}) for number in range(4_000))
    source = source_of("DYNAMODB_JSON", Compression.NONE)
    opened = opened_at(Objects(data), source, SourceCursor("0000", 3_998))
    found = []
    is_over = False
    while not is_over:
        inflated.clear()
        taken = opened.take(MIN_ROWS)
        assert sum(inflated) <= MIN_ROWS * 1024 + BLOCK_BYTES
        found += taken.found
        is_over = taken.is_over
    assert [each.number for each in found] == [3_999, 4_000]
    assert taken.cursor == SourceCursor("0000", 0, True, len(data))


@pytest.mark.parametrize(("format_", "item"), [("DYNAMODB_JSON", b'{"Item":%s}\n'), ("ION", b"{Item:%s}\n")])
def test_a_record_of_too_many_values_is_not_parsed(
    format_: str, item: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of 3 MB would be 1.5 million Python objects."""
    parsed: list[int] = []
    monkeypatch.setattr(records, "json_object", lambda line: parsed.append(len(line)) or orjson.loads(line))
    monkeypatch.setattr(
        records.line_formats, "parse_ion", lambda text: parsed.append(len(text)) or {"Item": {"M": {}}}
    )
    data = item % (b'{"a":[' + b"1," * 1_500_000 + b"1]}") + item % b"{}"
    taken = opened_at(Objects(data), source_of(format_, Compression.NONE), SourceCursor()).take(10_000)
    assert [bool(each.record.error) for each in taken.found] == [True, False]
    assert parsed == [len(item % b"{}") - 1]


@pytest.mark.parametrize("cut", range(1, 12))
def test_lines_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    data = b'\xef\xbb\xbfpk,n\r\n"a ""\r\nb",1\r\r\n\nc,"2"\n"d,",3\re,\xc3\xa9\n'

    def cut_up(stream: BinaryIO, *_: Any) -> Iterator[bytes]:
        while block := stream.read(cut):
            yield block

    monkeypatch.setattr(object_worker, "blocks", cut_up)
    source = ObjectSource(BucketReference("b"), "", Compression.NONE, ImportFormat("CSV"))
    taken = opened_at(Objects(data), source, SourceCursor()).take(MAX_ROWS)
    assert [[*each.record.members["Item"].values()] for each in taken.found] == [
        [{"S": 'a "\r\nb'}, {"S": "1"}],
        [{"S": "c"}, {"S": "2"}],
        [{"S": "d,"}, {"S": "3"}],
        [{"S": "e"}, {"S": "é"}],
    ]


def test_the_stop_flag_is_looked_at_while_an_object_of_newlines_is_read(
    exporter: Exporter, inflated: list[int]
) -> None:
    exporter.place.put("in/1", gzip.compress(b"\n" * (64 * MIB), 1))
    arn = begun(exporter, InputCompressionType="GZIP")["ImportArn"]
    most: list[int] = []

    def look() -> None:
        most.append(sum(inflated))
        inflated.clear()

    engine = exporter.service.gateway.engine
    for _ in range(12):
        look()
        engine.background.batch_of("jobs")
    assert 0 < max(most) <= MAX_ROWS * 1024 + BLOCK_BYTES
    assert sum(most) < 64 * MIB
    shown = described(exporter, arn)
    assert (shown["ImportStatus"], counts(shown)) == ("IN_PROGRESS", (0, 0, 0))


def test_an_object_of_newlines_and_two_items(exporter: Exporter) -> None:
    exporter.place.put("in/1", gzip.compress(line("a") + b"\n" * (4 * MIB) + line("b"), 1))
    arn = begun(exporter, InputCompressionType="GZIP")["ImportArn"]
    exporter.work()
    shown = described(exporter, arn)
    assert (shown["ImportStatus"], counts(shown)) == ("COMPLETED", (2, 2, 0))


def test_an_export_of_large_items(exporter: Exporter, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data read for a batch, full or incremental, is bounded in bytes."""
    monkeypatch.setattr(scheduler, "MAX_ROWS", MIN_ROWS)
    exporter.service.table()
    exporter.keep_history()
    begin = exporter.service.clock.ms
    exporter.put(*[f"{number:02}" for number in range(40)], x={"S": "x" * 100_000})
    exporter.service.clock.ms += 3_600_000
    read: list[int] = []
    real = object_worker.run_command

    def run_command(gateway: Any, command: Any) -> Any:
        found = real(gateway, command)
        rows = found if isinstance(command, ReadAll) else found.rows if isinstance(command, Read) else ()
        read.append(sum(row.size_bytes for row in rows if row is not None))
        return found

    monkeypatch.setattr(object_worker, "run_command", run_command)
    exporter.export(S3Prefix="full")
    window = {"ExportFromTime": begin / 1000, "ExportToTime": exporter.service.clock.ms / 1000}
    exporter.export(S3Prefix="window", ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification=window)
    engine = exporter.service.gateway.engine
    while engine.background.next_batch():
        pass
    total = 0
    while exporter.step():
        assert sum(read) <= MIN_ROWS * 1024 + export_worker._CHANGES_AT_ONCE * 200_000
        total += sum(read)
        read.clear()
    assert total >= 2 * 40 * 100_000
    shown = exporter.ok("ListExports", TableArn=TABLE_ARN)["ExportSummaries"]
    assert [each["ExportStatus"] for each in shown] == ["COMPLETED", "COMPLETED"]
