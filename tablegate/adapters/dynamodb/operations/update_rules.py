"""Rules of updates: the size of an update expression, and the limits of the updated item."""

from __future__ import annotations

from tablegate.adapters.dynamodb.expressions.updates import UpdateFacts, statement_bytes
from tablegate.adapters.dynamodb.tables.table_extensions import EXTENSIONS
from tablegate.adapters.dynamodb.values import keys
from tablegate.adapters.dynamodb.values.values import is_too_large
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.gateway.model.errors import RowRuleViolated
from tablegate.gateway.model.expressions.updates import Action
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value

# Limits of updates


def check_statement_size(facts: UpdateFacts, actions: tuple[Action, ...]) -> None:
    """Check that an UpdateExpression writes no more than an item may hold. Raises ServiceError."""
    if is_too_large(statement_bytes(facts, actions)):
        raise validation(messages.bare("update-size"))


def check_updated(table: Table, may_nest: tuple[str, ...], _old: Row | None, new: Contents) -> Contents:
    """Check the updated item: its size, the depth of the attributes `may_nest`, its index keys, and the rules of
    capabilities.

    Indexes check the whole item, because attributes that are not updated may be older than an index. Raises
    RowRuleViolated, BadKey.
    """
    if is_too_large(new.size_bytes):
        raise RowRuleViolated("update-size")
    for name in may_nest:
        value = new.value(name)
        if value is not None and value.kind in _DOCUMENTS and _depth(value) > limits.NESTING_LEVELS:
            raise RowRuleViolated("nesting")
    if table.indexes:
        keys.check_updated_index_keys(table, new)
    if table.other_indexes:
        for extension in EXTENSIONS:
            extension.check_item(table, new, True)
    return new


_DOCUMENTS = frozenset({Kind.MAP, Kind.LIST})


def _depth(value: Value) -> int:
    """Return the number of levels of a value: 1 for a scalar, one more for each document around it.

    Counting stops just past the limit.
    """
    level, values = 0, [value]
    while values and level <= limits.NESTING_LEVELS:
        level += 1
        values = [
            member
            for holder in values
            if holder.kind in (Kind.MAP, Kind.LIST)
            for member in (holder.data.values() if holder.kind is Kind.MAP else holder.data)
        ]
    return level
