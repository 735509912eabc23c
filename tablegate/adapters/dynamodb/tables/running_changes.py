"""Running changes of a table: their stored facts, indexes being deleted, and the errors of conflicting requests.

The texts depend on the running change and on the request (ack-api-quirks 063, 149, 175, 370, 375, 444, 458). The engine
decides whether a table is still being changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tablegate.adapters.dynamodb.tables.properties import TableProperties
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.model.tables.indexes import BaseIndex
from tablegate.gateway.model.tables.tables import Rules, State, Table

_STREAM = "Table: {table} Stream: {label} Operation: {operation}"
_CLASS = "Table: {table} TableClassUpdateInProgress: {table_class}"
_INDEXES = "Table: {table} Indexes: [{index}]"
_NO_INDEX = "Can't create or delete"
_MAXIMA = "OnDemandThroughput cannot be updated while"
# (kind of the running change, kind of the request) -> text
_TEXTS = {
    ("units", "units"): "Table IOPS are currently being updated. Table: {table}",
    ("units", "stream"): "Can't enable or disable stream while table IOPS are being updated. Table: {table}",
    ("units", "index"): f"{_NO_INDEX} indexes while table IOPS are being updated. Table: {{table}}",
    ("stream", "units"): f"Can't change table IOPS when stream status is being updated. {_STREAM}",
    ("stream", "stream"): f"A stream status change is currently in progress. {_STREAM}",
    ("stream", "index"): f"{_NO_INDEX} an index when stream status is being updated. {_STREAM}",
    ("stream", "class"): f"Can't update table class when stream status is being updated. {_STREAM}",
    ("stream", "delete"): "Cannot delete table while stream is being enabled/disabled.",
    ("class", "class"): f"Can't update table class when a table class update is in progress. {_CLASS}",
    ("class", "stream"): f"Can't change stream status when a table class update is in progress. {_CLASS}",
    ("class", "index"): f"{_NO_INDEX} an index when a table class update is in progress. {_CLASS}",
    ("units", "maxima"): f"{_MAXIMA} BillingMode update is in progress",
    ("stream", "maxima"): f"{_MAXIMA} stream status update is in progress",
    (
        "class",
        "maxima",
    ): f"{_MAXIMA} TableClass update is in progress. TableClassUpdateInProgress: {{table_class}}",
    ("new index", "units"): f"Can't change table IOPS when an index is being created. {_INDEXES}",
    ("new index", "stream"): f"Can't change stream status when an index is being created. {_INDEXES}",
    ("new index", "delete"): "Cannot delete table while indexes are being created, updated, or deleted.",
    ("no index", "units"): f"Can't change table IOPS when an index is being deleted. {_INDEXES}",
    ("no index", "stream"): f"Can't change stream status when an index is being deleted. {_INDEXES}",
    ("no index", "delete"): "Cannot delete table while indexes are being created, updated, or deleted.",
}
_ONE_INDEX = "Table: {table} Index: {index}"
_BEING_DELETED = f"Index is being deleted. {_ONE_INDEX}"
_IN_ALLOCATION = f"Index is being created but is not backfilling yet. {_ONE_INDEX}"
_OTHERWISE = "Table: {table} is in the process of being updated."


def started_change(arguments: Mapping[str, Any], rules: Rules, billing: str) -> dict[str, Any]:
    """Return the change that an UpdateTable starts, in its stored form.

    `rules`: those after the change. `billing`: the mode before it.
    """
    kind, index = _kind(arguments)
    change = {"kind": kind, "former_billing": billing}
    if index:
        change["index"] = index
    if kind == "stream" and rules.stream is not None:
        change |= {"label": rules.stream.label, "operation": "ENABLE" if rules.stream.enabled else "DISABLE"}
    if kind == "class":
        change["table_class"] = arguments["TableClass"]
    return change


def _kind(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of change that an UpdateTable demands, and the name of its index."""
    for member in ("GlobalSecondaryIndexUpdates", "VectorIndexUpdates"):
        for update in arguments.get(member, ()):
            for action, kind in (("Create", "new index"), ("Delete", "no index")):
                if action in update:
                    return kind, update[action]["IndexName"]
    for name, kind in (("StreamSpecification", "stream"), ("TableClass", "class")):
        if name in arguments:
            return kind, ""
    if arguments.keys() == {"TableName", "DeletionProtectionEnabled"}:
        return "protection", ""
    return ("maxima" if "OnDemandThroughput" in arguments and "BillingMode" not in arguments else "units"), ""


def deleting(table: Table, now_ms: int) -> Mapping[str, Any]:
    """Return the stored facts of the index being deleted, or an empty mapping.

    `index`: its name. `deleting`: its description, by member of TableDescription. `insights`: its contributor insights.
    """
    change = TableProperties.of(table).change
    is_running = table.state_at(now_ms) is State.UPDATING
    return change if is_running and change is not None and "deleting" in change else {}


def being_deleted(before: Mapping[str, Any], dropped: tuple[str, ...]) -> dict[str, list[Any]]:
    """Return the descriptions of indexes being deleted, by member of TableDescription."""
    descriptions: dict[str, list[Any]] = {}
    for member in ("GlobalSecondaryIndexes", "VectorIndexes"):
        for index in before.get(member, ()):
            if index["IndexName"] in dropped:
                description = {name: value for name, value in index.items() if name != "Backfilling"}
                descriptions.setdefault(member, []).append({**description, "IndexStatus": "DELETING"})
    return descriptions


def show_deleting(description: dict[str, Any], indexes: Mapping[str, Sequence[Any]]) -> None:
    """Add the indexes being deleted to a TableDescription."""
    for member, lists in indexes.items():
        description[member] = [*description.get(member, ()), *lists]


def refuse_busy_index(table: Table, arguments: Mapping[str, Any], now_ms: int) -> None:
    """Check that an UpdateTable can change the indexes it names. Raises ServiceError.

    It may not name an index being deleted, nor change an index before its fill has begun.
    """
    deleted_name = deleting(table, now_ms).get("index")
    for update in arguments.get("GlobalSecondaryIndexUpdates", ()):
        for action, entry in update.items():
            name = entry["IndexName"]
            if name == deleted_name and action != "Update":
                raise _index_in_use(_BEING_DELETED, table, name)
            index = table.index(name)
            is_allocated = (
                index is None or index.is_active(now_ms) or table.state_at(now_ms) is not State.UPDATING
            )
            if action == "Update" and not is_allocated:
                raise _index_in_use(_IN_ALLOCATION, table, name)


def _index_in_use(text: str, table: Table, index: str) -> ServiceError:
    return in_use(text.format(table=table.name, index=index))


def refusal(
    table: str, running: Mapping[str, Any] | None, arguments: Mapping[str, Any], operation: str
) -> ServiceError:
    """Return the error of an UpdateTable or DeleteTable during a change.

    `running`: the result of started_change() for that change.
    """
    requested = "delete" if operation == "DeleteTable" else _kind(arguments)[0]
    requested = "index" if requested in ("new index", "no index") else requested
    facts = running or {"kind": ""}
    text = _TEXTS.get((facts["kind"], requested), _OTHERWISE).format(table=table, **facts)
    return in_use(text)


def in_use(text: str) -> ServiceError:
    """Return the error of a request that conflicts with a running change."""
    return ServiceError(
        "ResourceInUseException", f"Attempt to change a resource which is still in use: {text}"
    )


def refuse_allocating(table: Table, index: BaseIndex, now_ms: int) -> None:
    """Check that an index to be deleted is past the first phase of its creation. Raises ServiceError."""
    if not index.is_active(now_ms) and table.state_at(now_ms) is State.UPDATING:
        raise in_use(
            "Index creation is in resource allocation phase. Retry deletion during backfilling phase or when the index is "
            f"active. Table: {table.name} Index: {index.name}"
        )
