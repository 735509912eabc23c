"""$filter: the OData expression -> the common predicate tree, bound to a table.

Parsing (filter_grammar.py) leaves names as the client wrote them. Binding to a table's key schema replaces them by key
columns and attributes. limits.py bounds hostile input.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tablegate.adapters.azuretable.values import keys, names
from tablegate.adapters.azuretable.values.values import UNIX_EPOCH_TICKS
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    And,
    Attribute,
    Compare,
    Comparison,
    Computed,
    Exists,
    HasKind,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
)
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Kind, Value

_KEY_COMPARISON = re.compile(r"(PartitionKey|RowKey) (eq|gt|ge|lt|le) '((?:[^']|'')*)'")
_KEYS_ONLY = re.compile(rf"{_KEY_COMPARISON.pattern}(?: and {_KEY_COMPARISON.pattern})*")
_WORDS = re.compile(r"(?:'[^']*')+|\w+|[^\s\w]")


def _timestamp(row: Row) -> Value:
    return Value(Kind.DATETIME, row.modified_at + UNIX_EPOCH_TICKS)


TIMESTAMP = Computed(_timestamp)
_ABSENT = Computed(lambda row: None)


@lru_cache(maxsize=1024)
def read(text: str, schema: KeySchema, has_timestamp: bool = True) -> Predicate:
    """Return the predicate of a $filter on a table. Without `has_timestamp`, Timestamp is a property that no row has.

    Blank text is no filter. Raises ServiceError InvalidInput, NotImplemented.
    """
    if not text.strip():
        return ALWAYS
    if len(text) > limits.FILTER_MAX_CHARACTERS:
        raise ServiceError("InvalidInput", "The filter is too long.")
    if len(text) > limits.FILTER_MAX_WORDS and len(_WORDS.findall(text)) > limits.FILTER_MAX_WORDS:
        raise ServiceError("InvalidInput", "The filter has too many operators.")
    tree = _key_comparisons(text)
    if tree is None:
        # Imported on first use, since few filters need the parser (docs/architecture.md section 11).
        from tablegate.adapters.azuretable.queries import filter_grammar

        tree = filter_grammar.parse(text)
    columns = {
        "PartitionKey": key_operand(schema, 0),
        "RowKey": key_operand(schema, 1),
        "Timestamp": TIMESTAMP if has_timestamp else _ABSENT,
    }
    return _bound(tree, columns)


def _key_comparisons(text: str) -> Predicate | None:
    """Return the tree of a filter that only compares keys with texts, as most do. None for any other filter.

    The parser gives the same result (a test compares them), but takes twenty times as long.
    """
    if not _KEYS_ONLY.fullmatch(text):
        return None
    parts = [
        Compare(
            Attribute((name,)),
            Comparison[operator.upper()],
            Literal(Value(Kind.TEXT, literal.replace("''", "'"))),
        )
        for name, operator, literal in _KEY_COMPARISON.findall(text)
    ]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


# Binding to a table


def key_operand(schema: KeySchema, position: int) -> Operand:
    """Return the operand for PartitionKey (0) or RowKey (1): a single TEXT column, else the text that Azure shows."""
    columns = (schema.partition, schema.sort)[position]
    if len(columns) == 1 and columns[0].kind is Kind.TEXT:
        return Attribute((columns[0].name,))
    return _computed_key(schema, position)


@lru_cache(maxsize=256)
def _computed_key(schema: KeySchema, position: int) -> Operand:
    names_of_columns = schema.names

    def text_of(row: Row) -> Value:
        latest = row.latest
        values = tuple(latest[name] for name in names_of_columns)
        return Value(Kind.TEXT, keys.texts_of(schema, values)[position])

    return Computed(text_of)


def _bound(predicate: Predicate, columns: dict[str, Operand]) -> Predicate:
    match predicate:
        case And(parts):
            return And(tuple(_bound(part, columns) for part in parts))
        case Or(parts):
            return Or(tuple(_bound(part, columns) for part in parts))
        case Not(part):
            return Not(_bound(part, columns))
        case Compare(left, comparison, right):
            return Compare(_bound_operand(left, columns), comparison, _bound_operand(right, columns))
        case HasKind(operand, kinds):
            return HasKind(_bound_operand(operand, columns), kinds)
        case Exists((name,)):
            if name not in columns:
                return Exists((names.unspelled(str(name)),))
            return Not(ALWAYS) if columns[name] is _ABSENT else ALWAYS
        case _:
            return predicate


def _bound_operand(operand: Operand, columns: dict[str, Operand]) -> Operand:
    if isinstance(operand, Attribute):
        name = str(operand.path[0])
        return columns[name] if name in columns else Attribute((names.unspelled(name),))
    return operand
