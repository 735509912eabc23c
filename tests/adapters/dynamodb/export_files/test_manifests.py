"""Manifests of exports: the documented ones, names, and where files may be."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import orjson
import pytest

from tablegate.adapters.dynamodb.export_files import manifests
from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile

# "The files manifest" in the developer guide.
FILES = b"""{"itemCount": 8,"md5Checksum": "sQMSpEILNgoQmarvDFonGQ==","etag": "af83d6f217c19b8b0fff8023d8ca4716-1","dataFileS3Key": "AWSDynamoDB/01693685827463-2d8752fd/data/asdl123dasas4a.json.gz"}
{"itemCount": 8,"md5Checksum": "sQMSpEILNgoQmarvDFonGQ==","etag": "af83d6f217c19b8b0fff8023d8ca4716-1","dataFileS3Key": "AWSDynamoDB/01693685827463-2d8752fd/data/sgfsd4asd4a.json.gz"}
"""  # noqa: E501


def test_the_documented_manifest_of_files_is_read():
    first, _second = manifests.read_files(FILES.splitlines())
    assert first == (
        "AWSDynamoDB/01693685827463-2d8752fd/data/asdl123dasas4a.json.gz",
        8,
        "sQMSpEILNgoQmarvDFonGQ==",
    )


def test_an_entry_that_is_none_is_named():
    with pytest.raises(UnreadableFile, match="line 3: no dataFileS3Key"):
        list(manifests.read_files([*FILES.splitlines(), b"{}"]))
    with pytest.raises(UnreadableFile, match="line 1: not JSON"):
        list(manifests.read_files([b"{"]))


def test_a_summary_describes_the_export():
    full = manifests.ManifestSummary({"tableArn": "arn:aws:dynamodb:us-east-1:1:table/T.x", "itemCount": 3})
    assert (full.is_incremental, full.items, full.table_name) == (False, 3, "T.x")
    window = manifests.read_summary(
        b'{"exportType":"INCREMENTAL_EXPORT","exportToTime":"2023-09-02T20:57:07.463Z"}'
    )
    assert window.is_incremental and window.items is None
    assert window.moment("exportToTime") == datetime(2023, 9, 2, 20, 57, 7, 463_000, UTC)
    assert window.moment("exportFromTime") is None
    with pytest.raises(UnreadableFile, match="exportTime is not a time"):
        manifests.ManifestSummary({"exportTime": "soon"}).moment("exportTime")


@pytest.mark.parametrize(
    ("key", "prefix", "places"),
    [
        ("p/AWSDynamoDB/1/data/x", "p", ["p/AWSDynamoDB/1/data/x", "AWSDynamoDB/1/data/x"]),
        ("p/q/AWSDynamoDB/1/data/x", "p/", ["p/q/AWSDynamoDB/1/data/x", "q/AWSDynamoDB/1/data/x", "AWSDynamoDB/1/data/x"]),
        ("data/x", None, ["data/x"]),
        ("../x", None, []),
        ("p/../../x", "p", []),
        ("/etc/passwd", None, []),
    ],
)  # fmt: skip
def test_data_files_are_looked_for_only_in_the_folders_of_the_export(key, prefix, places):
    """Never outside of the export's folders."""
    assert manifests.places_of(key, manifests.ManifestSummary({"s3Prefix": prefix})) == places


def test_names_and_texts_are_the_services():
    assert manifests.export_id(1_693_685_827_463, bytes.fromhex("2d8752fd")) == "01693685827463-2d8752fd"
    assert manifests.time_text(1_604_474_914_028) == "2020-11-04T07:28:34.028Z"
    assert manifests.data_file_name(bytes(16), "ION") == "a" * 26 + ".ion.gz"
    assert manifests.md5_text(b"") == b"1B2M2Y8AsgTpgAmY7PhCfg=="
    line = orjson.loads(manifests.file_line("k", 8, hashlib.md5(b"x").digest()))
    assert line["md5Checksum"] == "ndTkYSaMgDT1yFZOFVxnpg==" and line["etag"].endswith("-1")
