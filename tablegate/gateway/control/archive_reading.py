"""Bounded reading of snapshot files: their tar archive, and their manifest one value at a time.

A file of 200 KB can claim 200 MB, so neither the manifest nor the header of a member is held in memory as a whole.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import json
import re
import tarfile
from collections.abc import Callable, Generator, Iterator
from typing import IO, Any, BinaryIO, cast

import orjson

from tablegate.gateway.model.values.row_lines import UnreadableFile

MANIFEST = "snapshot.json"
_TABLES = "tables"
MOST_TABLES = 100_000
MOST_MANIFEST_BYTES = 256 << 20
VALUE_CHARACTERS = 2 << 20
"""Maximum length of a value of the manifest: the description of one table, or the list of all namespaces."""
_MOST_MEMBERS = 100
_PIECE = 1 << 16
_BETWEEN_BYTES = 1 << 16  # headers of a member, and what tarfile reads in advance
_REST_BYTES = 1 << 20  # padding after the last member
_SPACE = re.compile(r"[ \t\r\n]*")
_CUT_CHARACTERS = 2  # the end of a number, as in 1e+5, that is no number alone
_JSON = json.JSONDecoder()
OpenFile = Callable[[], BinaryIO]
"""A function that opens the snapshot file at its beginning."""


class _LimitedFile:
    """A file of which at most `left_bytes` more can be read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.left_bytes = _BETWEEN_BYTES

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.left_bytes -= len(data)
        if self.left_bytes < 0:
            raise UnreadableFile("the header of a file, or the data after the last file, are too long")
        return data


class Members:
    """The files of a snapshot file in order: first the manifest, then the rows of each table."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = _LimitedFile(file)
        # It has no resources of its own: the file is closed by `opened`.
        self._archive = tarfile.open(  # noqa: SIM115
            fileobj=cast(IO[bytes], self._file), mode="r|"
        )
        self.manifest = self.next(MANIFEST)

    def next(self, name: str) -> IO[bytes]:
        """Return the next file, after the previous one was read to its end. Raises UnreadableFile for another name."""
        member = self._next()
        if member is None or member.name != name:
            raise UnreadableFile(f"{name} is missing")
        if name == MANIFEST and member.size > MOST_MANIFEST_BYTES:
            raise UnreadableFile(f"{name} is too long: it has more than {MOST_MANIFEST_BYTES:,} bytes")
        found = self._archive.extractfile(member)
        if found is None:
            raise UnreadableFile(f"{name} is not a file")
        self._file.left_bytes += member.size
        return found

    def skip_manifest(self) -> None:
        """Read the manifest to its end, as `next` requires."""
        while self.manifest.read(_PIECE):
            pass

    def end(self) -> None:
        """Read to the end, where gzip verifies its checksum. Raises UnreadableFile if there are more files."""
        member = self._next()
        if member is not None:
            raise UnreadableFile(f"{member.name[:255]} is not in {MANIFEST}")
        self._file.left_bytes = _REST_BYTES
        while self._file.read(_PIECE):
            pass

    def _next(self) -> tarfile.TarInfo | None:
        self._file.left_bytes = _BETWEEN_BYTES
        return self._archive.next()


@contextlib.contextmanager
def opened(open_file: OpenFile) -> Iterator[Members]:
    """Open a snapshot file at its manifest. Raises UnreadableFile, and the errors of gzip and tarfile."""
    with open_file() as file, gzip.open(file) as inflated:
        yield Members(cast(IO[bytes], inflated))


def facts_of(open_file: OpenFile) -> dict[str, Any]:
    """Return the members of a manifest, with the number of its tables as `tables`. Raises UnreadableFile."""
    with opened(open_file) as members:
        return {
            name: sum(1 for _ in value) if name == _TABLES else value
            for name, value in _values_of(members.manifest)
        }


def tables_of(open_file: OpenFile) -> Generator[Any, None, None]:
    """Yield the descriptions of the tables of a manifest. Raises UnreadableFile."""
    with opened(open_file) as members:
        for name, value in _values_of(members.manifest):
            if name == _TABLES:
                yield from value


def _values_of(file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """Yield the members of a manifest. Its tables are an iterator, which must be read to its end."""
    text = _JsonText(file)
    names: set[str] = set()
    text.expect("{")
    while True:
        name = text.value()
        if not isinstance(name, str) or name in names or len(names) == _MOST_MEMBERS:
            raise UnreadableFile(f"{MANIFEST} has a repeated member, or more than {_MOST_MEMBERS}")
        names.add(name)
        text.expect(":")
        yield name, (text.elements() if name == _TABLES else text.value())
        if not text.takes(","):
            break
    text.expect("}")
    text.expect("")


class _JsonText:
    """A JSON text that is parsed one value at a time."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text, self._at = "", 0

    def takes(self, mark: str) -> bool:
        """Return True if the next character is this one, which is read then. "" is the end."""
        while True:
            blank = _SPACE.match(self._text, self._at)
            self._at = blank.end() if blank else self._at
            if self._at < len(self._text) or not self._read_more():
                break
        found = self._text[self._at : self._at + 1] == mark
        self._at += found
        return found

    def expect(self, mark: str) -> None:
        if not self.takes(mark):
            found = self._text[self._at : self._at + 20]
            raise UnreadableFile(f"{MANIFEST} is damaged: it has {found!r} in place of {mark or 'its end'!r}")

    def elements(self) -> Iterator[Any]:
        """Yield the elements of a list."""
        self.expect("[")
        count = 0
        while not self.takes("]"):
            if count:
                self.expect(",")
            count += 1
            if count > MOST_TABLES:
                raise UnreadableFile(f"{MANIFEST} has more than {MOST_TABLES:,} tables")
            yield self.value()

    def value(self) -> Any:
        """Parse the next value, and read as much of the text as that needs."""
        self.takes("\0")  # never found: it skips the space before the value
        while True:
            try:
                _, end = _JSON.raw_decode(self._text, self._at)
            except RecursionError:
                raise UnreadableFile(f"{MANIFEST} is nested too deep") from None
            except ValueError:
                end = len(self._text)
            if end + _CUT_CHARACTERS < len(self._text):
                break
            if len(self._text) - self._at >= VALUE_CHARACTERS:
                raise UnreadableFile(
                    f"a value of {MANIFEST} is too long: it has more than {VALUE_CHARACTERS:,} characters"
                )
            if not self._read_more():
                break
        start, self._at = self._at, end
        return orjson.loads(self._text[start:end])

    def _read_more(self) -> bool:
        left = len(self._text) - self._at
        data = self._file.read(max(_PIECE, min(left, VALUE_CHARACTERS - left)))
        more = self._decode(data, not data)
        if data:
            self._text, self._at = self._text[self._at :] + more, 0
        return bool(data)
