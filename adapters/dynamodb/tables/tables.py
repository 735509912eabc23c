"""The control plane of tables: CreateTable, DescribeTable, ListTables, UpdateTable, DeleteTable.

Each handler says its operation as commands and describes the outcome. Descriptors are asked for afresh, never from the
cache: who describes a table wants to see what the last change made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from adapters.dynamodb import DIALECT
from adapters.dynamodb.tables import billing, indexes, resource_policies, tags, vector_indexes
from adapters.dynamodb.tables.descriptions import describe
from adapters.dynamodb.tables.properties import TableProperties
from adapters.dynamodb.wire import limits
from adapters.dynamodb.wire.calls import Answer, Call, own_name
from adapters.dynamodb.wire.errors import CLASSIC, validation
from adapters.dynamodb.wire.resources import key_arn
from gateway.engine.engine import one
from gateway.model.commands import (
    AlterTable,
    CountRows,
    CreateTable,
    DropTable,
    Exchange,
    FindTable,
    ListTables,
)
from gateway.model.errors import NotInstalled, TableBusy, TableExists
from gateway.model.tables import Rules, State, StreamRule, Table

_INVALID = "One or more parameter values were invalid: "
# What this server does not have is refused, not ignored: a table that looks replicated and is not would be worse.
_NOT_OFFERED = ("GlobalTableSourceArn",)


def find_table(call: Call) -> Exchange[Table]:
    """The table that TableName names, as it is now."""
    return (yield from one(FindTable(call.caller.namespace, own_name(call, call.input["TableName"]))))


# CreateTable


def create_table(call: Call) -> Exchange[Answer]:
    """CreateTable: make a table with its indexes, and describe it. A name that is taken is ResourceInUseException, whatever
    the state of the table that has it. Raises ServiceError, TableExists."""
    given, now_ms = call.input, call.gateway.now_ms()
    command = new_table(call)
    try:
        table = yield from one(command)
    except TableBusy as busy:
        raise TableExists(busy.name) from busy
    except TableExists as taken:
        [existing] = yield [FindTable(command.namespace, taken.name)]
        if isinstance(existing, Table) and existing.state_at(now_ms) is State.CREATING:
            raise TableBusy(taken.name, State.CREATING.value) from taken
        raise
    resource_policies.know(call, table)
    shown = describe(in_state(State.CREATING, table, now_ms), None, call.caller, now_ms)
    return {"TableDescription": in_style(call, _as_created(shown, given))}


def new_table(call: Call) -> CreateTable:
    """The table that the members of CreateTable define. Raises ServiceError."""
    given, now_ms = call.input, call.gateway.now_ms()
    _refuse_not_offered(given)
    if given.get("VectorIndexes"):
        _require_vectors(call)
    types = indexes.defined_types(given)
    return CreateTable(
        DIALECT,
        call.caller.namespace,
        own_name(call, given["TableName"]),
        indexes.key_schema(given["KeySchema"], types),
        _new_indexes(given),
        Rules(stream=_first_stream(given.get("StreamSpecification"), now_ms)),
        {
            **_new_properties(call, now_ms).document(),
            **resource_policies.of_new_table(call, own_name(call, given["TableName"])),
        },
        vector_indexes=tuple(vector_indexes.new(index, types) for index in given.get("VectorIndexes", ())),
    )


def _new_indexes(given: Mapping[str, Any]) -> tuple[Any, ...]:
    types = indexes.defined_types(given)
    mode = given.get("BillingMode", "PROVISIONED")
    local = [indexes.new_local(item, types) for item in given.get("LocalSecondaryIndexes", ())]
    return (
        *local,
        *(indexes.new_global(item, types, mode) for item in given.get("GlobalSecondaryIndexes", ())),
    )


def _new_properties(call: Call, now_ms: int) -> TableProperties:
    given = call.input
    return replace(
        billing.of_new_table(given, now_ms),
        table_class=given.get("TableClass"),
        deletion_protection=given.get("DeletionProtectionEnabled", False),
        encryption_key=_encryption_key(call, None),
        replication_mode=_replication_mode(given, "ENABLED_WITH_OVERRIDES"),
        tags=tags.new_tags(given.get("Tags", ())),
    )


def _as_created(shown: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of CreateTable has a little less than DescribeTable's (ack-api-quirks 033, 138)."""
    if "WarmThroughput" not in given:
        del shown["WarmThroughput"]
    for name in ("BillingModeSummary", "TableThroughputModeSummary"):
        if name in shown:
            del shown[name]["LastUpdateToPayPerRequestDateTime"]
    for index in shown.get("GlobalSecondaryIndexes", ()):
        del index["WarmThroughput"]
    return shown


# DescribeTable, ListTables


def describe_table(call: Call) -> Exchange[Answer]:
    """DescribeTable: describe a table. Counts are exact for small tables, and a little old for large ones. Raises
    TableMissing."""
    table = yield from find_table(call)
    statistics = yield from one(CountRows(table))
    shown = describe(table, statistics, call.caller, call.gateway.now_ms())
    return {"Table": in_style(call, shown)}


def list_tables(call: Call) -> Exchange[Answer]:
    """ListTables: a page of names, in byte order. A further page is announced only if it has something in it."""
    limit = call.input.get("Limit", limits.LIST_TABLES_NAMES)
    after = call.input.get("ExclusiveStartTableName", "")
    found = yield from one(ListTables(call.caller.namespace, after, limit + 1))
    names = [table.name for table in found]
    answer: dict[str, Any] = {"TableNames": names[:limit]}
    if len(names) > limit:
        answer["LastEvaluatedTableName"] = names[limit - 1]
    return answer


# UpdateTable


def update_table(call: Call) -> Exchange[Answer]:
    """UpdateTable: change throughput, indexes, the stream or a setting. The answer describes the table as it was, with the
    states of what is being changed. Raises ServiceError, TableMissing, TableBusy."""
    given, now_ms = call.input, call.gateway.now_ms()
    _refuse_not_offered(given)
    table = yield from find_table(call)
    properties = billing.of_table(table, given, now_ms)
    updates = given.get("GlobalSecondaryIndexUpdates", ())
    added, dropped = indexes.changes(table, given, properties.billing, now_ms)
    new_vectors, dropped_vectors = vector_indexes.changes(table, given, properties.billing, now_ms)
    if new_vectors:
        _require_vectors(call)
    throughput = [update["Update"] for update in updates if "Update" in update]
    changed = billing.of_indexes(table, properties.billing, throughput, now_ms)
    properties = replace(
        properties,
        deletion_protection=given.get("DeletionProtectionEnabled", properties.deletion_protection),
        encryption_key=_encryption_key(call, properties.encryption_key),
        replication_mode=_replication_mode(given, properties.replication_mode),
        disassociation_protection=given.get(
            "DisassociationProtectionEnabled", properties.disassociation_protection
        ),
    )
    if "TableClass" in given and given["TableClass"] != (properties.table_class or "STANDARD"):
        properties = replace(properties, table_class=given["TableClass"], table_class_at_ms=now_ms)
    if dropped:
        kept = {name: known for name, known in properties.insights.items() if name not in dropped}
        properties = replace(properties, insights=kept)
    slow = (added, dropped, new_vectors, dropped_vectors)
    instant = not (any(slow) or any(name in given for name in _SLOW_CHANGES))
    command = AlterTable(
        DIALECT,
        table,
        _altered_rules(table, given.get("StreamSpecification"), now_ms),
        properties.document(),
        added,
        (*dropped, *dropped_vectors),
        {name: item.document() for name, item in changed.items() if name not in dropped},
        instant,
        new_vectors,
    )
    statistics = yield from one(CountRows(table))
    altered = yield from one(command)
    shown = describe(in_state(State.UPDATING, altered, now_ms), statistics, call.caller, now_ms)
    if instant:
        shown["TableStatus"] = altered.state_at(now_ms).value.upper()
    before = describe(table, statistics, call.caller, now_ms)
    _show_index_changes(shown, before, (*dropped, *dropped_vectors), changed)
    if "SSEDescription" in before and "SSEDescription" not in shown:
        # LocalStack's snapshot test_dynamodb_create_table_with_partial_sse_specification, January 2024.
        shown["SSEDescription"] = before["SSEDescription"] | {"Status": "UPDATING"}
    return {"TableDescription": in_style(call, shown)}


# These make a table UPDATING for a while; the others are done when they are answered (ack-api-quirks 002, 017, 178).
_SLOW_CHANGES = ("BillingMode", "ProvisionedThroughput", "StreamSpecification", "TableClass")


def _show_index_changes(
    shown: dict[str, Any], before: dict[str, Any], dropped: tuple[str, ...], changed: Mapping[str, Any]
) -> None:
    """Indexes being dropped are still there, as DELETING; those whose throughput changes are UPDATING."""
    kept = shown.get("GlobalSecondaryIndexes", [])
    for index in kept:
        if index["IndexName"] in changed:
            index["IndexStatus"] = "UPDATING"
    for index in before.get("GlobalSecondaryIndexes", ()):
        if index["IndexName"] in dropped:
            kept.append(index | {"IndexStatus": "DELETING"})
            kept[-1].pop("Backfilling", None)
    if kept:
        shown["GlobalSecondaryIndexes"] = kept
    going = [index for index in before.get("VectorIndexes", ()) if index["IndexName"] in dropped]
    if going:
        left = [{**index, "IndexStatus": "DELETING"} for index in going]
        for index in left:
            index.pop("Backfilling", None)
        shown["VectorIndexes"] = [*shown.get("VectorIndexes", ()), *left]


# DeleteTable


def delete_table(call: Call) -> Exchange[Answer]:
    """DeleteTable: drop a table. The answer leaves out keys, indexes and the time of creation (rule 40). Raises ServiceError,
    TableMissing, TableBusy."""
    now_ms = call.gateway.now_ms()
    table = yield from find_table(call)
    if TableProperties.of(table).deletion_protection:
        raise validation(
            "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first."
        )
    if not all(index.is_active(now_ms) for index in table.vector_indexes):
        raise vector_indexes.in_use(
            "Cannot delete table while indexes are being created, updated, or deleted."
        )
    statistics = yield from one(CountRows(table))
    dropped = yield from one(DropTable(table))
    shown = describe(in_state(State.DELETING, dropped, now_ms), statistics, call.caller, now_ms)
    for name in _NOT_OF_DELETED:
        shown.pop(name, None)
    return {"TableDescription": in_style(call, shown)}


_NOT_OF_DELETED = (
    "AttributeDefinitions",
    "CreationDateTime",
    "GlobalSecondaryIndexes",
    "KeySchema",
    "LocalSecondaryIndexes",
    "VectorIndexes",
    "WarmThroughput",
)


# Settings


def _refuse_not_offered(given: Mapping[str, Any]) -> None:
    for name in _NOT_OFFERED:
        if name in given:
            raise validation(f"{_INVALID}{name} is not supported by this server")


def _require_vectors(call: Call) -> None:
    if not call.gateway.engine.searches_vectors:
        raise NotInstalled("vectors")


def _first_stream(given: Mapping[str, Any] | None, now_ms: int) -> StreamRule | None:
    if given is None or not given["StreamEnabled"]:
        return None
    if "StreamViewType" not in given:
        text = "Table is being created with a stream enabled, UpdateViewType is required"
        raise validation(_INVALID + text)
    return stream_rule(given["StreamViewType"], now_ms)


def _altered_rules(table: Table, given: Mapping[str, Any] | None, now_ms: int) -> Rules | None:
    """The rules with the stream switched on or off. What it shows cannot be changed: a new stream is a new one."""
    if given is None:
        return None
    known = table.rules.stream
    running = known is not None and known.enabled
    if given["StreamEnabled"]:
        if "StreamViewType" not in given:
            raise validation(f"{_INVALID}If stream is being enabled then UpdateViewType is required")
        if running:
            raise validation(f"Table already has an enabled stream: TableName: {table.name}")
        return replace(table.rules, stream=stream_rule(given["StreamViewType"], now_ms))
    if table.rules.replication is not None and running:
        raise validation(f"{_INVALID}Disabling Stream is not allowed for a Global Table replica.")
    if "StreamViewType" in given:
        text = "If stream is being disabled, then UpdateViewType must not be specified"
        raise validation(_INVALID + text)
    if known is None or not known.enabled:
        raise validation(f"Table has no stream to disable: TableName: {table.name}")
    return replace(table.rules, stream=replace(known, enabled=False))


def stream_rule(view: str, now_ms: int) -> StreamRule:
    """The rule of a stream that begins."""
    label = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    return StreamRule(label, True, view, limits.STREAM_RETENTION_MS, now_ms)


def _replication_mode(given: Mapping[str, Any], known: str) -> str:
    """Whether settings of a global table go to all its regions. The third value is what is told where nobody has said."""
    mode: str = given.get("GlobalTableSettingsReplicationMode", known)
    if given.get("GlobalTableSettingsReplicationMode") == "ENABLED_WITH_OVERRIDES":
        text = "Only ENABLED and DISABLED settings replication are allowed"
        raise validation(
            "Value 'ENABLED_WITH_OVERRIDES' at 'GlobalTableSettingsReplicationMode' failed to satisfy constraint: "
            + text
        )
    return mode


def _encryption_key(call: Call, known: str | None) -> str | None:
    """The key that a table is said to be encrypted with: none is the service's own, which it does not show.

    What is at rest here is what the database and its disk keep; the setting reads back and means no more.
    """
    given = call.input.get("SSESpecification")
    if given is None:
        return known
    if not given.get("Enabled", "SSEType" in given or "KMSMasterKeyId" in given):
        if known is None and call.operation == "UpdateTable":
            raise validation(f"{_INVALID}Table is already encrypted by default")
        return None
    key = key_arn(call.caller, given.get("KMSMasterKeyId", "alias/aws/dynamodb"))
    if key == known and given.get("KMSMasterKeyId") == known:
        text = "Table is already encrypted with given KMSMasterKeyId"
        raise validation(f"{_INVALID}{text}. Use KMSMasterKeyId parameter if you want to change Master Key")
    return key


# Descriptions


def in_state(state: State, table: Table, now_ms: int) -> Table:
    """The table as it is while a change is under way, be it ever so short: the answer to a change always shows that."""
    until_ms = max(table.busy_until_ms, now_ms + 1)
    shown, vectors = table.indexes, table.vector_indexes
    if state is State.CREATING:
        shown = tuple(replace(index, busy_until_ms=until_ms) for index in shown)
        vectors = tuple(replace(index, busy_until_ms=until_ms) for index in vectors)
    return replace(table, state=state, busy_until_ms=until_ms, indexes=shown, vector_indexes=vectors)


def in_style(call: Call, shown: dict[str, Any]) -> dict[str, Any]:
    """In the classic style, without the members that the service added since (dynalite compares whole bodies)."""
    if call.gateway.settings.message_style != CLASSIC:
        return shown
    if not shown.get("DeletionProtectionEnabled"):
        shown.pop("DeletionProtectionEnabled", None)
    for owner in (shown, *shown.get("GlobalSecondaryIndexes", ())):
        owner.pop("WarmThroughput", None)
    return shown
