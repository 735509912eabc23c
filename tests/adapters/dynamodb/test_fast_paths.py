"""Where a plain request takes a shorter way, the answer is that of the general one."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.dynamodb.expressions import conditions
from adapters.dynamodb.expressions.placeholders import Placeholders
from adapters.dynamodb.values import keys
from adapters.dynamodb.values.values import item_of, render_row, render_rows
from adapters.dynamodb.wire.errors import ServiceError
from adapters.dynamodb.wire.messages import CLASSIC, LATEST
from gateway.model import bodies
from gateway.model.errors import GatewayError
from gateway.model.keys import KeyColumn, KeySchema, Position
from gateway.model.rows import FOREIGN_KINDS, Contents, Row
from gateway.model.tables import Rules, State, Table
from gateway.model.values import Kind, Value, text

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


@given(wires, st.sampled_from([PAIR, ALONE]), st.sampled_from([{}, {"dynamodb": {}}]))
def test_keys_of_texts(wire: dict[str, Any], schema: KeySchema, properties: dict[str, Any]) -> None:
    owner, item = table(schema, properties), item_of(wire)
    quick = _made(keys.key_of, owner, wire), _made(keys.item_key, owner, item)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "_text_key", lambda schema, wire: None)
        assert quick == (_made(keys.key_of, owner, wire), _made(keys.item_key, owner, item))


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
    again = conditions.parse_condition(condition, Placeholders(None, None, CLASSIC, "PutItem"))
    assert kept is again
    tree = conditions.condition_tree(condition, "ConditionExpression", Placeholders())
    assert kept == conditions.ConditionReader("ConditionExpression", Placeholders()).condition(tree)


@pytest.mark.parametrize("condition", ["a = a", "size(a)", "size(name) = a", "a ="])
def test_what_is_wrong_with_them_is_told_as_the_request_tells_it(condition: str) -> None:
    told = []
    for operation in ("PutItem", "TransactWriteItems"):
        with pytest.raises(ServiceError) as caught:
            conditions.parse_condition(condition, Placeholders(None, None, LATEST, operation))
        told.append(str(caught.value.message))  # type: ignore[attr-defined]
    assert told[0] == f"1 validation error detected: {told[1]}"


def test_a_page_is_its_rows() -> None:
    own = Contents(orjson.dumps({"p": {"S": "1"}}), None, 2)
    other = {"p": text("2"), "i": Value(Kind.INT64, 5)}
    mixed = Contents(bodies.encode(other), FOREIGN_KINDS, 10)
    rows = [Row(Position(b"", b""), contents, 1) for contents in (own, mixed, own)]
    assert orjson.loads(render_rows(rows)) == [orjson.loads(render_row(row)) for row in rows]
    assert orjson.loads(render_rows(rows))[1] == {"p": {"S": "2"}, "i": {"N": "5"}}
    assert render_rows([]) == b"[]"
