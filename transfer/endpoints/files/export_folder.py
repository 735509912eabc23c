"""The folder of one export to S3: its manifests, where its data files are, and their lines."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from tablegate.adapters.dynamodb.export_files import manifests
from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile, compression_of, reading
from tablegate.adapters.dynamodb.export_files.lines import LineFormat, form_of
from tablegate.gateway.model.commands.table_commands import NewIndex, NewVectorIndex
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.transfer.endpoints.files.file_endpoint import LineReader
from tablegate.transfer.errors import BadFile, TableAbsent

_DESCRIPTIONS = ("table.json", "schema.json")  # ours, and dynamodump's
_FOLDERS_ABOVE = 8  # a prefix may have several parts


class ExportFolder:
    """An export that is there, whose manifests are whole. Raises TableAbsent, BadFile."""

    def __init__(self, path: Path) -> None:
        self.path = _summary_of(path)
        try:
            self.summary = manifests.read_summary(_checked(self.path))
            self.files = list(manifests.read_files(_checked(self._manifest_of_files()).splitlines()))
            known = [file.items for file in self.files if file.items is not None]
        except UnreadableFile as error:
            raise BadFile(f"{self.path.parent}: {error}") from None
        except FileNotFoundError as error:
            raise BadFile(f"{self.path}: {error.filename} is not there: the export is not whole") from None
        if (
            self.summary.items is not None
            and len(known) == len(self.files)
            and sum(known) != self.summary.items
        ):
            raise BadFile(f"{self.path} tells of {self.summary.items} items, its data files of {sum(known)}")

    def moment(self, name: str) -> datetime | None:
        """One of the times of the summary."""
        try:
            return self.summary.moment(name)
        except UnreadableFile as error:
            raise BadFile(f"{self.path}: {error}") from None

    @property
    def end(self) -> datetime:
        """The end of an incremental export's window."""
        return self.moment("exportToTime") or datetime.max.replace(tzinfo=UTC)

    def description(self) -> tuple[KeySchema, tuple[NewIndex, ...], tuple[NewVectorIndex, ...]] | None:
        """(key, indexes, vector indexes), if what DescribeTable told lies beside the export, or beside its folders."""
        for folder in self._folders():
            for name in _DESCRIPTIONS:
                if (folder / name).is_file():
                    # The control plane of DynamoDB, which reads it, is the largest part of the adapter.
                    from tablegate.transfer.endpoints.files.table_description import read_description

                    return read_description(folder / name)
            if (folder / manifests.FOLDER).is_dir():  # the bucket's root, or the prefix
                break
        return None

    def lines(self, key: str, checks_md5: bool) -> Iterator[tuple[LineReader, bytes, LineFormat]]:
        """The lines of a data file, with whose line it is and the form of all. Raises BadFile, also at its end if they were not
        as many as the manifest says, or not the same bytes."""
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
                raise BadFile(f"{path} has {count} items, where the manifest says {file.items}")
            # Which of the two it is, no document says.
            sums = {base64.b64encode(md5.digest()).decode() for md5 in (raw.md5, inflated_md5)}
            if checks_md5 and file.md5 is not None and file.md5 not in sums:
                raise BadFile(
                    f"{path} is not the file that was exported: its MD5 is another (?md5=ignore reads it anyway)"
                )

    def _manifest_of_files(self) -> Path:
        beside = self.path.with_name(manifests.FILES)
        key = self.summary.document.get("manifestFilesS3Key")
        return beside if beside.is_file() or not key else self._find(str(key))

    def _find(self, key: str) -> Path:
        """The file of an object. A copy of a bucket has it under its key; a folder that was moved, relative to its summary."""
        for place in manifests.places_of(key, self.summary):
            for folder in self._folders():
                if (folder / place).is_file():
                    return folder / place
        name = key.rpartition("/")[2]
        for folder in (self.path.parent, self.path.parent.parent):
            if (folder / "data" / name).is_file():
                return folder / "data" / name
        raise BadFile(f"{self.path.with_name(manifests.FILES)} names {key}, which is not there")

    def _folders(self) -> list[Path]:
        return list(self.path.absolute().parents)[:_FOLDERS_ABOVE]


class _HashingReader(io.BufferedReader):
    """A file that knows the MD5 of what was read from it."""

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
    """The one summary in a folder: its own, or that of the one export below."""
    if path.is_file():
        return path
    if not path.is_dir():
        raise TableAbsent(f"{path} is not there")
    own = path / manifests.SUMMARY
    if own.is_file():
        return own
    below = [
        *path.glob(f"*/{manifests.SUMMARY}"),
        *path.glob(f"{manifests.FOLDER}/*/{manifests.SUMMARY}"),
        *path.glob(f"*/{manifests.FOLDER}/*/{manifests.SUMMARY}"),
    ]
    if not below:
        raise BadFile(f"{path} has no {manifests.SUMMARY}: it is no export, or one that was never finished")
    if len(below) > 1:
        names = ", ".join(sorted(str(found.parent) for found in below)[:5])
        raise BadFile(f"{path} has {len(below)} exports: name one of them: {names}")
    return below[0]


def _checked(manifest: Path) -> bytes:
    """A manifest's bytes, which must have the MD5 that is kept beside it, if one is."""
    data = manifest.read_bytes()
    for ending in (".md5", ".checksum"):  # what the service writes, and what its documentation says
        kept = manifest.with_suffix(ending)
        if kept.is_file() and kept.read_bytes().strip() not in (b"", manifests.md5_text(data)):
            raise UnreadableFile(
                f"{manifest.name} does not have the MD5 that {kept.name} says: it is damaged, or was changed"
            )
    return data
