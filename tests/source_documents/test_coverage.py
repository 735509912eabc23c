"""Every sentence of the source documents has a row in coverage.toml, and every row names a test or a reason."""

from __future__ import annotations

import hashlib
import os
import tomllib
from pathlib import Path

import pytest

from tests.source_documents import coverage
from tests.source_documents.coverage import OUTLINE, Statement, outline, read_coverage, read_outlines

# The folder of the source documents. They are texts of other authors and no part of the project. On the build machine
# they are beside it.
_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "seeds"
DOCUMENTS = os.environ.get("TABLEGATE_TEST_SOURCE_DOCUMENTS") or (str(_BESIDE) if _BESIDE.is_dir() else "")


def test_every_sentence_of_a_document_has_a_row():
    assert coverage.not_covered(read_coverage(), read_outlines()) == []


def test_every_named_test_exists():
    assert coverage.unknown_tests(read_coverage()) == []


def test_every_test_of_the_documents_stands_in_a_row():
    assert coverage.unnamed_tests(read_coverage()) == []


def test_no_statement_is_listed_twice():
    assert coverage.twice(read_coverage()) == []


def test_rows_are_in_order():
    assert coverage.out_of_order(read_coverage()) == []


@pytest.mark.parametrize(
    "document", ["azure-table-may-2009", "dynamodb-data-model", "dynamodb-working-with-items"]
)
def test_a_document_that_is_done_has_rows(document):
    assert any(row.document == document for row in read_coverage())


@pytest.mark.skipif(
    not DOCUMENTS,
    reason="the source documents are not part of this repository; TABLEGATE_TEST_SOURCE_DOCUMENTS says where",
)
def test_the_outline_is_that_of_the_documents():
    told = tomllib.loads(OUTLINE.read_text())
    assert {path.stem for path in Path(DOCUMENTS).glob("*.txt")} == told.keys()
    for document, lines in read_outlines().items():
        content = (Path(DOCUMENTS) / f"{document}.txt").read_bytes()
        assert hashlib.sha256(content).hexdigest() == told[document]["sha256"]
        assert outline(content.decode()) == lines


# The checker itself


def row(line: int = 2, **more) -> Statement:
    given = {
        "document": "document",
        "first": line,
        "last": line,
        "sentences": (),
        "gist": "what it says",
        "tests": (),
    }
    return Statement(**{**given, **more})


OUTLINES = {"document": {2: 1, 4: 3}}


def test_a_line_without_a_row_is_found():
    assert coverage.not_covered([row(2)], OUTLINES) == ["document line 4: no row for sentence 1, 2, 3"]
    assert coverage.not_covered([row(2, last=4)], OUTLINES) == []


def test_a_sentence_without_a_row_is_found():
    rows = [row(2), row(4, sentences=(1, 3))]
    assert coverage.not_covered(rows, OUTLINES) == ["document line 4: no row for sentence 2"]


def test_a_row_of_no_document_line_or_sentence_is_found():
    rows = [row(2, last=4), row(4, sentences=(4,)), row(document="other")]
    assert coverage.not_covered(rows, OUTLINES) == [
        "other line 2: there is no such document",
        "document line 4: it has no sentence 4",
    ]


def test_a_document_without_any_row_may_still_come():
    assert coverage.not_covered([row(2, last=4)], {**OUTLINES, "later": {1: 1}}) == []


def test_a_test_that_is_not_there_is_found():
    here = "tests/source_documents/test_coverage.py::"
    known, unknown = here + "test_rows_are_in_order", here + "test_nothing"
    assert coverage.unknown_tests(
        [row(tests=(known, unknown, "tests/none.py::test_a", known + "[sqlite]"))]
    ) == [
        "tests/none.py::test_a",
        unknown,
    ]


def test_a_test_that_stands_in_no_row_is_found():
    named = {test for one in read_coverage() for test in one.tests}
    left_out = "tests/source_documents/test_azure_table_may_2009.py::test_entities_have_all_types"
    assert coverage.unnamed_tests([row(tests=tuple(named - {left_out}))]) == [left_out]


def test_rows_in_disorder_and_doubles_are_found():
    assert coverage.out_of_order([row(4), row(2)]) == ["document line 2 is out of order"]
    assert coverage.twice([row(2), row(2)]) == ["document line 2: twice: what it says"]
    assert coverage.twice([row(2, tests=("a", "a"))]) == ["document line 2: a test is named twice"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"tests": ["a"], "not_server_matter": "why"},
        {"changed": "what", "not_server_matter": "why"},
        {"tests": []},
        {"not_server_matter": ""},
        {"tests": ["a"], "gist": " "},
        {"tests": ["a"], "comment": "x"},
        {"tests": ["a"], "line": [2, 4], "sentences": [1]},
    ],
)
def test_a_row_has_one_fate_and_says_something(given):
    with pytest.raises(ValueError, match="document line"):
        coverage._statement({"document": "document", "line": 2, "gist": "gist", **given})


def test_a_change_may_have_tests():
    made = coverage._statement({"document": "s", "line": 2, "gist": "g", "changed": "what", "tests": ["a"]})
    assert made.tests == ("a",)


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("", 0),
        ("Read Consistency", 0),
        ('   Title = "Book 101 Title"', 0),
        ("For more information, see Data Types.", 0),
        ("For information about these tables and data, see Loading Data.", 0),
        ("• Set types", 1),
        ("Short.", 1),
        ("One thing. (Another one.) And a third", 3),
        ("Sent again. and it goes on. For more information, see there. Then more", 2),
        ("A line of more than eight words that has no stop at its end", 1),
    ],
)
def test_headings_examples_and_pointers_are_no_sentences(line, count):
    assert len(coverage.sentences_of(line)) == count
