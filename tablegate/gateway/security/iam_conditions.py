"""Condition elements of IAM policies, as conditions (model/authorization/conditions.py), and the error of an invalid policy.

An unknown operator or key, or a malformed value, is an error when a policy is read. So is a condition that can never match,
because a Deny without effect would look like a protection. Sources: "IAM JSON policy elements: Condition operators", and
"Using IAM policy conditions for fine-grained access control" (DynamoDB developer guide).
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from tablegate.gateway.model.authorization import conditions
from tablegate.gateway.model.authorization.conditions import Glob


class BadPolicy(ValueError):
    """A policy that is malformed or has an unsupported part. It is refused as a whole."""


KEYS: Mapping[str, conditions.ConditionKey] = {
    "dynamodb:leadingkeys": conditions.ConditionKey.LEADING_KEYS,
    "dynamodb:firstpartitionkeyvalues": conditions.ConditionKey.LEADING_KEYS,
    "dynamodb:attributes": conditions.ConditionKey.ATTRIBUTES,
    "dynamodb:select": conditions.ConditionKey.SELECT,
    "dynamodb:returnvalues": conditions.ConditionKey.RETURN_VALUES,
    "dynamodb:enclosingoperation": conditions.ConditionKey.ENCLOSING,
    "dynamodb:fulltablescan": conditions.ConditionKey.FULL_SCAN,
    "aws:sourceip": conditions.ConditionKey.SOURCE_ADDRESS,
    "aws:securetransport": conditions.ConditionKey.IS_SECURE,
    "aws:currenttime": conditions.ConditionKey.NOW,
    "aws:epochtime": conditions.ConditionKey.NOW,
    "aws:requestedregion": conditions.ConditionKey.REGION,
    "aws:principalaccount": conditions.ConditionKey.ACCOUNT,
    "aws:principalarn": conditions.ConditionKey.PRINCIPAL,
    "aws:principaltype": conditions.ConditionKey.PRINCIPAL_KIND,
    "aws:username": conditions.ConditionKey.USER,
    "aws:userid": conditions.ConditionKey.USER_ID,
    "aws:sourcearn": conditions.ConditionKey.SOURCE_RESOURCE,
    "aws:sourceaccount": conditions.ConditionKey.SOURCE_ACCOUNT,
    "aws:principalorgid": conditions.ConditionKey.ORGANIZATION,
}
"""Condition keys, in lower case."""

GlobMaker = Callable[[str], Glob]
"""Function from a text with policy variables to a pattern, in which values of variables are literal."""


def conditions_of(element: Any, glob_of: GlobMaker) -> Iterator[conditions.Condition]:
    """Yield the conditions of a Condition element. All of them must hold. Raises BadPolicy."""
    if not isinstance(element, dict):
        raise BadPolicy("Condition is not an object")
    for operator, keys in element.items():
        if not isinstance(keys, dict):
            raise BadPolicy(f"Condition {operator} is not an object")
        for key, values in keys.items():
            if isinstance(values, (str, bool, int, float)):
                values = [values]
            if not isinstance(values, list) or not values:
                raise BadPolicy(f"Condition {operator} {key} has no values")
            texts = [_text(value) for value in values]
            yield _condition(operator, key, texts, glob_of)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    raise BadPolicy(f"a condition's value is a text, not {value!r}")


def _condition(operator: str, key: str, values: list[str], glob_of: GlobMaker) -> conditions.Condition:
    fact = KEYS.get(key.lower())
    if fact is None:
        raise BadPolicy(f"the condition key {key} is not supported")
    name, quantifier = operator, conditions.Quantifier.ONE
    for prefix, quantifier_of_prefix in (
        ("ForAllValues:", conditions.Quantifier.ALL),
        ("ForAnyValue:", conditions.Quantifier.ANY),
    ):
        if operator.lower().startswith(prefix.lower()):
            name, quantifier = operator[len(prefix) :], quantifier_of_prefix
    if name.lower() == "null":
        return _null(fact, values, quantifier)
    if fact in conditions.MANY_VALUED and quantifier is conditions.Quantifier.ONE:
        raise BadPolicy(
            f"{key} has many values, so {operator} without ForAllValues or ForAnyValue never matches"
        )
    plain = name.lower()
    if_exists = plain.endswith("ifexists")
    plain = plain.removesuffix("ifexists")
    is_negated = _is_negated(plain)
    make = _OPERATORS.get(plain.replace("not", "", 1) if is_negated else plain)
    if make is None:
        raise BadPolicy(f"the condition operator {operator} is not supported")
    if (plain.startswith(("date", "numeric"))) is not (fact is conditions.ConditionKey.NOW):
        raise BadPolicy(f"{key} cannot be compared by {operator}")
    if ("ipaddress" in plain) is not (fact is conditions.ConditionKey.SOURCE_ADDRESS):
        raise BadPolicy(f"{key} cannot be compared by {operator}")
    tests = [make(value, glob_of) for value in values]
    return conditions.Condition(fact, _any_of(tests), is_negated, quantifier, if_exists)


def _is_negated(plain: str) -> bool:
    return "not" in plain


def _null(
    fact: conditions.ConditionKey, values: Sequence[str], quantifier: conditions.Quantifier
) -> conditions.Condition:
    if quantifier is not conditions.Quantifier.ONE or {value.lower() for value in values} not in (
        {"true"},
        {"false"},
    ):
        raise BadPolicy("Null is true or false")
    return conditions.Condition(fact, None, is_absent=values[0].lower() == "true")


def _any_of(tests: list[conditions.Test]) -> conditions.Test:
    if len(tests) == 1:
        return tests[0]
    return lambda value: any(test(value) for test in tests)


# Operators: functions from a value of a policy to a test of values of requests


def _equals(text: str, glob_of: GlobMaker) -> conditions.Test:
    literal = "".join(character for character, _ in glob_of(text).steps) if "${" in text else text
    return lambda value: value == literal


def _equals_ignoring_case(text: str, glob_of: GlobMaker) -> conditions.Test:
    test = _equals(text.lower() if "${" not in text else text, glob_of)
    return lambda value: test(value.lower())


def _like(text: str, glob_of: GlobMaker) -> conditions.Test:
    return glob_of(text).matches


def _bytes_equal(text: str, glob_of: GlobMaker) -> conditions.Test:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        raise BadPolicy(f"{text} is not base64") from None
    return lambda value: value == text


def _bool(text: str, glob_of: GlobMaker) -> conditions.Test:
    if text.lower() not in ("true", "false"):
        raise BadPolicy(f"{text} is neither true nor false")
    return lambda value: value == text.lower()


def _network(text: str, glob_of: GlobMaker) -> conditions.Test:
    try:
        return conditions.in_networks([ipaddress.ip_network(text, strict=False)])
    except ValueError:
        raise BadPolicy(f"{text} is not an IP address or network") from None


def _resource_name(text: str, glob_of: GlobMaker) -> conditions.Test:
    """Return the test of ArnEquals and ArnLike, which are equal. Each of the six parts of an ARN is a pattern.

    Only the last part can contain colons.
    """
    parts = text.split(":", 5)
    if len(parts) != 6 or parts[0] != "arn":
        raise BadPolicy(f"{text} is not an ARN")
    patterns = [glob_of(part) for part in parts]

    def test(value: str) -> bool:
        value_parts = value.split(":", 5)
        return len(value_parts) == 6 and all(
            pattern.matches(part) for pattern, part in zip(patterns, value_parts, strict=True)
        )

    return test


def _comparison_of(read: Callable[[str], Decimal], compare: Callable[[Decimal, Decimal], bool]) -> Any:
    def make(text: str, glob_of: GlobMaker) -> conditions.Test:
        operand = read(text)
        return lambda value: compare(Decimal(value), operand)

    return make


def _number(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise BadPolicy(f"{text} is not a number") from None
    if not number.is_finite():
        raise BadPolicy(f"{text} is not a number")
    return number


def _moment(text: str) -> Decimal:
    """Return seconds since 1970, from such a number or an ISO 8601 text."""
    try:
        return _number(text)
    except BadPolicy:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadPolicy(f"{text} is not a time in ISO 8601") from None
    return Decimal(str((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()))


_COMPARISONS: Mapping[str, Callable[[Decimal, Decimal], bool]] = {
    "equals": lambda value, operand: value == operand,
    "lessthan": lambda value, operand: value < operand,
    "lessthanequals": lambda value, operand: value <= operand,
    "greaterthan": lambda value, operand: value > operand,
    "greaterthanequals": lambda value, operand: value >= operand,
}
_OPERATORS: Mapping[str, Callable[[str, GlobMaker], conditions.Test]] = {
    "stringequals": _equals,
    "stringequalsignorecase": _equals_ignoring_case,
    "stringlike": _like,
    "binaryequals": _bytes_equal,
    "bool": _bool,
    "ipaddress": _network,
    "arnequals": _resource_name,
    "arnlike": _resource_name,
    **{f"numeric{name}": _comparison_of(_number, compare) for name, compare in _COMPARISONS.items()},
    **{f"date{name}": _comparison_of(_moment, compare) for name, compare in _COMPARISONS.items()},
}
"""Operators in lower case, without `Not` (NotIpAddress, StringNotEquals, DateNotEquals, ArnNotLike)."""
