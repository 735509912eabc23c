"""Parquet: exact for our files, by type for files of other programs. pyarrow reads the files that we write."""

from __future__ import annotations

import datetime
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import NULL, TRUE, Kind, Value
from tablegate.transfer.endpoints.files import parquet, parquet_columns
from tablegate.transfer.endpoints.files.opening import open_file
from tablegate.transfer.errors import BadAddress, BadFile, MissingSoftware
from tests.support.examples import examples
from tests.transfer.support.generated_rows import table_of
from tests.transfer.support.small_table import DEFINITION, PAIR, exactly, scanned, simple_row, written

NAMES = st.sampled_from(["a", "b", "a:INT64", "_kinds", "_modified_at", "x.y", "é"]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=3
)


@examples(20)
@given(table=table_of(names=NAMES))
def test_a_table_comes_back_exactly(tmp_path_factory, table):
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        path = f"{folder}/t.parquet"
        written(open_file(path, {}), DEFINITION, table)
        back = open_file(path, {})
        assert back.describe() == DEFINITION
        assert list(map(exactly, scanned(back))) == list(map(exactly, table))


def row(number: int, **values: Value) -> Row:
    key = {"pk": Value(Kind.TEXT, "p"), "sk": Value(Kind.DECIMAL, Decimal(number))}
    return Row(PAIR.key(key).position, Contents.of_values({**key, **values}), 17)


def test_columns_have_the_types_that_other_readers_expect(tmp_path):
    rows = [
        row(
            1, t=Value(Kind.TEXT, "x"), n=Value(Kind.DECIMAL, Decimal("1.50")), d=Value(Kind.DOUBLE, 0.5), b=TRUE,
            s=Value(Kind.TEXT_SET, frozenset({"q", "p"})), g=Value(Kind.GUID, UUID(int=3)), w=Value(Kind.DATETIME, 5),
        ),
        row(2, t=Value(Kind.INT64, 9), i=Value(Kind.INT32, 7), z=NULL, m=Value(Kind.MAP, {"k": NULL})),
    ]  # fmt: skip
    path = tmp_path / "t.parquet"
    written(open_file(str(path), {}), DEFINITION, rows)
    table = pq.read_table(path)
    assert {field.name: str(field.type) for field in table.schema} == {
        "pk": "string", "sk": "string", "t": "string", "t:INT64": "int64", "n": "string", "d": "double", "b": "bool",
        "s": "string", "g": "fixed_size_binary[16]", "w": "int64", "i": "int32", "z": "bool", "m": "string",
        "_modified_at": "int64", "_expires_at_ms": "int64", "_kinds": "string", "_other_attributes": "string",
    }  # fmt: skip
    first, second = table.to_pylist()
    assert (first["n"], first["s"], first["t"], first["t:INT64"]) == ("1.5", '["p","q"]', "x", None)
    assert (second["t"], second["t:INT64"], second["m"], second["z"]) == (
        None,
        9,
        '{"k":{"NULL":true}}',
        True,
    )


def test_attributes_beyond_the_columns_are_kept_together(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_columns, "MAX_COLUMNS", 3)
    path = tmp_path / "t.parquet"
    rows = [row(1, a=TRUE, b=NULL, c=Value(Kind.DOUBLE, 1.0))]
    written(open_file(str(path), {}), DEFINITION, rows)
    [found] = pq.read_table(path).to_pylist()
    assert orjson.loads(found["_other_attributes"]) == {"b": {"NULL": True}, "c": {"D": "1.0"}}
    assert list(map(exactly, scanned(open_file(str(path), {})))) == list(map(exactly, rows))


def test_row_groups_are_segments_and_reading_goes_on_in_them(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 1200)
    path = tmp_path / "t.parquet"
    written(open_file(str(path), {}), DEFINITION, [simple_row(number) for number in range(3000)])
    source = open_file(str(path), {})
    segments = source.segments(2)
    assert segments == [[0, 2], [1]] and source.segments(9) == [[0], [1], [2]]
    pages = list(source.scan(segments[0]))
    for at, page in enumerate(pages[:-1]):
        rest = source.scan(segments[0], orjson.loads(orjson.dumps(page.resume)))
        assert [row.modified_at for each in rest for row in each.rows] == [
            row.modified_at for each in pages[at + 1 :] for row in each.rows
        ]
    assert sorted(row.modified_at for row in scanned(source, 9)) == list(range(3000))


def test_groups_are_bounded_in_bytes_and_empty_cells(tmp_path, monkeypatch):
    rows = [simple_row(number, "x" * 1000) for number in range(100)]

    def sizes() -> list[int]:
        path = tmp_path / "t.parquet"
        path.unlink(missing_ok=True)
        written(open_file(str(path), {}), DEFINITION, rows)
        file = pq.ParquetFile(path)
        return [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]

    assert sizes() == [100]
    monkeypatch.setattr(parquet, "_GROUP_BYTES", 10_000)
    assert max(sizes()) <= 10
    monkeypatch.undo()
    monkeypatch.setattr(parquet, "_GROUP_CELLS", 7 * 20)  # three attributes, and what each row has
    assert sizes() == [20] * 5


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "t.parquet"
    written(open_file(str(path), {}), DEFINITION, [simple_row(number) for number in range(50)])
    whole = path.read_bytes()
    for cut in (0, 3, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(BadFile, match=r"t\.parquet is not a complete Parquet file"):
            scanned(open_file(str(path), {}))
    path.write_bytes(whole[:60] + bytes([whole[60] ^ 1]) + whole[61:])
    with pytest.raises(BadFile, match=r"t\.parquet, row group 0"):
        scanned(open_file(str(path), {}))
    path.write_bytes(b"pk,sk\n1,2\n")
    with pytest.raises(BadFile, match="not a complete Parquet file"):
        open_file(str(path), {}).describe()


def foreign(tmp_path: Path, columns: dict[str, Any], keys: str = "id:S") -> list[Row]:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"id": pa.array([f"k{n}" for n in range(2)]), **columns}), path)
    return scanned(open_file(str(path), {"keys": keys}))


UTC = datetime.UTC
MOMENT = datetime.datetime(2022, 9, 28, 22, 13, 20, 5, tzinfo=UTC)
TICKS = 638_000_000_000_000_050


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["x", None]), Value(Kind.TEXT, "x")),
        (pa.array(["x", None], pa.large_string()), Value(Kind.TEXT, "x")),
        (pa.array(["x", None]).dictionary_encode(), Value(Kind.TEXT, "x")),
        (pa.array([b"x", None]), Value(Kind.BYTES, b"x")),
        (pa.array([b"xy", None], pa.binary(2)), Value(Kind.BYTES, b"xy")),
        (pa.array([True, None]), TRUE),
        (pa.array([1, None], pa.int8()), Value(Kind.INT32, 1)),
        (pa.array([1, None], pa.uint16()), Value(Kind.INT32, 1)),
        (pa.array([1, None], pa.int32()), Value(Kind.INT32, 1)),
        (pa.array([2**32 - 1, None], pa.uint32()), Value(Kind.INT64, 2**32 - 1)),
        (pa.array([-(2**63), None]), Value(Kind.INT64, -(2**63))),
        (pa.array([2**64 - 1, None], pa.uint64()), Value(Kind.DECIMAL, Decimal(2**64 - 1))),
        (pa.array([0.5, None], pa.float32()), Value(Kind.DOUBLE, 0.5)),
        (pa.array([0.1, None]), Value(Kind.DOUBLE, 0.1)),
        (pa.array([Decimal("1.50"), None], pa.decimal128(38, 2)), Value(Kind.DECIMAL, Decimal("1.5"))),
        (pa.array([MOMENT, None], pa.timestamp("us", "UTC")), Value(Kind.DATETIME, TICKS)),
        (pa.array([MOMENT.replace(tzinfo=None), None], pa.timestamp("ns")), Value(Kind.DATETIME, TICKS)),
        (pa.array([datetime.date(1970, 1, 1), None]), Value(Kind.DATETIME, 621_355_968_000_000_000)),
        (pa.array([[1, None], None]), Value(Kind.LIST, (Value(Kind.DECIMAL, Decimal(1)), NULL))),
        (pa.array([{"a": "x"}, None]), Value(Kind.MAP, {"a": Value(Kind.TEXT, "x")})),
        (pa.array([[("a", "x")], None], pa.map_(pa.string(), pa.string())), Value(Kind.MAP, {"a": Value(Kind.TEXT, "x")})),
        (pa.array([[0.5], None]), Value(Kind.LIST, (Value(Kind.DECIMAL, Decimal("0.5")),))),
        (pa.array([[], None], pa.map_(pa.string(), pa.int32())), Value(Kind.MAP, {})),
        (pa.array([None, None]), None),
    ],
)  # fmt: skip
def test_types_of_other_programs_are_read(tmp_path, column, expected):
    first, second = foreign(tmp_path, {"a": column})
    assert first.latest.get("a") == expected and "a" not in second.latest
    assert first.latest["id"] == Value(Kind.TEXT, "k0")


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([1, None], pa.timestamp("ns")), "a time in nanoseconds"),
        (pa.array([1, None], pa.duration("s")), "duration"),
        (pa.array([Decimal("9" * 39), None], pa.decimal256(39, 0)), "more than 38 digits"),
        (pa.array([[(1, 2)], None], pa.map_(pa.int32(), pa.int32())), "a map key is not text"),
    ],
)
def test_values_that_would_lose_information_are_refused(tmp_path, column, words):
    with pytest.raises(BadFile, match=r"f\.parquet, row group 0, row 1: column 'a'") as refused:
        foreign(tmp_path, {"a": column})
    assert words in str(refused.value)


def test_keys_of_other_peoples_files(tmp_path):
    rows = foreign(tmp_path, {"n": pa.array([1, 2], pa.int32()), "v": pa.array([1.5, 2.5])}, "id:S,n:N")
    assert [row.latest["n"] for row in rows] == [Value(Kind.DECIMAL, Decimal(n)) for n in (1, 2)]
    rows = foreign(tmp_path, {"n": pa.array([1, 2], pa.int32())}, "n:I")
    assert [row.latest["n"] for row in rows] == [Value(Kind.INT64, n) for n in (1, 2)]
    with pytest.raises(BadFile, match="'n' is of kind DOUBLE, not BYTES"):
        foreign(tmp_path, {"n": pa.array([0.5, float("nan")])}, "id:S,n:B")
    with pytest.raises(BadFile, match=r"row group 0, row 2: the key column 'n' is missing"):
        foreign(tmp_path, {"n": pa.array(["a", None])}, "id:S,n:S")
    with pytest.raises(BadAddress, match=r"\?keys="):
        open_file(str(tmp_path / "f.parquet"), {}).describe()


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "tablegate.transfer.endpoints.files.parquet", raising=False)
    with pytest.raises(MissingSoftware, match=r"tablegate\[parquet\]"):
        open_file("t.parquet", {})
