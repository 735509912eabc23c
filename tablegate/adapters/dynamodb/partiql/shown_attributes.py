"""The attributes that a SELECT returns, in the bodies of answers."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from tablegate.adapters.dynamodb.expressions.nodes import PathNode
from tablegate.adapters.dynamodb.partiql.nodes import Select, shown_name
from tablegate.adapters.dynamodb.values import composites
from tablegate.adapters.dynamodb.values.values import render_values
from tablegate.gateway.model.commands.row_commands import VisibleNames
from tablegate.gateway.model.expressions.predicates import value_at
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row

# Attributes in the answer


def shown_by(statement: Select) -> VisibleNames | None:
    """Return the top-level attributes in a SELECT. None: all."""
    paths = statement.paths
    return None if paths is None else VisibleNames(frozenset(str(path.steps[0]) for path in paths))


def cut(table: Table, paths: tuple[PathNode, ...] | None, row: Row) -> bytes:
    """Return the selected attributes of a row as JSON."""
    if paths is None:
        return composites.render(table.key_schema, row)
    values = composites.visible_attributes(table.key_schema, row)
    selected = {shown_name(path.steps): value_at(values, path.steps) for path in paths}
    return orjson.dumps(render_values({name: value for name, value in selected.items() if value is not None}))


def cut_all(table: Table, paths: tuple[PathNode, ...] | None, rows: Sequence[Row]) -> bytes:
    """Return the selected attributes of rows as a JSON array."""
    if paths is None:
        return composites.render_page(table.key_schema, rows)
    return b"[" + b",".join([cut(table, paths, row) for row in rows]) + b"]"
