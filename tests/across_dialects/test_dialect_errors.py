"""Errors between the dialects and the engine: they are facts of the model. Each dialect's errors.py has their texts."""

from functools import partial

import pytest

from tablegate.adapters.azuretable.entities.entity_renderer import rule_of
from tablegate.adapters.azuretable.wire import errors as azuretable
from tablegate.adapters.azuretable.wire import limits as azuretable_limits
from tablegate.adapters.dynamodb.expressions.updates import facts_of
from tablegate.adapters.dynamodb.operations.items import check_updated
from tablegate.adapters.dynamodb.wire import errors as dynamodb
from tablegate.adapters.dynamodb.wire import gateway_errors
from tablegate.adapters.dynamodb.wire import limits as dynamodb_limits
from tablegate.adapters.tablestore.wire import errors as tablestore
from tablegate.gateway.model.commands.row_commands import apply_group
from tablegate.gateway.model.commands.writes import Edit, Write
from tablegate.gateway.model.errors import GatewayError, NotInstalled, RowRuleViolated
from tablegate.gateway.model.expressions.updates import Literal, SetTo
from tablegate.gateway.model.tables.tables import Rules, State, Table
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind, Value, text


@pytest.mark.parametrize("dialect", [azuretable, dynamodb, tablestore], ids=lambda module: module.__name__)
def test_errors_of_a_dialect_are_no_errors_of_the_gateway(dialect) -> None:
    assert issubclass(dialect.ServiceError, Exception)
    assert not issubclass(dialect.ServiceError, GatewayError)


SCHEMA = KeySchema((KeyColumn("p", Kind.TEXT),), ())
TABLE = Table(1, "", "t", "t", SCHEMA, (), Rules(), {}, State.ACTIVE, 0, 1, 0)


def nested(levels: int) -> Value:
    value = text("x")
    for _ in range(levels - 1):
        value = Value(Kind.LIST, (value,))
    return value


def told(write: Write) -> RowRuleViolated | None:
    """Return the engine's answer for a group of one write if its dialect rejects the row."""
    answer = apply_group([write], {}, 0)
    assert isinstance(answer, (list, RowRuleViolated))
    return answer if isinstance(answer, RowRuleViolated) else None


def update(value: Value) -> Write:
    key = Key((text("1"),), SCHEMA.position((text("1"),)))
    actions = (SetTo(("a",), Literal(value)),)
    return Write(TABLE, key, Edit(actions), rule=partial(check_updated, TABLE, facts_of(actions).may_nest))


def test_an_update_of_dynamodb_is_refused_by_facts() -> None:
    room = dynamodb_limits.ITEM_BYTES - len("pa1")
    assert told(update(text("x" * room))) is None
    assert told(update(nested(dynamodb_limits.NESTING_LEVELS))) is None
    large = told(update(text("x" * (room + 1))))
    deep = told(update(nested(dynamodb_limits.NESTING_LEVELS + 1)))
    assert large is not None
    assert deep is not None
    errors = [gateway_errors.service_error_of(error, "UpdateItem") for error in (large, deep)]
    assert {error.code for error in errors} == {"ValidationException"}
    size, nesting = [error.message for error in errors]
    assert size == "Item size to update has exceeded the maximum allowed size"
    assert nesting == (
        "Nesting Levels have exceeded supported limits: "
        "Attributes in the item have nested levels beyond supported limit"
    )


def merge(values: dict[str, Value]) -> Write:
    key = Key((text("1"),), SCHEMA.position((text("1"),)))
    actions = tuple(SetTo((name,), Literal(value)) for name, value in values.items())
    return Write(TABLE, key, Edit(actions), rule=rule_of(SCHEMA.names))


def test_a_merge_of_azure_is_refused_by_facts() -> None:
    names = [f"a{number}" for number in range(azuretable_limits.PROPERTIES_MAX + 1)]
    assert told(merge({name: Value(Kind.BOOL, True) for name in names[:-1]})) is None
    many = told(merge({name: Value(Kind.BOOL, True) for name in names}))
    large = told(merge({"a": Value(Kind.BYTES, bytes(azuretable_limits.ENTITY_MAX_BYTES))}))
    assert many is not None
    assert large is not None
    assert many.facts == {
        "limit": azuretable_limits.PROPERTIES_MAX,
        "actual": azuretable_limits.PROPERTIES_MAX + 1,
    }
    assert azuretable.service_error_of(many).code == "TooManyProperties"
    assert azuretable.service_error_of(large).code == "EntityTooLarge"


def test_every_dialect_refuses_operations_of_absent_capabilities() -> None:
    """It is no error of the server. Azure: "Common REST API error codes", NotImplemented."""
    error = NotInstalled("vector")
    assert azuretable.service_error_of(error).code == "NotImplemented"
    assert gateway_errors.service_error_of(error, "GetItem").code == "ValidationException"
    assert tablestore.service_error_of(error).code == "OTSParameterInvalid"
