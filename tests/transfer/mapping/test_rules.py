"""The list of rules, and its table."""

from __future__ import annotations

import re
import subprocess
import sys

from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.rules import RULES, Fidelity
from tests.support.running import ROOT


def test_rules_have_unique_names_and_descriptions() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES) == len(rules.BY_NAME)
    for rule in RULES:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
        assert rule.meaning.endswith((".", ")")), rule
        assert vars(rules)[rule.name.upper().replace("-", "_")] is rule


def test_fidelities_are_in_order() -> None:
    assert [each.severity for each in Fidelity] == [0, 1, 2, 3]
    assert [each.value for each in Fidelity] == ["lossless", "rendered", "lossy", "impossible"]


def test_the_table_of_the_document_is_generated() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "tablegate.transfer.mapping.rules"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    lines = printed.splitlines()
    assert lines[:2] == ["| rule | class | meaning |", "|---|---|---|"]
    assert len(lines) == 2 + len(RULES)
    for line, rule in zip(lines[2:], RULES, strict=True):
        assert line.startswith(f"| `{rule.name}` | {rule.fidelity.value} | ")
        assert len(re.findall(r"(?<!\\)\|", line)) == 4
    assert printed in (ROOT / "docs/migrate/mapping.md").read_text()
