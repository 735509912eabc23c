"""The index that a SELECT reads, and checks of its projection."""

from __future__ import annotations

from tablegate.adapters.dynamodb.expressions.projections import filter_beyond
from tablegate.adapters.dynamodb.partiql.keyed import KeyBranch
from tablegate.adapters.dynamodb.partiql.nodes import Select
from tablegate.adapters.dynamodb.values import composites
from tablegate.adapters.dynamodb.wire import messages
from tablegate.adapters.dynamodb.wire.call_context import CallContext
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.adapters.dynamodb.wire.gateway_errors import index_filling
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import State, Table


def queried_index(call: CallContext, table: Table, statement: Select) -> Index | None:
    """Return the index that a statement names. None if it names none. Raises ServiceError."""
    if len(statement.source) == 1:
        return None
    index = table.index(statement.source[1])
    if index is None:
        if table.vector_index(statement.source[1]):
            raise validation("Scan operation not supported on this index type")
        raise validation("The table does not have the specified index")
    if not index.local and call.input.get("ConsistentRead"):
        raise validation("Strongly consistent read is not supported on Global Secondary Indexes")
    now_ms = call.gateway.now_ms()
    if not index.local and not index.is_active(now_ms) and table.state_at(now_ms) is State.ACTIVE:
        raise index_filling(index.name)
    return index


def needs_whole_rows(statement: Select, table: Table, index: Index | None) -> bool:
    """True if items must be fetched from the table, because a local index does not project all selected attributes."""
    if index is None or index.projected_names is None or statement.paths is None:
        return False
    projected_names = {*index.projected_names, *composites.shown_schema(table.key_schema).names}
    missing_names = list(
        dict.fromkeys(str(path.steps[0]) for path in statement.paths if path.steps[0] not in projected_names)
    )
    if missing_names and not index.local:
        names = ", ".join(missing_names)
        raise validation(f"{messages.INVALID}Global secondary index {index.name} does not project [{names}]")
    return bool(missing_names)


def check_filter(key_branches: tuple[KeyBranch, ...], index: Index) -> None:
    """Raise ServiceError if every branch reads an attribute that the index does not project."""
    if index.projected_names is None:
        return
    missing_names = [
        name for name in dict.fromkeys(key_branches[0].others) if name not in index.projected_names
    ]
    common = [name for name in missing_names if all(name in branch.others for branch in key_branches)]
    if common:
        raise filter_beyond(index.name, common)
