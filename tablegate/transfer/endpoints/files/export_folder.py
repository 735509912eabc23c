"""The folder of one export to S3: manifests, data files and their lines."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from tablegate.adapters.dynamodb.export_files import manifests
from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile, compression_of, reading
from tablegate.adapters.dynamodb.export_files.line_formats import LineFormat, form_of
from tablegate.transfer.endpoints.files.file_endpoint import LineReader
from tablegate.transfer.errors import BadFile, TableAbsent

if TYPE_CHECKING:
    from tablegate.transfer.endpoints.files.table_description import TableDescription

_DESCRIPTIONS = ("table.json", "schema.json")  # of tablegate and of dynamodump
_FOLDERS_ABOVE = 8  # a prefix may have several parts


class ExportFolder:
    """An export with complete manifests. Raises TableAbsent, BadFile."""

    def __init__(self, path: Path) -> None:
        self.path = _summary_of(path)
        try:
            summary = _read_manifest(self.path)
            self.summary = manifests.read_summary(summary)
            files = _read_manifest(self._manifest_of_files())
            self.files = list(manifests.read_files(files.splitlines()))
            self.digest = hashlib.sha256(summary + files).hexdigest()[:32]
            counts = [file.items for file in self.files if file.items is not None]
        except UnreadableFile as error:
            raise BadFile(f"{self.path.parent}: {error}") from None
        except FileNotFoundError as error:
            raise BadFile(f"{self.path}: {error.filename} is missing: the export is incomplete") from None
        self._has_all_counts = len(counts) == len(self.files)
        if self._has_all_counts:
            self._require_total(sum(counts))

    def count_items(self) -> None:
        """Read all data files if only the summary has a count. Raises BadFile if it differs."""
        if not self._has_all_counts and self.summary.items is not None:
            self._require_total(sum(1 for file in self.files for _ in self.lines(file.key, checks_md5=False)))
            self._has_all_counts = True

    def _require_total(self, items: int) -> None:
        if self.summary.items not in (None, items):
            raise BadFile(
                f"{self.path} has a count of {self.summary.items} items, but its data files have {items}"
            )

    def moment(self, name: str) -> datetime | None:
        """Return one of the times in the summary."""
        try:
            return self.summary.moment(name)
        except UnreadableFile as error:
            raise BadFile(f"{self.path}: {error}") from None

    @property
    def end(self) -> datetime:
        """The end of an incremental export's window."""
        return self.moment("exportToTime") or datetime.max.replace(tzinfo=UTC)

    def description(self) -> TableDescription | None:
        """Return the description in a DescribeTable file beside the export or its folders, None if there is none."""
        for folder in self._folders():
            for name in _DESCRIPTIONS:
                if (folder / name).is_file():
                    # Imported here, because it loads the adapter's control plane, the largest part of it.
                    from tablegate.transfer.endpoints.files.table_description import read_description

                    return read_description(folder / name, self.summary.table_name)
            if (folder / manifests.FOLDER).is_dir():  # the bucket's root, or the prefix
                break
        return None

    def lines(self, key: str, checks_md5: bool) -> Iterator[tuple[LineReader, bytes, LineFormat]]:
        """Yield (reader, line, format) for each line of a data file.

        Raises BadFile, also at the end if the number of lines or the MD5 differs from the manifest.
        """
        file = next(file for file in self.files if file.key == key)
        path = self._find(key)
        with open(path, "rb") as stored:
            raw = _HashingReader(stored)
            head = raw.peek(4)
            lines = LineReader(path, reading(cast(BinaryIO, raw), compression_of(head)))
            inflated_md5 = hashlib.md5(usedforsecurity=False)
            form: LineFormat | None = None
            count = 0
            for line in lines:
                inflated_md5.update(line)
                if not line.strip():
                    continue
                count += 1
                try:
                    form = form_of(line) if form is None else form
                except UnreadableFile as error:
                    raise lines.bad(error) from None
                yield lines, line, form
            if file.items is not None and count != file.items:
                raise BadFile(f"{path} has {count} items, but the manifest has {file.items}")
            # It is not documented whether the MD5 is that of the stored or of the inflated bytes.
            sums = {base64.b64encode(md5.digest()).decode() for md5 in (raw.md5, inflated_md5)}
            if checks_md5 and file.md5 is not None and file.md5 not in sums:
                raise BadFile(
                    f"{path} was changed after the export: its MD5 differs from the manifest (?md5=ignore reads it anyway)"
                )

    def _manifest_of_files(self) -> Path:
        beside = self.path.with_name(manifests.FILES)
        key = self.summary.document.get("manifestFilesS3Key")
        return beside if beside.is_file() or not key else self._find(str(key))

    def _find(self, key: str) -> Path:
        """Return the path of an object: its key in a copy of the bucket, or relative to the summary in a moved folder."""
        for place in manifests.places_of(key, self.summary):
            for folder in self._folders():
                if (folder / place).is_file():
                    return folder / place
        name = key.rpartition("/")[2]
        for folder in (self.path.parent, self.path.parent.parent):
            if (folder / "data" / name).is_file():
                return folder / "data" / name
        raise BadFile(f"{self.path.with_name(manifests.FILES)} names {key}, which is missing")

    def _folders(self) -> list[Path]:
        return list(self.path.absolute().parents)[:_FOLDERS_ABOVE]


class _HashingReader(io.BufferedReader):
    """A file reader that computes the MD5 of the bytes read."""

    def __init__(self, stored: Any) -> None:
        super().__init__(stored)
        self.md5 = hashlib.md5(usedforsecurity=False)

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.md5.update(data)
        return data

    def readline(self, size: int | None = -1) -> bytes:
        line = super().readline(-1 if size is None else size)
        self.md5.update(line)
        return line


def _summary_of(path: Path) -> Path:
    """Return the one summary in a folder or in the one export below it."""
    if path.is_file():
        return path
    if not path.is_dir():
        raise TableAbsent(f"{path} does not exist")
    own = path / manifests.SUMMARY
    if own.is_file():
        return own
    below = [
        *path.glob(f"*/{manifests.SUMMARY}"),
        *path.glob(f"{manifests.FOLDER}/*/{manifests.SUMMARY}"),
        *path.glob(f"*/{manifests.FOLDER}/*/{manifests.SUMMARY}"),
    ]
    if not below:
        raise BadFile(
            f"{path} has no {manifests.SUMMARY}: it is not an export or was never finished. Name a folder of parts itself, such"
            f" as {path}/data. To read each of its folders as a table, add /*"
        )
    if len(below) > 1:
        names = ", ".join(sorted(str(summary.parent) for summary in below)[:5])
        raise BadFile(f"{path} has {len(below)} exports. Name one of them: {names}")
    return below[0]


def _read_manifest(manifest: Path) -> bytes:
    """Return a manifest's bytes. Its MD5 must be equal to the one stored beside it, if there is one."""
    data = manifest.read_bytes()
    for ending in (".md5", ".checksum"):  # as the service writes it, and as documented
        md5_file = manifest.with_suffix(ending)
        if md5_file.is_file() and md5_file.read_bytes().strip() not in (b"", manifests.md5_text(data)):
            raise UnreadableFile(
                f"{manifest.name} does not match the MD5 in {md5_file.name}: it is damaged or was changed"
            )
    return data
