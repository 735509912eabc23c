"""Error bodies and the table from the gateway's errors."""

from __future__ import annotations

import inspect
import json
from decimal import Decimal

import pytest

from tablegate.adapters.dynamodb.wire import errors, gateway_errors
from tablegate.adapters.dynamodb.wire.error_texts import bare
from tablegate.adapters.dynamodb.wire.errors import ServiceError, render
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.gateway.model import errors as model
from tablegate.gateway.model.values.keys import KeyColumn
from tablegate.gateway.model.values.values import Kind, Value


def body(error: ServiceError) -> dict[str, object]:
    return json.loads(render(error))


@pytest.mark.parametrize(
    ("code", "prefix"),
    [
        ("ValidationException", "com.amazon.coral.validate#"),
        ("SerializationException", "com.amazon.coral.service#"),
        ("UnknownOperationException", "com.amazon.coral.service#"),
        ("ResourceNotFoundException", "com.amazonaws.dynamodb.v20120810#"),
        ("ConditionalCheckFailedException", "com.amazonaws.dynamodb.v20120810#"),
    ],
)
def test_type_has_the_prefix_of_its_origin(code: str, prefix: str) -> None:
    assert body(ServiceError(code, "text"))["__type"] == prefix + code


def test_message_key_is_capital_only_where_the_model_says_so() -> None:
    assert body(errors.validation("a"))["message"] == "a"
    assert body(errors.serialization("a"))["Message"] == "a"
    assert body(errors.cancelled([None]))["Message"].startswith("Transaction cancelled")  # type: ignore[union-attr,attr-defined]


def test_an_error_without_text_has_no_message() -> None:
    assert body(errors.serialization()) == {"__type": "com.amazon.coral.service#SerializationException"}


def test_a_lone_surrogate_in_a_text_does_not_break_the_body() -> None:
    assert body(errors.validation("a\ud800b"))["message"] == "a?b"


def test_condition_failed_carries_the_item_beside_the_message() -> None:
    """moto 0af643a5d, TestReturnValuesOnConditionCheckFailure (marked aws_verified, August 2026): `message` and `Item`."""
    assert body(errors.condition_failed(b'{"a":{"S":"x"}}')) == {
        "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
        "message": "The conditional request failed",
        "Item": {"a": {"S": "x"}},
    }
    assert body(errors.condition_failed())["message"] == "The conditional request failed"


def test_cancelled_lists_positional_reasons_with_short_codes() -> None:
    failed = errors.condition_failed(b'{"a":{"S":"x"}}')
    got = body(errors.cancelled([None, failed, errors.validation("bad")]))
    assert got["Message"] == (
        "Transaction cancelled, please refer cancellation reasons for specific reasons "
        "[None, ConditionalCheckFailed, ValidationError]"
    )
    assert got["CancellationReasons"] == [
        {"Code": "None"},
        {
            "Code": "ConditionalCheckFailed",
            "Message": "The conditional request failed",
            "Item": {"a": {"S": "x"}},
        },
        {"Code": "ValidationError", "Message": "bad"},
    ]


def test_the_control_plane_names_a_missing_table_and_the_data_plane_does_not() -> None:
    missing = model.TableMissing("gone")
    assert service_error_of(missing, "GetItem").message == "Requested resource not found"
    assert (
        service_error_of(missing, "DescribeTable").message
        == "Requested resource not found: Table: gone not found"
    )


def test_every_gateway_error_has_a_row_in_the_table() -> None:
    listed = [
        kind for _, kind in inspect.getmembers(model, inspect.isclass) if issubclass(kind, model.GatewayError)
    ]
    missing = {kind for kind in listed if kind not in gateway_errors._FROM_GATEWAY} - {model.GatewayError}
    assert not missing


def test_a_refused_group_is_a_cancelled_transaction() -> None:
    refused = model.GroupRefused([None, model.ConditionFailed(None, None)])
    error = service_error_of(refused, "TransactWriteItems")
    assert error.code == "TransactionCanceledException"
    assert [reason["Code"] for reason in error.extra["CancellationReasons"]] == [
        "None",
        "ConditionalCheckFailed",
    ]


def test_throttling_names_the_resource() -> None:
    error = service_error_of(model.Throttled("arn:aws:dynamodb:r:1:table/t", "write"), "PutItem")
    assert error.extra["ThrottlingReasons"] == [
        {"reason": "TableWriteProvisionedThroughputExceeded", "resource": "arn:aws:dynamodb:r:1:table/t"}
    ]


def test_bad_keys_of_items_are_reported_by_column_but_not_in_a_batch() -> None:
    column = KeyColumn("pk", Kind.TEXT)
    wrong = model.BadKey("kind", column=column, actual=Value(Kind.DECIMAL, Decimal(1)))
    missing = model.BadKey("missing", column=column)
    head = "One or more parameter values were invalid: "
    assert (
        service_error_of(wrong, "PutItem").message == head + "Type mismatch for key pk expected: S actual: N"
    )
    assert service_error_of(missing, "PutItem").message == head + "Missing the key pk in the item"
    for error in (wrong, missing, model.BadKey("schema")):
        assert (
            service_error_of(error, "BatchWriteItem").message
            == "The provided key element does not match the schema"
        )


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("overflow", bare("number-overflow")),
        ("underflow", bare("number-underflow")),
        ("precision", bare("number-overflow")),  # test_number.py test_update_expression_plus_imprecise
    ],
)
def test_arithmetic_out_of_range_has_the_text_of_its_rule(rule: str, text: str) -> None:
    assert service_error_of(model.NumberOutOfRange(rule), "UpdateItem").message == text
