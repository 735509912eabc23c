"""ORDER BY: the order in which the ranges of a SELECT are read."""

from __future__ import annotations

from tablegate.adapters.dynamodb.partiql.keyed import KeyBranch
from tablegate.adapters.dynamodb.partiql.nodes import Select
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.values.keys import KeySchema


def order_ranges(
    statement: Select, schema: KeySchema, bounds: list[KeyRange], key_branches: tuple[KeyBranch, ...] | None
) -> bool:
    """Sort the ranges by ORDER BY. Return True if each is read in reverse. Raises ServiceError."""
    if not statement.order:
        return False
    if statement.where is None:
        raise validation("Must have WHERE clause in the statement when using ORDER BY clause.")
    if key_branches is None:
        raise validation(
            "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause."
        )
    for name, _ in statement.order:
        if name not in schema.names:
            raise validation(f"Attribute {name} in ORDER BY clause must be part of the primary key")
    descending = dict(statement.order)
    partition_names = [column.name for column in schema.partition]
    directions = [descending[name] for name in partition_names if name in descending]
    if len({one_range.lower.partition for one_range in bounds}) > 1 and not directions:
        raise validation(
            "Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause."
        )
    reverse = any(descending.get(column.name, False) for column in schema.sort)
    bounds.sort(key=lambda one_range: one_range.lower.sort, reverse=reverse)
    bounds.sort(key=lambda one_range: one_range.lower.partition, reverse=bool(directions) and directions[0])
    return reverse
