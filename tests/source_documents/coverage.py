"""Statements of the source documents, and the test or reason for each. Contains no dialect's rules.

The documents are texts of other authors and are not in the repository. Rows use these short names (`document`):

    azure-table-may-2009            "Windows Azure Table", Microsoft, May 2009
    dynamodb-data-model             "DynamoDB Data Model", Amazon DynamoDB Developer Guide, API version 2012-08-10, of 2016
    dynamodb-working-with-items     "Working with Items in DynamoDB", in that guide
    table-store-data-operations     "Data operations", Alibaba Cloud Table Store documentation, 3 August 2017
    table-store-stream-overview     "Stream: Overview", in that documentation, 27 March 2018

coverage.toml is an array of tables `[[statement]]`, sorted by document and line:

    document  the document's short name, which is its file name without .txt
    line      the line of the statement in the document, or [first, last]
    sentences (optional) the numbers of the sentences of that line, from 1. Default: all of them
    gist      the statement in our own words
    and one of
    tests               ids: "tests/source_documents/test_x.py::test_y" (permitted beside `changed`, too)
    changed             the current behaviour, and its source
    not_server_matter   the reason why no server can show or break it

outline.toml has the number of sentences of each line of each document, so that omissions show without the documents.
`python -m tests.source_documents.coverage FOLDER` generates it from FOLDER/*.txt.

Headings, pieces of examples and pointers to other pages count as no sentence. Rows can still cover them.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
COVERAGE = HERE / "coverage.toml"
OUTLINE = HERE / "outline.toml"

# The possible results for a statement.
FATES = ("tests", "changed", "not_server_matter")
_MEMBERS = {"document", "line", "sentences", "gist", *FATES}


@dataclass(frozen=True, slots=True)
class Statement:
    """A row of coverage.toml."""

    document: str
    first: int
    last: int
    sentences: tuple[int, ...]
    gist: str
    tests: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"{self.document} line {self.first}"


def read_coverage() -> list[Statement]:
    """The rows. Raises ValueError for one that is not of the form above."""
    return [_statement(row) for row in tomllib.loads(COVERAGE.read_text())["statement"]]


def _statement(row: dict) -> Statement:
    where = f"{row.get('document')} line {row.get('line')}"
    if row.keys() - _MEMBERS or not {"document", "line", "gist"} <= row.keys():
        raise ValueError(f"{where}: document, line and gist are needed; what else there is: {sorted(row)}")
    fates = [fate for fate in FATES if fate in row]
    if fates != ["changed"] and fates != ["tests", "changed"] and len(fates) != 1:
        raise ValueError(f"{where}: just one of {FATES}, or changed with tests")
    if not all(row[fate] for fate in fates) or not row["gist"].strip():
        raise ValueError(f"{where}: something is empty")
    lines = row["line"] if isinstance(row["line"], list) else [row["line"], row["line"]]
    sentences = tuple(row.get("sentences", ()))
    if sentences and lines[0] != lines[1]:
        raise ValueError(f"{where}: sentences are of one line")
    return Statement(row["document"], lines[0], lines[1], sentences, row["gist"], tuple(row.get("tests", ())))


# Outlines


def read_outlines() -> dict[str, dict[int, int]]:
    """Document -> line -> its number of sentences, for lines that have any."""
    read = tomllib.loads(OUTLINE.read_text())
    return {document: dict(part["sentences"]) for document, part in read.items()}


_END = re.compile(r'(?<=[.!?])[)"”]?\s+(?=[A-Z(“"])')
_POINTER = re.compile(r"(Also |also )?(For|See) [^,]*, see |See ")
_SHORT = 8  # words: a line as short as this, without a stop at its end, is a heading or a piece of an example


def outline(text: str) -> dict[int, int]:
    """Line -> number of its sentences, as statements have to account for them."""
    counted = {}
    for number, line in enumerate(text.splitlines(), 1):
        count = len(sentences_of(line))
        if count:
            counted[number] = count
    return counted


def sentences_of(line: str) -> list[str]:
    """The sentences of a line of a document: none of a heading or of what only points to another page."""
    line = line.strip()
    parts = _END.split(line) if line else []
    if (
        len(parts) == 1
        and len(line.split()) <= _SHORT
        and not line.startswith("•")
        and line[-1] not in ".:?!)"
    ):
        return []
    return [part for part in parts if not _POINTER.match(part)]


def write_outline(folder: Path) -> None:
    """outline.toml of all documents in a folder."""
    parts = [
        "# Of each document: the digest of the file, and [line, number of its sentences]. Written by coverage.py.\n"
    ]
    for path in sorted(folder.glob("*.txt")):
        content = path.read_bytes()
        pairs = ", ".join(f"[{line}, {count}]" for line, count in outline(content.decode()).items())
        digest = hashlib.sha256(content).hexdigest()
        parts.append(f'[{path.stem}]\nsha256 = "{digest}"\nsentences = [{pairs}]\n')
    OUTLINE.write_text("\n".join(parts))


# Errors of the rows


def out_of_order(rows: Sequence[Statement]) -> list[str]:
    """Return the rows that come after one of a later document or line."""
    pairs = pairwise(rows)
    return [
        f"{row.place} is out of order"
        for before, row in pairs
        if (row.document, row.first) < (before.document, before.first)
    ]


def twice(rows: Sequence[Statement]) -> list[str]:
    """Return rows with equal text for the same place, and tests that one row names twice."""
    same = Counter((row.document, row.first, row.gist) for row in rows)
    found = [
        f"{document} line {line}: twice: {gist}"
        for (document, line, gist), count in same.items()
        if count > 1
    ]
    return found + [
        f"{row.place}: a test is named twice" for row in rows if len(set(row.tests)) < len(row.tests)
    ]


def unknown_tests(rows: Sequence[Statement]) -> list[str]:
    """Ids of tests that do not exist."""
    named = sorted({test for row in rows for test in row.tests})
    return [test for test in named if not _exists(test)]


def unnamed_tests(rows: Sequence[Statement], folder: Path = HERE) -> list[str]:
    """Return ids of tests beside this file that are in no row, without those of the checker."""
    named = {test.partition("[")[0] for row in rows for test in row.tests}
    files = [f"{file.relative_to(ROOT)}" for file in sorted(folder.glob("test_*.py"))]
    ids = [f"{file}::{name}" for file in files for name in sorted(_tests_of(file))]
    return [test for test in ids if test not in named and "/test_coverage.py::" not in test]


def _exists(test: str) -> bool:
    file, _, name = test.partition("::")
    return (ROOT / file).is_file() and name.partition("[")[0] in _tests_of(file)


@lru_cache
def _tests_of(file: str) -> frozenset[str]:
    """The names of the tests in a file: of functions, and Class::method."""
    return frozenset(_named(ast.parse((ROOT / file).read_text()).body, ""))


def _named(body: Sequence[ast.stmt], prefix: str) -> Iterator[str]:
    for part in body:
        if isinstance(part, ast.ClassDef):
            yield from _named(part.body, f"{prefix}{part.name}::")
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.name.startswith("test"):
            yield prefix + part.name


def not_covered(rows: Sequence[Statement], outlines: dict[str, dict[int, int]]) -> list[str]:
    """Return the sentences without a row, for documents that have rows, and rows for missing lines."""
    found = [f"{row.place}: there is no such document" for row in rows if row.document not in outlines]
    for document in sorted({row.document for row in rows} & outlines.keys()):
        told: dict[int, set[int]] = {}
        for row in rows:
            if row.document == document:
                for line in range(row.first, row.last + 1):
                    count = outlines[document].get(line, 0)
                    told.setdefault(line, set()).update(row.sentences or range(1, count + 1))
        for line, count in outlines[document].items():
            missing = set(range(1, count + 1)) - told.get(line, set())
            if missing:
                found.append(
                    f"{document} line {line}: no row for sentence {', '.join(map(str, sorted(missing)))}"
                )
        for line, numbers in told.items():
            if numbers and max(numbers) > outlines[document].get(line, 0):
                found.append(f"{document} line {line}: it has no sentence {max(numbers)}")
    return found


if __name__ == "__main__":
    write_outline(Path(sys.argv[1]))
