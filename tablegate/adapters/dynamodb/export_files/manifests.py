"""The files of an export: its manifests, their names and places, and a data file being written.

The layout under the root of a bucket or folder is AWSDynamoDB/EXPORTID/ with `_started`, two manifests, each with its
MD5, and data/. The variants of other writers are read, too: absent members, and keys relative to the bucket, the prefix
or the manifest. The module opens no files. A data file takes lines and gives compressed bytes, with the values for its
entry in the manifest.

Source: "DynamoDB table export output format" in the developer guide.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, BinaryIO, NamedTuple, Protocol, cast

import orjson

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.gateway.model.values.row_lines import json_object

# Manifests


FOLDER = "AWSDynamoDB"
SUMMARY = "manifest-summary.json"
FILES = "manifest-files.json"
STARTED = "_started"
FULL_VERSION = "2020-06-30"
INCREMENTAL_VERSION = "2023-08-01"
OUTPUT_FORMATS = {"DYNAMODB_JSON": "json", "ION": "ion"}
"""OutputFormat -> suffix of its data files, before .gz."""


@dataclass(frozen=True, slots=True)
class ManifestSummary:
    """The members of manifest-summary.json that readers need. `document`: the whole file."""

    document: dict[str, Any]

    @property
    def is_incremental(self) -> bool:
        """True if it describes a window of changes. Without an exportType it is a full export."""
        return self.document.get("exportType", "FULL_EXPORT") == "INCREMENTAL_EXPORT"

    @property
    def items(self) -> int | None:
        """The number of items or changes in all data files, or None if absent."""
        count = self.document.get("itemCount")
        return count if isinstance(count, int) else None

    @property
    def table_arn(self) -> str:
        """The ARN of the exported table: `tableArn`, or the beginning of `exportArn`. "" if both are absent."""
        return str(self.document.get("tableArn") or "") or _table_of(self.document.get("exportArn"))

    @property
    def table_name(self) -> str:
        return self.table_arn.rpartition("table/")[2]

    def other_table(self, other: ManifestSummary) -> str | None:
        """Return the difference if another export is that of another table. Absent members are not compared.

        A table that was deleted and created again has the same ARN and another tableId.
        """
        for name, own, others in (
            ("tableArn", self.table_arn, other.table_arn),
            ("tableId", self.document.get("tableId"), other.document.get("tableId")),
        ):
            if own and others and own != others:
                return f"{name} {others}, not {own}"
        return None

    def moment(self, name: str) -> datetime | None:
        """Return one of its times. Raises UnreadableFile."""
        text = self.document.get(name)
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(str(text))
        except ValueError:
            raise UnreadableFile(f"{name} is not a time: {text}") from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class ManifestEntry(NamedTuple):
    """A line of manifest-files.json. `md5` is in base64, None if absent."""

    key: str
    items: int | None
    md5: str | None


def read_summary(data: bytes) -> ManifestSummary:
    """Parse the summary. Raises UnreadableFile."""
    summary = ManifestSummary(json_object(data))
    exported = _table_of(summary.document.get("exportArn"))
    if exported and exported != summary.table_arn:
        raise UnreadableFile(f"exportArn is of {exported}, but tableArn is {summary.table_arn}")
    return summary


def _table_of(export_arn: object) -> str:
    table_arn, export, _ = str(export_arn or "").partition("/export/")
    return table_arn if export else ""


def read_files(lines: Iterable[bytes]) -> Iterator[ManifestEntry]:
    """Yield the data files that manifest-files.json lists. Raises UnreadableFile, with the line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json_object(line)
            key = entry.get("dataFileS3Key")
            if not isinstance(key, str) or not key:
                raise UnreadableFile("no dataFileS3Key")
        except UnreadableFile as error:
            raise UnreadableFile(f"line {number}: {error}") from None
        items = entry.get("itemCount")
        yield ManifestEntry(key, items if isinstance(items, int) else None, entry.get("md5Checksum") or None)


def places_of(key: str, summary: ManifestSummary) -> list[str]:
    """Return the possible locations of an object of an export, the likeliest first.

    A location is relative to the bucket's root, to the folder of the summary, or to any folder between them.
    """
    places = [key]
    prefix = str(summary.document.get("s3Prefix") or "").strip("/")
    if prefix and key.startswith(prefix + "/"):
        places.append(key[len(prefix) + 1 :])
    at = key.rfind(FOLDER + "/")
    if at > 0:
        places.append(key[at:])
    return [
        place
        for place in dict.fromkeys(places)
        if ".." not in PurePosixPath(place).parts and place[:1] != "/"
    ]


# Writing


class ExportWindow(NamedTuple):
    """The window of an incremental export, without its end. `view`: NEW_IMAGE or NEW_AND_OLD_IMAGES."""

    from_ms: int
    to_ms: int
    view: str


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """The contents of an export's summary. Only an incremental export has a `window`."""

    export_arn: str
    table_arn: str
    table_id: str
    started_at_ms: int
    ended_at_ms: int
    exported_at_ms: int
    bucket: str
    prefix: str
    output_format: str
    items: int
    billed_bytes: int
    encryption: str = "AES256"
    encryption_key: str | None = None
    window: ExportWindow | None = None

    def summary(self) -> bytes:
        """Return manifest-summary.json."""
        folder = folder_of(self.prefix, self.export_arn.rpartition("/")[2])
        window = self.window
        moments: dict[str, Any] = {"exportTime": time_text(self.exported_at_ms)}
        kind: dict[str, Any] = {}
        if window is not None:
            moments = {"exportFromTime": time_text(window.from_ms), "exportToTime": time_text(window.to_ms)}
            kind = {"outputView": window.view, "exportType": "INCREMENTAL_EXPORT"}
        return orjson.dumps(
            {
                "version": FULL_VERSION if window is None else INCREMENTAL_VERSION,
                "exportArn": self.export_arn,
                "startTime": time_text(self.started_at_ms),
                "endTime": time_text(self.ended_at_ms),
                "tableArn": self.table_arn,
                "tableId": self.table_id,
                **moments,
                "s3Bucket": self.bucket,
                "s3Prefix": self.prefix or None,
                "s3SseAlgorithm": self.encryption,
                "s3SseKmsKeyId": self.encryption_key,
                "manifestFilesS3Key": folder + FILES,
                "billedSizeBytes": self.billed_bytes,
                "itemCount": self.items,
                "outputFormat": self.output_format,
                **kind,
            }
        )


def folder_of(prefix: str, identifier: str) -> str:
    """Return the folder of an export: a key that ends in a slash."""
    return (f"{prefix}/" if prefix else "") + f"{FOLDER}/{identifier}/"


def data_folder_of(prefix: str, identifier: str, is_incremental: bool = False) -> str:
    """Return the folder of the data files.

    Incremental exports of one prefix share a folder (developer guide, "DynamoDB table export output format").
    """
    if is_incremental:
        return (f"{prefix}/" if prefix else "") + f"{FOLDER}/data/"
    return folder_of(prefix, identifier) + "data/"


def file_line(key: str, items: int, md5: bytes, etag: str = "") -> bytes:
    """Return a line of manifest-files.json. The default ETag is that of an upload of one part, as S3 computes it."""
    etag = etag or hashlib.md5(md5, usedforsecurity=False).hexdigest() + "-1"
    checksum = base64.b64encode(md5).decode()
    entry = {"itemCount": items, "md5Checksum": checksum, "etag": etag, "dataFileS3Key": key}
    return orjson.dumps(entry) + b"\n"


def md5_text(data: bytes) -> bytes:
    """Return the contents of the .md5 file of a manifest."""
    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest())


def export_id(at_ms: int, random: bytes) -> str:
    """Return the last part of an export's ARN, which is also the name of its folder. `random`: four bytes."""
    return f"{at_ms:014}-{random.hex()}"


def data_file_name(random: bytes, output_format: str) -> str:
    """Return the name of a data file: 26 lower-case letters and digits. `random`: 16 bytes."""
    return base64.b32encode(random).decode()[:26].lower() + f".{OUTPUT_FORMATS[output_format]}.gz"


def time_text(at_ms: int) -> str:
    """Return a time in the format of manifests."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# Data files


FILE_ITEMS = 100_000
FILE_BYTES = 64 << 20
"""A data file ends after this many items or bytes of lines, whichever comes first."""


class ByteSink(Protocol):
    """A target of written bytes."""

    def write(self, data: bytes, /) -> object: ...

    def flush(self) -> None: ...


class DataFileWriter:
    """A writer of gzip data files. The same lines give the same bytes."""

    def __init__(self, target: ByteSink) -> None:
        self._hashing = _Hashing(target)
        self._packed = gzip.GzipFile("", "wb", 6, cast(BinaryIO, self._hashing), mtime=0)
        self._bytes = 0
        self.items = 0

    @property
    def is_full(self) -> bool:
        """True if the next line belongs into another file."""
        return self.items >= FILE_ITEMS or self._bytes >= FILE_BYTES

    def add(self, line: bytes) -> None:
        self._packed.write(line)
        self._bytes += len(line)
        self.items += 1

    def finish(self) -> bytes:
        """Write the end of the file, and return the MD5 of the whole. The target stays open."""
        self._packed.close()
        return self._hashing.md5.digest()


class _Hashing:
    """A target that computes the MD5 of the bytes written to it."""

    def __init__(self, target: ByteSink) -> None:
        self._target = target
        self.md5 = hashlib.md5(usedforsecurity=False)

    def write(self, data: bytes) -> object:
        self.md5.update(data)
        return self._target.write(data)

    def flush(self) -> None:
        self._target.flush()
