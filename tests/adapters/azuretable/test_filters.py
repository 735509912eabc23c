"""$filter: its meaning, evaluated on rows, and rejected filters."""

from __future__ import annotations

import math
import time
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.azuretable import keys, queries
from tablegate.adapters.azuretable.values import view
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model.expressions.evaluation import matches
from tablegate.gateway.model.expressions.predicates import ALWAYS
from tablegate.gateway.model.expressions.ranges import narrow
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import FALSE, TRUE, Kind, Value, decimal, text
from tests.support.tables import each_row

NEW_YEAR = 630822816000000000
UNIX_NEW_YEAR = 9466848000000000
GUID = UUID("c9da6455-213d-42c9-9a79-3e9149a57833")

PROPERTIES: dict[str, Value] = {
    "PartitionKey": text("Berlin"),
    "RowKey": text("it's"),
    "small": Value(Kind.INT32, 5),
    "large": Value(Kind.INT64, 2**40),
    "ratio": Value(Kind.DOUBLE, 1.5),
    "yes": TRUE,
    "no": FALSE,
    "name": text("Ada"),
    "born": Value(Kind.DATETIME, NEW_YEAR),
    "id": Value(Kind.GUID, GUID),
    "data": Value(Kind.BYTES, b"\x01\xff"),
    "my-attr": decimal("7"),
    "a lot": decimal("12345678901234567890123456789"),
}


def row(schema: KeySchema = keys.OWN_SCHEMA, **more: Value) -> Row:
    properties = {**PROPERTIES, **more}
    key = schema.key(properties)
    return Row(key.position, Contents.of_values(properties), UNIX_NEW_YEAR)


def is_true(expression: str, schema: KeySchema = keys.OWN_SCHEMA, **more: Value) -> bool:
    return matches(queries.read_filter(expression, schema), row(schema, **more), view)


TRUE_OF_IT = [
    "",
    "   ",
    "small eq 5",
    "small eq 5L",
    "small eq 5.0",
    "5 eq small",
    "4 lt small",
    "small ne 6",
    "small gt -5",
    "small ge 5 and small le 5 and not (small lt 5)",
    "large eq 1099511627776L",
    "large gt 5",
    "ratio eq 1.5",
    "ratio eq 15e-1",
    "ratio gt 1",
    "ratio lt 2d",
    "ratio lt INF and ratio gt -INF",
    "INF gt ratio",
    "yes",
    "not no",
    "yes eq true",
    "no eq false",
    "no ne true",
    "yes and true",
    "(small eq 5) eq true",
    "(small eq 6) eq false",
    "(small eq 6) ne true",
    "name eq 'Ada'",
    "name ge 'Ada' and name lt 'Adb'",
    "name ne 'ada'",
    "RowKey eq 'it''s'",
    "PartitionKey eq 'Berlin' and RowKey gt 'it'",
    "born eq datetime'2000-01-01T00:00:00Z'",
    "born lt DateTime'2000-01-01T00:00:00.0000001Z'",
    "Timestamp eq datetime'2000-01-01T00:00:00Z'",
    "Timestamp ge datetime'1999-12-31T00:00:00Z'",
    f"id eq guid'{GUID}'",
    f"id eq GUID'{str(GUID).upper()}'",
    "data eq X'01ff'",
    "data eq x'01FF'",
    "data eq binary'01ff'",
    "data gt X'01'",
    "my_x002D_attr eq 7",
    "a_x0020_lot eq '12345678901234567890123456789'",
    "small eq 1 or small eq 2 or small eq 5",
    "small eq 1 or small eq 5 and name eq 'Ada'",
    "not small eq 1",
    "not not yes",
    "((((yes))))",
    "small\teq\n5",
    "'Ada' eq name",
    "not missing",
    "1 eq 1",
]
FALSE_OF_IT = [
    "small eq 6",
    "small eq '5'",
    "name eq 5",
    "name eq 'ADA'",
    "Name eq 'Ada'",
    "missing eq 1",
    "missing ne 1",
    "name ne 5",
    "small ne '6'",
    "ratio eq NaN",
    "missing",
    "small",
    "false",
    "not true",
    "not (small eq 5 or yes)",
    "(small eq 1 or small eq 5) and name eq 'Bob'",
    "yes gt false",
    "PartitionKey eq 'berlin'",
    "missing eq missing",
    "missing ne small",
    "id lt guid'00000000-0000-0000-0000-000000000000'",
]


@each_row("expression", TRUE_OF_IT)
def test_filters_are_true_of_the_entity(expression: str) -> None:
    assert is_true(expression)


@each_row("expression", FALSE_OF_IT)
def test_filters_are_false_of_the_entity(expression: str) -> None:
    assert not is_true(expression)


# OData V3 reserves INF, -INF and NaN and compares them exactly: OData/odata.net, ExpressionLexer and
# ExpressionLexerUtils, IsInfinityOrNaNDouble (an ordinal comparison). .NET's LINQ providers write doubles in this form
# (XmlConvert.ToString).
WORDS_THAT_ARE_NAMES = ["inf", "Inf", "nan", "NAN", "Nan", "infinity", "Infinity", "INFINITY", "INFf", "NaNf"]


@pytest.mark.parametrize("name", WORDS_THAT_ARE_NAMES)
def test_only_the_exact_literals_of_a_double_are_no_names(name: str) -> None:
    seven = {name: Value(Kind.INT32, 7)}
    assert is_true(f"{name} eq 7", **seven)
    assert is_true(f"{name} ge 7 and 7 ge {name} and {name} lt INF", **seven)
    assert not is_true(f"{name} eq 8", **seven)
    assert not is_true(f"{name} gt 8", **seven)
    assert not is_true(f"{name} gt 8")
    assert is_true(name, **{name: TRUE})


@pytest.mark.parametrize("word", ["INF", "NaN"])
def test_the_literals_of_a_double_hide_properties_of_their_names(word: str) -> None:
    assert not is_true(f"{word} eq 7", **{word: Value(Kind.INT32, 7)})


def test_infinities_are_compared() -> None:
    largest, least = Value(Kind.DOUBLE, math.inf), Value(Kind.DOUBLE, -math.inf)
    assert is_true("ratio eq INF and ratio ne -INF", ratio=largest)
    assert is_true("ratio eq -INF and ratio ne INF", ratio=least)
    assert not is_true("ratio eq NaN", ratio=Value(Kind.DOUBLE, math.nan))


def test_no_filter_is_always() -> None:
    assert queries.read_filter("", keys.OWN_SCHEMA) is ALWAYS


@pytest.mark.parametrize(
    "expression",
    [
        "small",
        "yes",
    ],
)
def test_a_bare_property_is_a_condition(expression: str) -> None:
    assert is_true(expression) is (expression == "yes")


@each_row(
    "expression",
    [
        "small eq",
        "eq 5",
        "small = 5",
        "small EQ 5",
        "small eq 5 AND yes",
        "small eq 5)",
        "(small eq 5",
        "()",
        "5",
        "'text'",
        "5 and yes",
        "not 'text'",
        "small eq 5 eq",
        "name eq 'open",
        'name eq "Ada"',
        "born eq datetime'soon'",
        "born eq datetime'1500-01-01T00:00:00Z'",
        "id eq guid'1'",
        "data eq X'0'",
        "data eq X'zz'",
        "name eq foo'bar'",
        "small eq 99999999999999999999",
        "small eq 5x",
        "small eq 1.5L",
        "(yes and no) gt true",
        "(yes and no) eq 5",
        "small add 5 eq 10",
        "1st eq 5",
        "a-b eq 5",
        "\x00",
        "small eq 5 ; drop",
        "ratio gt -Infinity",
        "ratio gt -inf",
        "small eq +5",
        "ratio eq .5",
        "ratio eq 5.",
        "ratio eq 5.e1",
        "yes eq true'",
    ],
)
def test_refused(expression: str) -> None:
    with pytest.raises(ServiceError) as refusal:
        queries.read_filter(expression, keys.OWN_SCHEMA)
    assert refusal.value.code == "InvalidInput"


@pytest.mark.parametrize(
    ("edm", "literal"),
    [
        ("Edm.Int32", "5454161346626"),
        ("Edm.Int32", "2147483648"),
        ("Edm.Int32", "-2147483649"),
        ("Edm.Int32", "99999999999999999999"),
        ("Edm.Int64", "9223372036854775808L"),
        ("Edm.Int64", "1.5L"),
        ("Edm.Int64", "1e3l"),
        ("Edm.Double", "1e999"),
        ("Edm.Double", "-1e999d"),
        ("Edm.DateTime", "datetime'soon'"),
        ("Edm.Guid", "guid'1'"),
        ("Edm.Guid", "guid'urn:uuid:c9da6455-213d-42c9-9a79-3e9149a57833'"),
        ("Edm.Guid", "guid'c9da6455-213d42c9-9a79-3e9149a57833'"),
        ("Edm.Binary", "X'0'"),
        ("Edm.Binary", "binary'zz'"),
    ],
)
def test_literal_out_of_its_type_is_refused(edm: str, literal: str) -> None:
    """Only `L` makes an Int64. The service does not widen a literal.

    Source: microsoft/AzureStorageExplorer issue 1382, Azure/azure-storage-node issue 316.
    """
    for expression in (f"large eq {literal}", f"{literal} eq large", f"small eq 1 or (large gt {literal})"):
        with pytest.raises(ServiceError) as refusal:
            queries.read_filter(expression, keys.OWN_SCHEMA)
        assert refusal.value.code == "InvalidInput"
        assert refusal.value.text == f"Unrecognized '{edm}' literal '{literal}'"


@pytest.mark.parametrize("expression", ["name eq null", "null ne name", "yes or not (born eq null)", "null"])
def test_null_is_refused(expression: str) -> None:
    """Source: Azure/Azurite issue 2471, whose text is that of the service."""
    with pytest.raises(ServiceError) as refusal:
        queries.read_filter(expression, keys.OWN_SCHEMA)
    assert (refusal.value.code, refusal.value.text) == (
        "InvalidInput",
        "One of the request inputs is not valid.",
    )


def test_literals_at_the_bounds_of_their_type_are_accepted() -> None:
    assert is_true("large gt 2147483647 and large gt -2147483648")
    assert is_true("large lt 9223372036854775807L and large gt -9223372036854775808L")
    assert is_true("ratio lt 1e308 and ratio gt -1e308")
    assert is_true(f"id eq guid'{GUID.hex}'")


def test_names_in_other_case_are_booleans() -> None:
    """Source: Azure/Azurite issue 1947, "handle Boolean values case-insensitively for Azure parity"."""
    assert is_true("yes eq True and no eq FALSE and (yes eq TRUE)")


@pytest.mark.parametrize(
    "expression", ["startswith(name,'A')", "substringof('d',name)", "length(name) eq 3", "now() eq Timestamp"]
)
def test_there_are_no_functions(expression: str) -> None:
    with pytest.raises(ServiceError) as refusal:
        queries.read_filter(expression, keys.OWN_SCHEMA)
    assert refusal.value.code == "NotImplemented"


def nested(form: str, levels: int) -> str:
    """Return a filter with this number of operators, each within the next. Chains of one operator would be flat."""
    expression = "yes"
    for level in range(levels):
        expression = form.format(expression, operator=("and", "or")[level % 2])
    return expression


@each_row("form", ["not {}", "not ({})", "({}) {operator} yes", "yes {operator} ({})"])
def test_depth_is_bounded(form: str) -> None:
    assert is_true(nested(form, limits.FILTER_MAX_DEPTH - 1)) is not form.startswith("not")
    for levels in (limits.FILTER_MAX_DEPTH, 200):
        with pytest.raises(ServiceError, match="nested too deeply"):
            queries.read_filter(nested(form, levels), keys.OWN_SCHEMA)


def test_parentheses_add_no_depth() -> None:
    with pytest.raises(ServiceError, match="nested too deeply"):
        queries.read_filter("not (" * 1300 + "yes" + ")" * 1300, keys.OWN_SCHEMA)
    assert is_true("(" * 2000 + "yes" + ")" * 2000)


def test_length_is_bounded() -> None:
    room = limits.FILTER_MAX_CHARACTERS - len("yes or big eq ''")
    assert is_true(f"yes or big eq '{'x y ' * (room // 4)}'")
    with pytest.raises(ServiceError, match="too long"):
        queries.read_filter(f"yes or big eq '{'x' * (room + 1)}'", keys.OWN_SCHEMA)


def test_words_are_bounded() -> None:
    """A string counts as one word. Source: "Querying tables and entities", which allows 15 comparisons."""
    text = "big eq '" + "x ''y'' " * 1000 + "' or "
    fits = text + "small eq 1 or " * ((limits.FILTER_MAX_WORDS - 8) // 4)
    assert is_true(fits + "not (no)")
    with pytest.raises(ServiceError, match="too many operators"):
        queries.read_filter(fits + "not not (yes)", keys.OWN_SCHEMA)


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 32000,
        "PartitionKey eq '" + "''" * 16000,
        "'" * 32767,
        "a" * 32768,
        "not " * 8000,
        "1e" * 16000,
        "-" * 30000,
        "x'" + "0" * 32000,
    ],
)
def test_hostile_filters_are_refused_quickly(expression: str) -> None:
    began = time.process_time()
    with pytest.raises(ServiceError):
        queries.read_filter(expression + ")", keys.OWN_SCHEMA)
    assert time.process_time() - began < 2


@given(st.text("()' =eqnotadr15.LX\\\x00éx", max_size=40))
def test_any_text_is_a_filter_or_refused(expression: str) -> None:
    try:
        predicate = queries.read_filter(expression, keys.OWN_SCHEMA)
    except ServiceError:
        return
    assert matches(predicate, row(), view) in (True, False)


_key_comparison = st.builds(
    "{} {} '{}'".format,
    st.sampled_from(["PartitionKey", "RowKey"]),
    st.sampled_from(["eq", "gt", "ge", "lt", "le"]),
    st.text("aé' and", max_size=6).map(lambda literal: literal.replace("'", "''")),
)


@given(st.lists(_key_comparison, min_size=1, max_size=4))
def test_the_short_way_gives_the_same_tree_as_the_grammar(comparisons: list[str]) -> None:
    expression = " and ".join(comparisons)
    queries.read_filter.cache_clear()
    assert queries._key_comparisons(expression) is not None
    assert queries.read_filter(expression, keys.OWN_SCHEMA) == queries.read_filter(
        f"({expression}) ", keys.OWN_SCHEMA
    )


# Tables of other dialects

NUMBERED = KeySchema((KeyColumn("id", Kind.DECIMAL),), ())
COMPOSITE = KeySchema((KeyColumn("p", Kind.TEXT),), (KeyColumn("a", Kind.TEXT), KeyColumn("b", Kind.INT64)))


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("PartitionKey eq '42'", True),
        ("PartitionKey eq '42.0'", False),
        ("PartitionKey gt '1'", True),
        ("PartitionKey gt '5'", False),  # as text, which is what Azure sees
        ("RowKey eq ''", True),
        ("PartitionKey eq 42", False),
        ("PartitionKey ne '41'", True),
    ],
)
def test_numeric_keys_compare_as_the_text_that_is_seen(expression: str, result: bool) -> None:
    assert is_true(expression, NUMBERED, id=decimal(42)) is result


def test_composite_keys_compare_as_one_text() -> None:
    more: dict[str, Any] = {"p": text("p"), "a": text("x|y"), "b": Value(Kind.INT64, 3)}
    assert is_true("PartitionKey eq 'p' and RowKey eq 'x%7Cy|3'", COMPOSITE, **more)
    assert not is_true("RowKey eq 'x'", COMPOSITE, **more)


def test_an_attribute_called_as_a_key_is_another_one() -> None:
    schema = KeySchema((KeyColumn("p", Kind.TEXT),), ())
    more = {"p": text("key"), "PartitionKey": text("attribute")}
    assert is_true("PartitionKey eq 'key' and _x0050_artitionKey eq 'attribute'", schema, **more)


def test_keys_narrow_the_range() -> None:
    pair = KeySchema((KeyColumn("p", Kind.TEXT),), (KeyColumn("s", Kind.TEXT),))
    for schema in (keys.OWN_SCHEMA, pair):
        predicate = queries.read_filter(
            "PartitionKey eq 'Berlin' and RowKey ge 'a' and RowKey lt 'b' and small eq 5", schema
        )
        found, residue = narrow(predicate, schema)
        inside = schema.position([text("Berlin"), text("abc")])
        assert found.lower <= inside < found.upper
        for outside in ([text("Berlin"), text("b")], [text("Bern"), text("a")], [text("Berlin"), text("A")]):
            assert not found.lower <= schema.position(outside) < found.upper
        assert residue == queries.read_filter("small eq 5", schema)


@pytest.mark.parametrize(
    ("expression", "position"), [("aaa bbb ccc", 7), ("a eq", 4), ("a eq 1 or", 9), ("a eq 'x' )", 10)]
)
def test_a_syntax_error_gives_the_position_after_the_unexpected_word(expression: str, position: int) -> None:
    """Behind the word that was not expected. The first is what the real service answered an SDK's test, the rest its rule."""
    with pytest.raises(ServiceError) as refusal:
        queries.read_filter(expression, keys.OWN_SCHEMA)
    assert refusal.value.code == "InvalidInput"
    assert refusal.value.text == f"Syntax error at position {position} in '{expression}'."
