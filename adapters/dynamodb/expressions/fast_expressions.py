"""The fast path of a request's expressions: they are read once for their texts, what names stand for and of which types values
are, into trees with the name of a placeholder in the place of each value; each request puts its own values there.

What is wrong with expressions is told by reading them with the request's own values, the general way (request_clauses.py): here
nothing is kept of what has any fault. Nor of what depends on the values themselves, beyond their types (Placeholders.look_into).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from tablegate.adapters.dynamodb.expressions.conditions import parse_condition
from tablegate.adapters.dynamodb.expressions.key_conditions import KeyTest, key_tests, parse_key_condition
from tablegate.adapters.dynamodb.expressions.placeholders import Placeholders
from tablegate.adapters.dynamodb.expressions.projections import Projection, parse_projection
from tablegate.adapters.dynamodb.expressions.static_checks import FILTER
from tablegate.adapters.dynamodb.expressions.updates import UpdateFacts, facts_of, parse_update
from tablegate.adapters.dynamodb.values.values import value_of
from tablegate.adapters.dynamodb.wire.errors import LATEST, ServiceError
from tablegate.adapters.dynamodb.wire.wording import Wording
from tablegate.gateway.model.expressions import updates
from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    And,
    Compare,
    Contains,
    HasKind,
    Literal,
    Not,
    Operand,
    Or,
    Path,
    Predicate,
    StartsWith,
    paths_of,
)
from tablegate.gateway.model.expressions.updates import Action
from tablegate.gateway.model.values.values import Kind, Value

Input = Mapping[str, Any]
Values = Mapping[str, Value]

# What is kept is bounded: so many readings, of so many characters and placeholders each.
_KEPT, _LONGEST_KEPT, _MOST_PLACEHOLDERS = 512, 1024, 32
_KINDS = {
    "S": Kind.TEXT, "N": Kind.DECIMAL, "B": Kind.BYTES, "BOOL": Kind.BOOL, "NULL": Kind.NULL, "L": Kind.LIST, "M": Kind.MAP,
    "SS": Kind.TEXT_SET, "NS": Kind.DECIMAL_SET, "BS": Kind.BYTES_SET,
}  # fmt: skip


class PreparedWrite(NamedTuple):
    """The clauses of a write. `deep`: the paths in the condition that lead into documents."""

    facts: UpdateFacts
    actions: tuple[Action, ...]
    condition: Predicate
    deep: tuple[Path, ...]


class PreparedRead(NamedTuple):
    """The clauses of a read: the tests of keys, None where there is no key condition; filter and projection."""

    tests: tuple[KeyTest, ...] | None
    filter: Predicate
    projection: Projection | None


def fast_write(given: Input) -> PreparedWrite | None:
    """The clauses of a write with its values in them; None: they are for the general way."""
    update, condition = given.get("UpdateExpression"), given.get("ConditionExpression")
    wire = given.get("ExpressionAttributeValues")
    signature = _signature_of(given.get("ExpressionAttributeNames"), wire, (update, condition))
    prepared = None if signature is None else _write(update, condition, *signature)
    if prepared is None or wire is None:
        return prepared
    values = {}
    for name, member in wire.items():
        values[name] = value_of(member)
    facts, actions, predicate, deep = prepared
    if actions:
        actions = _with_values(actions, values)
    if predicate is not ALWAYS:
        predicate = _judging(predicate, values)
    return PreparedWrite(facts, actions, predicate, deep)


def fast_read(given: Input, most: int, style: str) -> PreparedRead | None:
    """The clauses of a read with its values in them; None: they are for the general way. `most` and `style`: see `key_tests`."""
    texts = (
        given.get("KeyConditionExpression"),
        given.get("FilterExpression"),
        given.get("ProjectionExpression"),
    )
    wire = given.get("ExpressionAttributeValues")
    signature = _signature_of(given.get("ExpressionAttributeNames"), wire, texts)
    prepared = None if signature is None else _read(texts, most, style, *signature)
    if prepared is None or wire is None:
        return prepared
    values = {}
    for name, member in wire.items():
        values[name] = value_of(member)
    tests, predicate, projection = prepared
    if tests is not None:
        tests = tuple(
            [
                KeyTest(name, operator, tuple([values[slot] for _, slot in slots]))
                for name, operator, slots in tests
            ]
        )
    if predicate is not ALWAYS:
        predicate = _judging(predicate, values)
    return PreparedRead(tests, predicate, projection)


# What is kept

_Names = tuple[tuple[str, str], ...]
_Signature = tuple[_Names, tuple[str, ...], tuple[str, ...]]
"""What names stand for; the placeholders of values, and their types."""


def _signature_of(
    names: Mapping[str, str] | None, wire: Mapping[str, Any] | None, texts: tuple[str | None, ...]
) -> _Signature | None:
    """What a reading is kept by, beside the texts; None: it is too long for that, or there is no text."""
    names, wire = names or {}, wire or {}
    length = sum(map(len, filter(None, texts))) + sum(map(len, names)) + sum(map(len, names.values()))
    if not 0 < length <= _LONGEST_KEPT or len(names) + len(wire) > _MOST_PLACEHOLDERS:
        return None
    return tuple(names.items()), tuple(wire), tuple(map(next, map(iter, wire.values())))


class _Slots(Placeholders):
    """Placeholders whose values are not known yet: the data of each is the placeholder's own name. `style`: that of the
    request, which decides how many conditions a key has."""

    def __init__(self, signature: _Signature, style: str = LATEST) -> None:
        names, slots, types = signature
        super().__init__(dict(names), dict(zip(slots, types, strict=True)), Wording(style=style))

    def value(self, placeholder: str) -> Value | None:
        self._unused_values.discard(placeholder)
        tag = self._values.get(placeholder)
        return None if tag is None else Value(_KINDS[tag], placeholder)

    def look_into(self, value: Value) -> Value:
        raise _DependsOnValues


class _DependsOnValues(Exception):
    """A tree is not the same for all values of these types."""


@lru_cache(maxsize=_KEPT)
def _write(update: str | None, condition: str | None, *signature: Any) -> PreparedWrite | None:
    slots = _Slots(signature)
    try:
        actions = () if update is None else parse_update(update, slots)
        predicate: Predicate = ALWAYS if condition is None else parse_condition(condition, slots)
        slots.check_all_used()
    except (ServiceError, _DependsOnValues):
        return None
    deep = tuple(path for path in paths_of(predicate) if len(path) > 1)
    return PreparedWrite(facts_of(actions), actions, predicate, deep)


@lru_cache(maxsize=_KEPT)
def _read(
    texts: tuple[str | None, str | None, str | None], most: int, style: str, *signature: Any
) -> PreparedRead | None:
    slots = _Slots(signature, style)
    key, condition, projection = texts
    try:
        tests = None if key is None else key_tests(parse_key_condition(key, slots), slots, most)
        predicate: Predicate = ALWAYS if condition is None else parse_condition(condition, slots, FILTER)
        projected = None if projection is None else parse_projection(projection, slots)
        slots.check_all_used()
    except (ServiceError, _DependsOnValues):
        return None
    return PreparedRead(tests, predicate, projected)


# Values in the place of slots


def _with_values(actions: tuple[Action, ...], values: Values) -> tuple[Action, ...]:
    made: list[Action] = []
    for action in actions:
        match action:
            case updates.SetTo(path, updates.Literal((_, slot))):
                made.append(updates.SetTo(path, updates.Literal(values[slot])))
            case updates.SetTo(path, operand):
                made.append(updates.SetTo(path, _computing(operand, values)))
            case updates.Add(path, (_, slot)) | updates.Subtract(path, (_, slot)):
                made.append(type(action)(path, values[slot]))
            case _:
                made.append(action)
    return tuple(made)


def _computing(operand: updates.Operand, values: Values) -> updates.Operand:
    match operand:
        case updates.Literal((_, slot)):
            return updates.Literal(values[slot])
        case updates.CurrentOr(path, fallback):
            return updates.CurrentOr(path, _computing(fallback, values))
        case updates.Plus(left, right) | updates.Minus(left, right) | updates.Concatenate(left, right):
            return type(operand)(_computing(left, values), _computing(right, values))
    return operand


def _judging(predicate: Predicate, values: Values) -> Predicate:
    match predicate:
        case Compare(left, comparison, Literal((_, slot))) if type(left) is not Literal:
            return Compare(left, comparison, Literal(values[slot]))
        case Compare(left, comparison, right):
            return Compare(_compared(left, values), comparison, _compared(right, values))
        case And(parts):
            return And(tuple([_judging(part, values) for part in parts]))
        case Or(parts):
            return Or(tuple([_judging(part, values) for part in parts]))
        case Not(part):
            return Not(_judging(part, values))
        case StartsWith(operand, prefix):
            return StartsWith(_compared(operand, values), _compared(prefix, values))
        case Contains(container, member):
            return Contains(_compared(container, values), _compared(member, values))
        case HasKind(operand, kinds):
            return HasKind(_compared(operand, values), kinds)
    return predicate


def _compared(operand: Operand, values: Values) -> Operand:
    return Literal(values[operand.value.data]) if type(operand) is Literal else operand
