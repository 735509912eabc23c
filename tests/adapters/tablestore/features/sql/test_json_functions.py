"""JSON functions of SQLQuery.

Sources: "JSON functions" of Tablestore's SQL, with its examples, and "JSON Path Syntax" of the MySQL 5.7 reference manual.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.adapters.tablestore.features.sql import json_documents
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.support.clock import Clock
from tests.support.sql_client import sql
from tests.support.tables import each_row

DOCUMENT = {"a": 1, "f": [1, 2, 3], "c": {"d": 4}, "a fish": "shark", "t": None, "é": True, "x": 1.5}


@pytest.fixture(scope="module")
def documents() -> Iterator[TableStoreService]:
    """A table of three rows: a document, a list, and a text that is no JSON."""
    with TableStoreService.opened(Clock()) as service:
        service.create("docs", ("pk", messages.INTEGER))
        for number, text in enumerate([json.dumps(DOCUMENT), '[3, {"a": [5, 6], "b": 10}, [99, 100]]', "no"]):
            service.put({"pk": number}, {"doc": text}, table="docs")
        sql(service, "create table docs (pk bigint primary key, doc mediumtext)")
        yield service


def text_at(service: TableStoreService, path: str, row: int = 0) -> str | None:
    [[found]] = sql(service, f"select doc->>'{path}' from docs where pk = {row}").rows
    return found


@each_row(
    "path, expected",
    [
        ("$.a", "1"), ("$.c", '{"d": 4}'), ("$.c.d", "4"), ("$.f[1]", "2"), ('$."a fish"', "shark"), ("$.t", "null"),
        ("$.é", "true"), ("$.x", "1.5"), ("$.none", None), ("$.a.b", None), ("$.f[3]", None), ("$.f.a", None),
        ("$.a[0]", "1"), ("$.a[1]", None), ("$.f[*]", "[1, 2, 3]"), ("$.c.*", "[4]"), ("$**.d", "[4]"),
        ("$.none.*", None), (" $ . c . d ", "4"),
    ],
)  # fmt: skip
def test_paths(documents: TableStoreService, path: str, expected: str | None) -> None:
    assert text_at(documents, path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [("$[0]", "3"), ("$[1]", '{"a": [5, 6], "b": 10}'), ("$[1].a", "[5, 6]"), ("$[1].a[1]", "6"), ("$[2][0]", "99"),
     ("$[3]", None), ("$", '[3, {"a": [5, 6], "b": 10}, [99, 100]]')],
)  # fmt: skip
def test_paths_of_an_array(documents: TableStoreService, path: str, expected: str | None) -> None:
    assert text_at(documents, path, row=1) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("json_unquote(json_extract(doc, '$.a'))", "1"), ("json_unquote(doc->'$.a')", "1"),
        ("json_unquote(json_extract(doc, '$.a', '$.c.d'))", "[1, 4]"), ("json_unquote(json_extract(doc, '$.a', '$.z'))", "[1]"),
        ("json_unquote(json_extract(null, '$.a'))", None), ("json_unquote(json_extract(doc, null))", None),
        ("json_unquote('\"a\\\\tb\"')", "a\tb"), ("json_unquote('abc')", "abc"), ("json_unquote(null)", None),
        ("""json_unquote(json_extract('{"bb": 1, "a": 2, "a": 3}', '$'))""", '{"a": 2, "bb": 1}'),
        ("doc->>'$.a' + 1", 2.0), ("upper(doc->>'$.\"a fish\"')", "SHARK"), ("max(doc->>'$.a')", "1"),
    ],
)  # fmt: skip
def test_functions(documents: TableStoreService, expression: str, expected: Any) -> None:
    [[found]] = sql(documents, f"select {expression} from docs where pk = 0").rows
    assert found == expected


def test_json_functions_work_in_conditions_and_name_columns(documents: TableStoreService) -> None:
    answer = sql(documents, "select doc->>'$.a', pk from docs where pk < 2 and doc->>'$[1].b' = 10")
    assert (answer.names, answer.rows) == (["doc->>'$.a'", "pk"], [(None, 1)])


@each_row(
    "expression",
    ["json_extract(doc, '$.a')", "doc->'$.a'", "json_extract(doc, '$.a') = 1", "json_unquote(upper(json_extract(doc, '$.a')))",
     "json_unquote(json_extract(doc))", "json_unquote()", "doc->>'a'", "doc->>'$.'", "doc->>'$[a]'", "doc->>'$[-1]'",
     "doc->>'$**'", "doc->>'$.a.'", "doc->>''", "doc->>'$.\"\\\\u12\"'",
     *(f"json_unquote(json_extract('{text}', '$'))" for text in
       ("", "no", "{", "[1,]", "NaN", "1e999", "-Infinity", "1" * 401, '"\\\\ud800"', '{"\\\\ud800": 1}', "1 2")),
     "json_unquote('\"a')||json_unquote('\"\\\\x\"')", "json_unquote('\"\\\\ud800\"')"],
)  # fmt: skip
def test_refusals(documents: TableStoreService, expression: str) -> None:
    with pytest.raises(Refused) as refused:
        sql(documents, f"select {expression} from docs where pk = 0")
    assert (refused.value.status, refused.value.code) == (400, "OTSParameterInvalid")


def test_a_text_that_is_no_document(documents: TableStoreService) -> None:
    with pytest.raises(Refused, match="Invalid JSON text"):
        text_at(documents, "$.a", row=2)


# Limits, on both sides


def test_a_document_has_a_maximum_depth() -> None:
    most = limits.SQL_JSON_DEPTH_MAX
    assert json_documents.extract("[" * most + "]" * most, "$[0]") == "[" * (most - 1) + "]" * (most - 1)
    for depth in (most + 1, 100_000 - 1):
        with pytest.raises(Exception, match="maximum depth"):
            json_documents.extract("[" * depth + "]" * depth, "$")


def test_the_values_of_a_document() -> None:
    most = limits.SQL_JSON_VALUES_MAX
    assert json_documents.extract(f"[{'1,' * (most - 2)}1]", "$[0]") == "1"
    with pytest.raises(Exception, match="more than"):
        json_documents.extract(f"[{'1,' * (most - 1)}1]", "$[0]")


def test_the_steps_of_a_path() -> None:
    most = limits.SQL_JSON_STEPS_MAX
    assert json_documents.extract("1", "$" + "[0]" * most) == "1"
    with pytest.raises(Exception, match="Invalid JSON path"):
        json_documents.extract("1", "$" + "[0]" * (most + 1))


def test_the_values_that_paths_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """`$.a` passes the document and its member, `$.a[*]` the same and again the member, then three elements."""
    monkeypatch.setattr(limits, "SQL_JSON_VISITS_MAX", 2 + 2 + 4)
    assert json_documents.extract('{"a": [1, 2, 3]}', "$.a", "$.a[*]") == "[[1, 2, 3], 1, 2, 3]"
    monkeypatch.setattr(limits, "SQL_JSON_VISITS_MAX", 2 + 2 + 3)
    with pytest.raises(Exception, match="too many values"):
        json_documents.extract('{"a": [1, 2, 3]}', "$.a", "$.a[*]")


# Random documents


class Documents:
    """A source of random documents and paths, with the plain evaluation of a path."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def document(self, depth: int = 3) -> Any:
        kind = self._random.choice(("object", "array", "value") if depth else ("value",))
        if kind == "value":
            return self._random.choice((None, True, 0, -7, 2.5, "", "x", "ü\"'"))
        inner = [self.document(depth - 1) for _ in range(self._random.randint(0, 3))]
        return (
            inner
            if kind == "array"
            else dict(zip(self._random.sample("abc", len(inner)), inner, strict=True))
        )

    def steps(self) -> list[str]:
        choices = (".a", ".b", ".c", "[0]", "[1]", ".*", "[*]", "**.a", "**[0]")
        return [self._random.choice(choices) for _ in range(self._random.randint(0, 3))]


def evaluated(value: Any, steps: list[str]) -> list[Any]:
    """Return the values at a path, one for each way to reach them."""
    if not steps:
        return [value]
    step, rest = steps[0], steps[1:]
    if step.startswith("**"):
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        own = evaluated(value, [step[2:], *rest])
        return [*own, *(found for each in inside for found in evaluated(each, steps))]
    if step in (".*", "[*]"):
        wanted = dict if step == ".*" else list
        inner = value if isinstance(value, wanted) else wanted()
        inside = inner.values() if isinstance(inner, dict) else inner
        return [found for each in inside for found in evaluated(each, rest)]
    if step.startswith("."):
        has_name = isinstance(value, dict) and step[1:] in value
        return evaluated(value[step[1:]], rest) if has_name else []
    at = int(step[1:-1])
    if not isinstance(value, list):
        return evaluated(value, rest) if at == 0 else []
    return evaluated(value[at], rest) if at < len(value) else []


def test_random_documents() -> None:
    """Values are compared without their order. A value that a path reaches in two ways is found once."""
    source, found_number = Documents(5), 0
    for _ in range(3_000):
        document, steps = source.document(), source.steps()
        expected = evaluated(document, steps)
        found = json_documents.extract(json.dumps(document), "$" + "".join(steps))
        if found is None:
            assert not expected, (document, steps)
            continue
        has_wildcard = any("*" in step for step in steps)
        values = json.loads(found) if has_wildcard else [json.loads(found)]
        texts, expected_texts = (
            [json.dumps(each, sort_keys=True) for each in those] for those in (values, expected)
        )
        if sum("**" in step for step in steps) > 1 or "**[0]" in steps:
            assert set(texts) == set(expected_texts), (document, steps)
        else:
            assert sorted(texts) == sorted(expected_texts), (document, steps)
        found_number += 1
    assert found_number > 1_000
