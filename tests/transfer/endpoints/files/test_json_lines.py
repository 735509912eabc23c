"""Our JSON Lines: exact, whole or nothing, bounded."""

from __future__ import annotations

import dataclasses
import errno
import gzip
import io
import os
import tempfile
import tracemalloc
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.export_files.compression import Compression
from tablegate.gateway.model.values.row_lines import row_line
from tablegate.transfer.endpoints.files import staging
from tablegate.transfer.endpoints.files.json_lines import JsonLines, PipedLines
from tablegate.transfer.endpoints.files.opening import open_file
from tablegate.transfer.endpoints.files.row_lines import read_row
from tablegate.transfer.errors import BadFile, SchemaChanged, TableAbsent, TransferError
from tests.support.examples import examples
from tests.transfer.support.generated_rows import rows, table_of
from tests.transfer.support.small_table import DEFINITION, FOUR, PAIR, exactly, scanned, simple_row, written

ENDINGS = [".jsonl", ".jsonl.gz", ".jsonl.zst"]


@given(st.sampled_from([PAIR, FOUR]).flatmap(lambda schema: st.tuples(st.just(schema), rows(schema))))
def test_a_row_comes_back_exactly(pair):
    schema, row = pair
    line = row_line(row)
    assert line.count(b"\n") == 1
    back = read_row(line, schema)
    assert exactly(back) == exactly(row)
    assert row_line(back) == line, "written again it is the same line"


@pytest.mark.parametrize("ending", ENDINGS)
@examples(20)
@given(table=table_of())
def test_a_table_comes_back_exactly(tmp_path_factory, ending, table):
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        path = f"{folder}/music{ending}"
        written(open_file(path, {}), DEFINITION, table[:2], table[2:])
        back = open_file(path, {})
        assert back.describe() == DEFINITION
        assert list(map(exactly, scanned(back))) == list(map(exactly, table))
        assert os.listdir(folder) == [f"music{ending}"], "nothing else is left"


def test_file_names_determine_the_compression(tmp_path):
    for ending in ENDINGS:
        written(JsonLines(tmp_path / f"t{ending}"), DEFINITION, [simple_row(1)])
    plain = (tmp_path / "t.jsonl").read_bytes()
    assert gzip.decompress((tmp_path / "t.jsonl.gz").read_bytes()) == plain
    assert (tmp_path / "t.jsonl.zst").read_bytes().startswith(b"\x28\xb5\x2f\xfd")
    header, row, end = map(orjson.loads, plain.splitlines())
    assert (header["tablegate"], header["version"]) == ("rows", 1)
    assert row["row"] == {"pk": {"S": "p1"}, "sk": {"N": "1"}, "text": {"S": "row 1"}}
    assert end["end"]["rows"] == 1


def test_a_file_has_its_name_only_when_it_is_finished(tmp_path):
    path = tmp_path / "t.jsonl"
    target = JsonLines(path)
    target.create(DEFINITION)
    target.write([simple_row(1)])
    target.close()  # as after Ctrl-C
    assert not path.exists()
    with pytest.raises(TableAbsent, match="incomplete"):
        JsonLines(path).describe()
    with pytest.raises(TableAbsent, match="incomplete"):
        scanned(JsonLines(path))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_copy_goes_on_after_a_kill_and_replayed_rows_stand_once(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    target = JsonLines(path)
    target.create(DEFINITION)
    target.write([simple_row(1), simple_row(2)])
    target.write([simple_row(3)])
    target.close()
    with open(staging.partial_path(path), "ab") as file:
        file.write(b"\x1f\x8bhalf a block")
    with open(f"{path}.partial.blocks", "ab") as file:
        file.write(b"[99999,9")  # half a line
    again = JsonLines(path)
    again.reopen()
    again.write([simple_row(3), simple_row(4)])  # the job had not noted the third
    again.finish()
    assert list(map(exactly, scanned(JsonLines(path)))) == [exactly(simple_row(n)) for n in (1, 2, 3, 4)]


@pytest.mark.parametrize("ending", ENDINGS)
def test_truncated_at_any_byte_it_continues_or_reports_an_error(tmp_path, ending):
    """A machine that stops loses what was not synced: the end of the file, or of its list of blocks, at any byte."""
    path = tmp_path / f"t{ending}"
    target = JsonLines(path)
    target.create(DEFINITION)
    for number in range(4):
        target.write([simple_row(number)])
    target.close()
    partial, blocks = staging.partial_path(path), Path(f"{path}.partial.blocks")
    data, listed = partial.read_bytes(), blocks.read_bytes()
    refusals = []
    for file, whole in ((partial, data), (blocks, listed)):
        for cut in range(0, len(whole), 7):
            partial.write_bytes(data)
            blocks.write_bytes(listed)
            file.write_bytes(whole[:cut])
            again = JsonLines(path)
            try:
                again.write([simple_row(number) for number in range(4)])
            except TransferError as error:
                refusals.append(str(error))
                again.close()
                continue
            again.finish()
            assert sorted(row.modified_at for row in scanned(JsonLines(path))) == [0, 1, 2, 3]
            path.unlink()
    assert all("Remove it" in refusal or "was removed" in refusal for refusal in refusals)


def test_a_new_copy_keeps_the_files_of_an_unfinished_one(tmp_path):
    path = tmp_path / "t.jsonl"
    target = JsonLines(path)
    target.create(DEFINITION)
    target.write([simple_row(1)])
    with pytest.raises(TransferError, match="another process"):
        JsonLines(path).create(DEFINITION)
    with pytest.raises(TransferError, match="another process"):
        JsonLines(path).write([simple_row(1)])
    target.close()
    with pytest.raises(TransferError, match=r"started and not finished.*--resume"):
        JsonLines(path).create(DEFINITION)


def test_a_file_without_rows_is_begun_anew(tmp_path):
    path = tmp_path / "t.jsonl"
    target = JsonLines(path)
    target.create(DEFINITION)
    target.close()
    other = dataclasses.replace(DEFINITION, name="other")
    written(JsonLines(path), other, [])
    assert JsonLines(path).describe() == other


def test_a_whole_file_is_not_written_over(tmp_path):
    path = tmp_path / "t.jsonl"
    written(JsonLines(path), DEFINITION, [simple_row(1)])
    target = JsonLines(path)
    assert target.create(DEFINITION) == []
    with pytest.raises(TransferError, match="exists already"):
        target.write([simple_row(2)])
    target.finish()  # a job that was killed just after its file got its name asks again
    assert len(scanned(target)) == 1
    with pytest.raises(SchemaChanged, match="another key"):
        JsonLines(path).create(dataclasses.replace(DEFINITION, key_schema=FOUR))


def test_reading_goes_on_after_a_page(tmp_path):
    path = tmp_path / "t.jsonl.zst"
    table = [simple_row(number) for number in range(1203)]
    written(JsonLines(path), DEFINITION, table[:700], table[700:])
    source = JsonLines(path)
    (segment,) = source.segments(8)
    pages = list(source.scan(segment))
    assert [len(page.rows) for page in pages] == [500, 500, 203] and pages[-1].resume is None
    for at, page in enumerate(pages[:-1]):
        rest = list(source.scan(segment, orjson.loads(orjson.dumps(page.resume))))
        assert [row.modified_at for each in rest for row in each.rows] == [
            row.modified_at for each in pages[at + 1 :] for row in each.rows
        ]


def test_every_truncation_and_every_flipped_byte_is_seen(tmp_path):
    path = tmp_path / "t.jsonl"
    table = [simple_row(number) for number in range(3)]
    written(JsonLines(path), DEFINITION, table)
    whole = path.read_bytes()
    for cut in range(0, len(whole) - 1, 11):  # without its very last byte, a line's end, nothing is missing
        path.write_bytes(whole[:cut])
        with pytest.raises(BadFile, match=r"t\.jsonl, (line|after line) \d"):
            scanned(JsonLines(path))
    for at in range(0, len(whole) - 1, 5):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(BadFile, match=r"t\.jsonl, line \d"):
            scanned(JsonLines(path))


@pytest.mark.parametrize("ending", ENDINGS[1:])
def test_a_compressed_file_that_was_cut_off_is_no_whole_one(tmp_path, ending):
    path = tmp_path / f"t{ending}"
    written(JsonLines(path), DEFINITION, [simple_row(1)], [simple_row(2)])
    whole = path.read_bytes()
    for cut in range(1, len(whole), 3):
        path.write_bytes(whole[:cut])
        with pytest.raises(BadFile, match=r"t\.jsonl"):
            scanned(JsonLines(path))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"not json\n", "line 2: not JSON"),
        (b"[]\n", "line 2: no JSON object"),
        (b'{"row":{"pk":{"S":"a"}},"modified_at":0}\n', "line 2: the key column 'sk' is missing"),
        (b'{"row":{"pk":{"N":"1"},"sk":{"N":"1"}},"modified_at":0}\n', "'pk' is of kind DECIMAL, not TEXT"),
        (b'{"row":{"pk":{"S":5},"sk":{"N":"1"}},"modified_at":0}\n', "line 2: invalid row"),
        (b'{"row":{"pk":{"S":"a"},"sk":{"N":"NaN"}},"modified_at":0}\n', "line 2: invalid row"),
        (b'{"row":{"pk":{"S":"a"},"sk":{"N":"1e126"}},"modified_at":0}\n', "out of range"),
        (b'{"row":{"pk":{"S":"a"},"sk":{"N":12345678901234567890123}},"modified_at":0}\n', "a number is not text"),
        (b'{"row":{"pk":{"S":"a"},"sk":{"N":"1"},"i":{"I64":5.7}},"modified_at":0}\n', "a number is not text"),
        (b'{"row":{"pk":{"S":"a"},"sk":{"N":"1"},"i":{"NS":["1", 2, 1.5]}},"modified_at":0}\n', "a number is not text"),
        (b'{"row":{"pk":{"S":"a"},"sk":{"N":"1"},"i":{"I32":"2147483648"}},"modified_at":0}\n', "not a value of kind INT32"),
        (b'{"row":{"pk":{"S":"a"},"sk":{"N":"1"},"i":{"X":"1"}},"modified_at":0}\n', "line 2: invalid row"),
        (b'{"row":{"pk":{"S":"a"},"sk":{"N":"1"}}}\n', "line 2: invalid row"),
        (b'{"row":{"pk":{"S":"a"},"sk":{"N":"1"}},"modified_at":"x"}\n', "its times are not integers"),
        (b'{"row":{"pk":{"S":"a"},"sk":{"N":"1"}},"modified_at":0,"kinds":{"cells":{"z":[1]}}}\n', "line 2: invalid row"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_row_is_named(tmp_path, line, words):
    path = tmp_path / "t.jsonl"
    written(JsonLines(path), DEFINITION, [])
    header, end = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + line + end)
    with pytest.raises(BadFile, match=r"t\.jsonl, line 2: ") as refused:
        scanned(JsonLines(path))
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{}\n",
        b'{"tablegate":"rows","version":2,"definition":{}}\n',
        b'{"tablegate":"rows","version":1,"definition":{"name":"x"}}\n',
        b'{"tablegate":"rows","version":1}\n',
    ],
)
def test_a_header_of_another_kind_or_release_is_refused(tmp_path, header):
    path = tmp_path / "t.jsonl"
    path.write_bytes(header)
    with pytest.raises(BadFile, match=r"t\.jsonl, line [01]: "):
        JsonLines(path).describe()


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "t.jsonl.zst"

    def peak_of(count: int) -> int:
        path.unlink(missing_ok=True)
        target = JsonLines(path)
        target.create(DEFINITION)
        tracemalloc.start()
        for first in range(0, count, 250):
            target.write([simple_row(number, "x" * 2000) for number in range(first, first + 250)])
        target.finish()
        source = JsonLines(path)
        assert sum(len(page.rows) for page in source.scan(source.segments(1)[0])) == count
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak_of(250)
    assert peak_of(3000) < 1.3 * peak_of(1000)


def test_large_rows_are_blocks_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(staging, "_BLOCK_BYTES", 10_000)
    path = tmp_path / "t.jsonl"
    target = JsonLines(path)
    target.create(DEFINITION)
    target.write([simple_row(number, "x" * 4000) for number in range(9)])
    assert len(Path(f"{path}.partial.blocks").read_bytes().splitlines()) == 1 + 3


def test_rows_go_through_a_pipe(tmp_path):
    pipe = io.BytesIO()
    target = PipedLines(target=pipe)
    target.create(DEFINITION)
    target.write([simple_row(1)])
    target.write([simple_row(2)])
    half = pipe.getvalue()
    target.finish()
    target.close()
    source = PipedLines(source=io.BytesIO(pipe.getvalue()))
    assert source.describe() == DEFINITION
    assert [row.modified_at for row in scanned(source)] == [1, 2]
    with pytest.raises(TransferError, match="only once"):
        scanned(source)
    with pytest.raises(BadFile, match="standard input, line 3: the file ends without its last line"):
        scanned(PipedLines(source=io.BytesIO(half)))
    packed = gzip.compress(pipe.getvalue())
    assert len(scanned(PipedLines(source=io.BytesIO(packed)))) == 2
    with pytest.raises(TransferError, match="Start a new copy"):
        PipedLines(target=io.BytesIO()).write([simple_row(1)])
    (tmp_path / "whole.jsonl").write_bytes(pipe.getvalue())
    assert len(scanned(JsonLines(tmp_path / "whole.jsonl"))) == 2, "what a pipe made is a whole file"


def test_operations_that_files_lack_are_refused(tmp_path):
    file = JsonLines(tmp_path / "t.jsonl")
    for refused in (
        lambda: file.get([]),
        lambda: file.delete([]),
        file.capture,
        lambda: file.changes(None),
        lambda: file.write([simple_row(1)]),
        file.describe,
    ):
        with pytest.raises(TransferError, match=r"t\.jsonl"):
            refused()


def test_a_full_disk_is_a_clear_message(tmp_path):
    target = JsonLines(Path("/dev/full/t.jsonl"))
    with pytest.raises(TransferError, match="/dev/full"):
        target.create(DEFINITION)


def test_the_window_of_replayed_rows_is_bounded(tmp_path, monkeypatch):
    """Rows before the window are no longer known, those in it are left out."""
    monkeypatch.setattr(staging, "REPLAYED_ROWS", 2)
    path = tmp_path / "t.jsonl"
    begun = staging.Staging(path, Compression.NONE, DEFINITION)
    for number in range(5):
        begun.append([simple_row(number)])
    begun.close()
    again = staging.Staging(path, Compression.NONE, None)
    again.append([simple_row(number) for number in (3, 4)])
    assert again.rows == 5
    again.append([simple_row(5)])
    assert [row.modified_at for row in again.read()] == [0, 1, 2, 3, 4, 5]


def test_after_a_full_disk_nothing_is_lost_or_doubled(tmp_path, monkeypatch):
    """The block that did not fit is written over by the next attempt."""
    path = tmp_path / "t.jsonl"
    target = JsonLines(path)
    target.create(DEFINITION)
    target.write([simple_row(1)])
    for failing in ("fdatasync", "fsync"):

        def full(_descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, failing, full)
        with pytest.raises(TransferError, match="No space left on device"):
            target.write([simple_row(2)]) if failing == "fdatasync" else target.finish()
        monkeypatch.undo()
        assert not path.exists()
    target.write([simple_row(3)])
    target.finish()
    assert [row.modified_at for row in scanned(JsonLines(path))] == [1, 3]
