"""Lint reports exactly what a copy would do. A table's contents have no effect in any output format."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.model.tables.tables import ExpiryRule, Rules
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import NULL, Kind, Value
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.linting import ATTRIBUTES, EXAMPLES, lint
from tablegate.transfer.mapping.mapping import Mapping, MappingOptions
from tablegate.transfer.mapping.rules import Fidelity
from tests.transfer.support.plain_endpoint import PlainEndpoint
from tests.transfer.support.tables import tables

SCHEMA = KeySchema((KeyColumn("pk", Kind.TEXT),))
ITEMS = Definition("Orders", Service.DYNAMODB, SCHEMA)


def text(data: str) -> Value:
    return Value(Kind.TEXT, data)


def row_of(**values: Value) -> Row:
    return Row(SCHEMA.key(values).position, Contents.of_values(values), 0)


@given(tables(), st.sampled_from(Service), st.booleans())
def test_lint_reports_equal_the_mapping(
    table: tuple[Definition, list[Row]], target: Service, escaped: bool
) -> None:
    definition, made = table
    options = MappingOptions(escaped)
    mapping = Mapping(definition, target, options=options)
    report = lint(PlainEndpoint(definition, made), target, options=options, workers=1)
    mapped = [mapping.map(row) for row in made]
    assert report.rows == len(made)
    assert report.rejected == sum(each.row is None for each in mapped)
    wanted = Counter(rule for each in mapped for rule in {finding.rule for finding in each.findings})
    assert {rule: told.rows for rule, told in report.by_rule.items() if told.rows} == wanted
    assert {rule for rule, told in report.by_rule.items() if told.definition} == {
        note.rule for note in mapping.notes
    }


def test_examples_and_attributes_are_few() -> None:
    made = [row_of(pk=text(f"{at}"), **{f"a{at}-": text(""), "b-": text(""), "n-": NULL}) for at in range(50)]
    report = lint(PlainEndpoint(ITEMS, made), Service.AZURE_TABLE)
    escaped = report.by_rule[rules.NAME_ESCAPED]
    assert escaped.rows == 50
    assert len({*escaped.examples}) == EXAMPLES
    assert len(escaped.named) == ATTRIBUTES
    assert escaped.named[0] == "b-"
    assert escaped.attributes["b-"] == 50
    assert report.by_rule[rules.NULL_ABSENT].attributes == {"n-": 50}


def test_a_sample_has_the_requested_number_of_rows() -> None:
    source = PlainEndpoint(ITEMS, [row_of(pk=text(f"{at}"), a=NULL) for at in range(500)])
    assert lint(source, Service.AZURE_TABLE, sample=20).rows == 20
    assert lint(source, Service.AZURE_TABLE, sample=501).rows == 500
    assert "a sample" in lint(source, Service.AZURE_TABLE, sample=20).text()


LOSSY = row_of(pk=text("a"), n=NULL)
RENDERED = row_of(pk=text("b"), doc=Value(Kind.LIST, ()))
IMPOSSIBLE = row_of(pk=text("c/d"))


@pytest.mark.parametrize(
    ("made", "statuses"),
    [
        ([], (0, 0, 0, 0)),
        ([RENDERED], (0, 1, 0, 0)),
        ([LOSSY], (0, 1, 1, 0)),
        ([IMPOSSIBLE], (0, 1, 1, 1)),
    ],
)
def test_exit_status(made: list[Row], statuses: tuple[int, ...]) -> None:
    report = lint(PlainEndpoint(ITEMS, made), Service.AZURE_TABLE)
    del report.by_rule[rules.KEY_RENAMED]  # of the table itself
    classes = (None, Fidelity.RENDERED, Fidelity.LOSSY, Fidelity.IMPOSSIBLE)
    assert tuple(report.status(fail_on) for fail_on in classes) == statuses
    names = {rule.name for rule in report.by_rule}
    assert not any(report.status(fail_on, names) for fail_on in classes)
    with pytest.raises(ValueError, match="there is no rule 'null'"):
        report.status(Fidelity.LOSSY, {"null"})


def test_findings_name_the_columns_of_the_source() -> None:
    report = lint(PlainEndpoint(ITEMS, [IMPOSSIBLE]), Service.AZURE_TABLE)
    assert report.by_rule[rules.KEY_FORBIDDEN].named == ["pk"]
    assert report.by_rule[rules.KEY_RENAMED].counted == "the table"
    assert report.by_rule[rules.KEY_FORBIDDEN].counted == "1 rows"


def test_expired_rows_are_counted_apart() -> None:
    definition = replace(ITEMS, rules=Rules(expiry=ExpiryRule("until")))
    old = row_of(pk=text("a"), until=Value(Kind.DECIMAL, 1_700_000_000))
    old = Row(old.position, old.contents, 17_000_000_000_000_000)
    new = row_of(pk=text("b"), until=Value(Kind.DECIMAL, 9_700_000_000))
    report = lint(PlainEndpoint(definition, [old, new]), Service.DYNAMODB)
    assert report.by_rule[rules.ROW_EXPIRED].examples == [("a", "")]
    assert report.by_rule[rules.ROW_EXPIRED].rows == 1


NASTY = "<script>alert(1)</script>\x1b[31m&'\""


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags[tag] += 1

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_contents_do_nothing_to_a_page_or_a_terminal() -> None:
    source = PlainEndpoint(ITEMS, [row_of(pk=text(NASTY), **{NASTY: NULL, NASTY + "!": text("")})])
    source.shown = "memory:<b>"
    report = lint(source, Service.AZURE_TABLE)
    parser = _Tags()
    parser.feed(report.html())
    assert not parser.tags.keys() & {"script", "b", "img"}
    assert parser.tags["tr"] == 1 + len(report.rules)
    assert any("<script>" in each for each in parser.texts)
    terminal = Terminal()
    report.print(terminal)
    # Colours of the report remain. Escape sequences in the key have no effect.
    assert "\x1b[31m&" not in terminal.getvalue()
    assert "name-escaped" in terminal.getvalue()
    assert "\x1b" not in report.text()
    [told] = [each for each in json.loads(report.json())["rules"] if each["rule"] == "null-absent"]
    assert told["examples"] == [[NASTY, ""]]
    assert (told["class"], told["rows"], told["attributes"]) == ("lossy", 1, {NASTY: 1})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_report_to_a_file_has_no_table() -> None:
    file = io.StringIO()
    report = lint(PlainEndpoint(ITEMS, [LOSSY]), Service.AZURE_TABLE)
    report.print(file)
    assert file.getvalue() == report.text()
    assert "lossy      null-absent" in file.getvalue()
    assert (
        "1 rows checked, nothing would change" in lint(PlainEndpoint(ITEMS, [LOSSY]), Service.DYNAMODB).text()
    )
    assert "the source has no rows" in lint(PlainEndpoint(ITEMS, []), Service.DYNAMODB).text()
