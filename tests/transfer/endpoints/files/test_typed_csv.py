"""The typed CSV of Azure Storage Explorer. Sources are issues of microsoft/AzureStorageExplorer, by their numbers."""

from __future__ import annotations

import csv
import dataclasses
import tempfile
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given

from tablegate.adapters.azuretable.keys import OWN_SCHEMA
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import FALSE, TRUE, Kind, Value
from tablegate.transfer.endpoints.endpoint import Service
from tablegate.transfer.endpoints.files import csv_files
from tablegate.transfer.endpoints.files.opening import open_file
from tablegate.transfer.errors import BadAddress, BadFile, TransferError
from tests.support.examples import examples
from tests.transfer.support.generated_rows import AZURE_VALUES, TEXTS, table_of
from tests.transfer.support.small_table import DEFINITION, of_values, scanned, written

AZURE = dataclasses.replace(
    DEFINITION, name="t", service=Service.AZURE_TABLE, key_schema=OWN_SCHEMA, indexes=(), properties={}
)


NAMES = TEXTS.filter(lambda name: name != "Timestamp" and not name.endswith("@type"))


@examples(20)
@given(table=table_of(OWN_SCHEMA, values=AZURE_VALUES, names=NAMES, stamped=False))
def test_entities_come_back_exactly(tmp_path_factory, table):
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        path = f"{folder}/t.typed.csv"
        written(open_file(path, {}), AZURE, table)
        back = open_file(path, {})
        described = back.describe()
        assert (described.name, described.service, described.key_schema) == (
            "t",
            Service.AZURE_TABLE,
            OWN_SCHEMA,
        )
        assert list(map(of_values, scanned(back))) == list(map(of_values, table))
        assert [row.modified_at for row in scanned(back)] == [row.modified_at for row in table]


def entity(partition: str, row: str, **values: Value) -> Row:
    attributes = {"PartitionKey": Value(Kind.TEXT, partition), "RowKey": Value(Kind.TEXT, row), **values}
    return Row(OWN_SCHEMA.key(attributes).position, Contents.of_values(attributes), 17_000_000_000_000_000)


FORMULAS = ("=1+1", "+1", "-1", "@x", "\tx", "\rx", "\nx", "'=1", "''@", "'", "'x", "x=1")


def test_texts_are_no_formulas_and_come_back_exactly(tmp_path):
    """OWASP, "CSV Injection", as in the console. A number stays a number, and base64 can begin with +."""
    rows = [
        entity(text, text, s=Value(Kind.TEXT, text), i=Value(Kind.INT32, -1), b=Value(Kind.BYTES, b"\xfb"))
        for text in FORMULAS
    ]
    for options, first in (({}, "'"), ({"formulas": "keep"}, "")):
        path = str(tmp_path / f"{first}t.csv")
        written(open_file(path, options), AZURE, rows)
        with Path(path).open(newline="") as file:
            cells = list(csv.reader(file))
        assert [row[0] for row in cells[1:]] == [first + text for text in FORMULAS[:9]] + ["'", "'x", "x=1"]
        assert {(row[5], row[7]) for row in cells[1:]} == {("-1", first + "+w==")}
        assert list(map(of_values, scanned(open_file(path, options)))) == list(map(of_values, rows))
    with pytest.raises(BadAddress, match="formulas=none"):
        open_file(path, {"formulas": "none"})


def test_written_files_equal_those_of_the_current_tool(tmp_path):
    """Types without prefix (#8772), quotes doubled, CRLF, base64, Z.

    An absent value is an empty value with an empty type.
    """
    rows = [
        entity(
            "p", "r", s=Value(Kind.TEXT, 'a "b",\n'), i=Value(Kind.INT32, 1), l=Value(Kind.INT64, 2), t=TRUE
        ),
        entity(
            "p", "", s=Value(Kind.TEXT, ""), d=Value(Kind.DOUBLE, 3.0), x=Value(Kind.BYTES, b"\0\1"), t=FALSE,
            g=Value(Kind.GUID, UUID(int=5)), w=Value(Kind.DATETIME, 638_000_000_000_000_001),
        ),
    ]  # fmt: skip
    written(open_file(str(tmp_path / "t.csv"), {}), AZURE, rows)
    assert (tmp_path / "t.csv").read_bytes().decode() == (
        "PartitionKey,RowKey,Timestamp,s,s@type,i,i@type,l,l@type,t,t@type,d,d@type,x,x@type,g,g@type,w,w@type\r\n"
        'p,r,2023-11-14T22:13:20.0000000Z,"a ""b"",\n",String,1,Int32,2,Int64,true,Boolean,,,,,,,,\r\n'
        "p,,2023-11-14T22:13:20.0000000Z,,String,,,,,false,Boolean,3.0,Double,AAE=,Binary,"
        "00000000-0000-0000-0000-000000000005,Guid,2022-09-28T22:13:20.0000001Z,DateTime\r\n"
    )


def read_text(tmp_path: Path, text: str, **options: str) -> list[Row]:
    path = tmp_path / "in.csv"
    path.write_bytes(text.encode())
    return scanned(open_file(str(path), options))


def test_an_old_export_is_read(tmp_path):
    """Version 1.18 wrote `Edm.` before types (#4212). A byte order mark and LF are accepted."""
    [row] = read_text(
        tmp_path,
        "\ufeffPartitionKey,RowKey,Timestamp,n,n@type,s,s@type\n"
        'p,"a,b",2019-07-26T17:41:28.553Z,7,Edm.Int64,,Edm.String\n',
    )
    assert row.latest == {
        "PartitionKey": Value(Kind.TEXT, "p"), "RowKey": Value(Kind.TEXT, "a,b"),
        "n": Value(Kind.INT64, 7), "s": Value(Kind.TEXT, ""),
    }  # fmt: skip
    assert row.modified_at == 15_641_628_885_530_000


HEADER = "PartitionKey,RowKey,a,a@type\r\n"


def test_absent_and_empty_cells_differ(tmp_path):
    absent, empty = read_text(tmp_path, HEADER + "p,1,,\r\np,2,,String\r\n")
    assert "a" not in absent.latest and empty.latest["a"] == Value(Kind.TEXT, "")
    absent, empty = read_text(tmp_path, HEADER + "p,1,,\r\np,2,,String\r\n", empty="drop")
    assert "a" not in empty.latest


def test_keys_may_have_types(tmp_path):
    """Imports of the tool take PartitionKey@type (#417)."""
    [row] = read_text(
        tmp_path, "PartitionKey,PartitionKey@type,RowKey,RowKey@type\r\np,Edm.String,r,Edm.String\r\n"
    )
    assert set(row.latest) == {"PartitionKey", "RowKey"}


def test_types_in_the_first_row_only_are_an_option(tmp_path):
    """1.40.0 wrote the type only in the first row (#8772)."""
    text = HEADER + "p,1,5,Int32\r\np,2,6,\r\np,3,,\r\n"
    with pytest.raises(BadFile, match=r"in\.csv, line 3: 'a': the value '6' has no type.*types=first-row"):
        read_text(tmp_path, text)
    rows = read_text(tmp_path, text, types="first-row")
    assert [row.latest.get("a") for row in rows] == [Value(Kind.INT32, 5), Value(Kind.INT32, 6), None]
    with pytest.raises(BadFile, match="line 2"):
        read_text(tmp_path, "PartitionKey,RowKey,a\r\np,1,5\r\n", types="first-row")
    [row] = read_text(tmp_path, "PartitionKey,RowKey,a\r\np,1,5\r\n", types="text")
    assert row.latest["a"] == Value(Kind.TEXT, "5")


def test_the_delimiter_can_be_chosen(tmp_path):
    """The delimiter can be chosen (#4665)."""
    [row] = read_text(tmp_path, "PartitionKey;RowKey;a;a@type\r\np;1;x,y;String\r\n", delimiter=";")
    assert row.latest["a"] == Value(Kind.TEXT, "x,y")
    path = tmp_path / "t.csv"
    written(open_file(str(path), {"delimiter": ";"}), AZURE, [row])
    assert list(map(of_values, scanned(open_file(str(path), {"delimiter": ";"})))) == [of_values(row)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: the file is empty"),
        ("a,b\r\n", "line 1: the column 'PartitionKey' is missing"),
        ("PartitionKey,RowKey,a,a\r\n", "line 1: the column 'a' occurs twice"),
        ("PartitionKey,RowKey,a@type\r\n", "line 1: the type column 'a@type' has no value column"),
        (HEADER + "p,1,5\r\n", "line 2: the record has 3 cells, but the header has 4"),
        (HEADER + 'p,1,"x\ny",String\r\np,2,null,Int32\r\n', "line 4: 'a': the value 'null' is not a valid Edm.Int32"),
        (HEADER + "p,1,5,Int33\r\n", "line 2: 'a': unknown type 'Int33'"),
        (HEADER + 'p,1,"5,Int32\r\n', "line 2: unexpected end of data"),
        ("PartitionKey,RowKey,Timestamp\r\np,1,yesterday\r\n", "line 2: 'Timestamp'"),
    ],
)  # fmt: skip
def test_errors_are_named_with_their_line(tmp_path, text, words):
    """ "null" is a text and no absent value: the tool's own words for it (#1855)."""
    with pytest.raises(BadFile, match=r"in\.csv, line \d") as refused:
        read_text(tmp_path, text)
    assert words in str(refused.value)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "in.csv").write_bytes(HEADER.encode() + b"p,1,\xff,String\r\n")
    with pytest.raises(BadFile, match=r"in\.csv, line \d+: .*utf-8"):
        scanned(open_file(str(tmp_path / "in.csv"), {}))


@pytest.mark.parametrize(
    "options", [{"delimiter": ";;"}, {"types": "guess"}, {"empty": "?"}, {"keys": "a:S"}]
)
def test_wrong_options_are_refused(options):
    with pytest.raises(BadAddress):
        open_file("t.csv", options)


def test_an_empty_table_is_a_header(tmp_path):
    """Medienstudio.Azure.Data.Tables.CSV: an empty table is just the header and CRLF."""
    written(open_file(str(tmp_path / "t.csv"), {}), AZURE, [])
    assert (tmp_path / "t.csv").read_bytes() == b"PartitionKey,RowKey,Timestamp\r\n"
    assert scanned(open_file(str(tmp_path / "t.csv"), {})) == []


@pytest.mark.parametrize("name", ["Timestamp", "a@type"])
def test_names_that_would_be_taken_for_others_are_refused(tmp_path, name):
    target = open_file(str(tmp_path / "t.csv"), {})
    target.create(AZURE)
    target.write([entity("p", "r", **{name: TRUE})])
    with pytest.raises(TransferError, match=f"cannot have a property '{name}'"):
        target.finish()
    target.close()


def test_columns_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_files, "MAX_COLUMNS", 3)
    wide = entity("p", "r", **{f"a{number}": TRUE for number in range(4)})
    target = open_file(str(tmp_path / "t.csv"), {})
    target.create(AZURE)
    target.write([wide])
    with pytest.raises(TransferError, match="more than 3 different properties"):
        target.finish()
    target.close()
    assert not (tmp_path / "t.csv").exists()
    monkeypatch.undo()
    again = open_file(str(tmp_path / "t.csv"), {})
    again.finish()  # nothing is lost
    with open(tmp_path / "t.csv", newline="") as file:
        assert len(next(csv.reader(file))) == 3 + 8
