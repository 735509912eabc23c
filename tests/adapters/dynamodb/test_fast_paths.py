"""The fast path of a simple request gives the answer of the general one."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.expressions import conditions
from tablegate.adapters.dynamodb.expressions.static_checks import Placeholders
from tablegate.adapters.dynamodb.operation_table import OPERATIONS
from tablegate.adapters.dynamodb.validation import fast_validator
from tablegate.adapters.dynamodb.values import values
from tablegate.adapters.dynamodb.values.values import item_of, render_row, render_rows
from tablegate.adapters.dynamodb.wire.errors import ErrorTexts, ServiceError
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.tables import Rules, State, Table
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema, Position
from tablegate.gateway.model.values.rows import FOREIGN_KINDS, Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, text
from tests.adapters.dynamodb.validation.test_requests_fuzz import checked
from tests.support.examples import examples

PAIR = KeySchema((KeyColumn("p", Kind.TEXT),), (KeyColumn("s", Kind.TEXT),))
ALONE = KeySchema((KeyColumn("p", Kind.TEXT),))


def table(schema: KeySchema, properties: dict[str, Any]) -> Table:
    return Table(
        id=1,
        version=1,
        namespace="",
        name="t",
        azure_name="",
        key_schema=schema,
        state=State.ACTIVE,
        busy_until_ms=0,
        indexes=(),
        rules=Rules(),
        properties=properties,
        created_at_ms=0,
    )


texts = st.text(alphabet="a\x00é\U0001d11e", max_size=4) | st.integers(340, 2050).map("é".__mul__)
texts |= st.sampled_from([1023, 1024, 1025, 2047, 2048, 2049]).map("x".__mul__)
members = st.one_of(
    texts.map(lambda data: {"S": data}),
    st.just({"N": "1"}),
    st.just({"B": "YQ=="}),
    st.just({"NULL": True}),
)
wires = st.dictionaries(st.sampled_from(["p", "s", "other"]), members, max_size=3)


def _made(of: Any, owner: Table, wire: dict[str, Any]) -> Any:
    try:
        return of(owner, wire)
    except (GatewayError, ServiceError) as error:
        return type(error), getattr(error, "rule", None), str(error)


@pytest.mark.parametrize(
    "condition",
    [
        "attribute_exists(a)",
        "NOT attribute_not_exists(a.b[1]) AND size(a) < b",
        "a BETWEEN b AND c OR a IN (b, c)",
    ],
)
def test_conditions_without_placeholders_are_those_of_every_request(condition: str) -> None:
    kept = conditions.parse_condition(condition, Placeholders())
    again = conditions.parse_condition(condition, Placeholders(None, None, ErrorTexts("PutItem")))
    assert kept is again
    tree = conditions.condition_tree(condition, "ConditionExpression", Placeholders())
    assert kept == conditions.ConditionReader("ConditionExpression", Placeholders()).condition(tree)


@pytest.mark.parametrize("condition", ["a = a", "size(a)", "size(name) = a", "a ="])
def test_errors_of_cached_conditions_equal_those_of_the_request(condition: str) -> None:
    told = []
    for operation in ("PutItem", "TransactWriteItems"):
        with pytest.raises(ServiceError) as caught:
            conditions.parse_condition(condition, Placeholders(None, None, ErrorTexts(operation)))
        told.append(str(caught.value.message))  # type: ignore[attr-defined]
    assert told[0] == f"1 validation error detected: {told[1]}"


# Bodies


nested = st.recursive(
    st.one_of(
        st.text(max_size=5).map(lambda data: {"S": data}),
        st.sampled_from(["0", "1.50", "-1e3", "1E+125", "9" * 38]).map(lambda data: {"N": data}),
        st.binary(max_size=4).map(lambda data: {"B": b64encode(data).decode()}),
        st.booleans().map(lambda data: {"BOOL": data}),
        st.just({"NULL": True}),
        st.lists(st.text(max_size=3), min_size=1, max_size=3, unique=True).map(lambda data: {"SS": data}),
        st.lists(st.sampled_from(["10", "9", "-1", "1e2"]), min_size=1, unique=True).map(
            lambda data: {"NS": data}
        ),
        st.lists(st.sampled_from(["YQ==", "/w==", "YWI=", "AA=="]), min_size=1, unique=True).map(
            lambda data: {"BS": data}
        ),
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda data: {"L": data})
        | st.dictionaries(st.text(min_size=1, max_size=2), inner, max_size=3).map(lambda data: {"M": data})
    ),
    max_leaves=6,
)
foreign_values = st.sampled_from(
    [Value(Kind.INT64, 5), Value(Kind.DOUBLE, 0.1), Value(Kind.DATETIME, 10**17)]
)


@st.composite
def stored_rows(draw: st.DrawFn) -> list[Row]:
    """Rows as they are stored: items that were put, and rows with kinds of the other dialects."""
    rows = []
    for wire in draw(
        st.lists(st.dictionaries(st.text(min_size=1, max_size=2), nested, max_size=4), max_size=4)
    ):
        contents = item_of(wire).contents
        if draw(st.booleans()):
            contents = Contents.of_values({**contents.latest, "f": draw(foreign_values)})
        rows.append(Row(Position(b"", b""), Contents(contents.body, contents.kinds, 0), 1))
    return rows


@given(stored_rows())
def test_copied_bodies_are_what_their_values_are_rendered_as(rows: list[Row]) -> None:
    assert values.fast_render_rows(rows) == values.render_rows_generally(rows)
    for row in rows:
        assert values.fast_render_row(row) == values.render_row_generally(row)


# Requests


WHOLE_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "PutItem": st.fixed_dictionaries(
        {"TableName": st.just("abc"), "Item": st.dictionaries(st.text(max_size=2), nested, max_size=4)},
        optional={"ReturnValues": st.sampled_from(["NONE", "ALL_OLD", "ALL_NEW"])},
    ),
    "GetItem": st.fixed_dictionaries(
        {"TableName": st.just("abc"), "Key": st.dictionaries(st.text(max_size=2), nested, max_size=2)}
    ),
    "UpdateItem": st.fixed_dictionaries(
        {
            "TableName": st.just("abc"),
            "Key": st.just({"a": {"S": "x"}}),
            "UpdateExpression": st.just("SET b = :b"),
            "ExpressionAttributeValues": st.dictionaries(
                st.sampled_from([":b", ":c", "d"]), nested, max_size=2
            ),
        }
    ),
    "BatchWriteItem": st.lists(
        st.dictionaries(st.text(max_size=2), nested, max_size=2).map(
            lambda item: {"PutRequest": {"Item": item}}
        )
        | nested.map(lambda value: {"DeleteRequest": {"Key": {"a": value}}}),
        min_size=1,
        max_size=3,
    ).map(lambda writes: {"RequestItems": {"abc": writes}}),
    "TransactWriteItems": st.lists(
        st.dictionaries(st.text(max_size=2), nested, max_size=2).map(
            lambda item: {"Put": {"TableName": "abc", "Item": item}}
        ),
        min_size=1,
        max_size=3,
    ).map(lambda actions: {"TransactItems": actions}),
}


@pytest.mark.parametrize("operation", sorted(WHOLE_VALUES))
def test_both_validators_make_the_same_of_attribute_values(operation: str) -> None:
    request = OPERATIONS[operation].request
    fast_check = fast_validator.fast_check(fast_validator.strict(request))

    @examples(150)
    @given(WHOLE_VALUES[operation])
    def run(body: Any) -> None:
        general = checked(fast_validator.leave_to_full_validator, operation, body)
        assert checked(fast_check, operation, body) == general

    run()


def test_a_page_is_its_rows() -> None:
    own = Contents(orjson.dumps({"p": {"S": "1"}}), None, 2)
    other = {"p": text("2"), "i": Value(Kind.INT64, 5)}
    mixed = Contents(bodies.encode(other), FOREIGN_KINDS, 10)
    rows = [Row(Position(b"", b""), contents, 1) for contents in (own, mixed, own)]
    assert orjson.loads(render_rows(rows)) == [orjson.loads(render_row(row)) for row in rows]
    assert orjson.loads(render_rows(rows))[1] == {"p": {"S": "2"}, "i": {"N": "5"}}
    assert render_rows([]) == b"[]"
