"""Every finding of findings.toml is named by a test of DynamoDB, or declared there with a reason.

Tests outside this folder name theirs in capital letters in a docstring or comment."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.support.capabilities import needs

FOLDER = Path(__file__).parent
LISTED = tomllib.loads((FOLDER / "findings.toml").read_text())
NUMBERS = {document: text.split() for document, text in LISTED["numbers"].items()}
UNTESTED = LISTED["untested"]
# As "TABLE-107" in data, comments and docstrings of a test, or as table_107 in its name.
KINDS = "table|backup|import|export|globaltable|globaltablesettings|tablereplicaautoscaling"
NAMED = re.compile(rf"\b({KINDS.upper()})-(\d{{3}})\b|_({KINDS})_(\d{{3}})(?=[_(])")
TESTED = {
    "-".join(part for part in found if part).upper()
    for path in FOLDER.parent.rglob("test_*.py")
    for found in NAMED.findall(path.read_text())
}


def test_all_548_findings_are_listed_once():
    listed = [number for numbers in NUMBERS.values() for number in numbers]
    assert len(listed) == len(set(listed)) == 548
    assert UNTESTED.keys() == NUMBERS.keys()
    assert set(listed) >= TESTED


# Documents with findings that only the tests of global tables name.
OF_GLOBAL_TABLES = ("table-global-tables.md", "table-policy-kinesis-autoscaling.md", "table-replicas.md")


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(name, marks=needs("global_tables") if name in OF_GLOBAL_TABLES else ())
        for name in NUMBERS
    ],
)
def test_each_finding_is_tested_or_has_a_reason(document):
    untested = UNTESTED[document]
    assert all(untested.values())
    assert untested.keys() & TESTED == set()
    assert untested.keys() | TESTED >= set(NUMBERS[document]) >= untested.keys()
