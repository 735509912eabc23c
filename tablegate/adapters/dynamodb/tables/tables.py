"""The control plane of tables: CreateTable, DescribeTable, ListTables, UpdateTable, DeleteTable, and the operations on the
account and the service: DescribeLimits, DescribeEndpoints.

Each handler awaits commands and describes the outcome. Descriptors are read from the store, not from the cache, so that
a description shows the latest change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.call import Answer, CallContext, own_name
from tablegate.adapters.dynamodb.tables import (
    billing,
    resource_policies,
    running_changes,
    table_definitions,
    table_settings,
    tags,
)
from tablegate.adapters.dynamodb.tables.properties import (
    IndexProperties,
    TableProperties,
    is_being_filled,
    is_being_restored,
)
from tablegate.adapters.dynamodb.tables.table_definitions import describe
from tablegate.adapters.dynamodb.tables.table_extensions import EXTENSIONS
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.gateway.dialects.coroutines import all_of
from tablegate.gateway.model.commands import table_commands
from tablegate.gateway.model.commands.command import Command, R
from tablegate.gateway.model.errors import TableBusy, TableExists, TableMissing
from tablegate.gateway.model.tables.indexes import BaseIndex
from tablegate.gateway.model.tables.tables import Rules, State, Table

# Account and service


_ENDPOINT_MINUTES = 1440


async def describe_limits(call: CallContext) -> Answer:
    """DescribeLimits: the service's default quotas."""
    return {
        "AccountMaxReadCapacityUnits": limits.ACCOUNT_READ_UNITS,
        "AccountMaxWriteCapacityUnits": limits.ACCOUNT_WRITE_UNITS,
        "TableMaxReadCapacityUnits": limits.TABLE_READ_UNITS,
        "TableMaxWriteCapacityUnits": limits.TABLE_WRITE_UNITS,
    }


async def describe_endpoints(call: CallContext) -> Answer:
    """DescribeEndpoints: the only endpoint, by the host name in the request."""
    return {
        "Endpoints": [{"Address": call.headers.get("host", ""), "CachePeriodInMinutes": _ENDPOINT_MINUTES}]
    }


# Tables


async def find_table(call: CallContext) -> Table:
    """Return the current table that TableName names.

    Raises TableMissing, also for a table that is still being filled by a restore or as a replica.
    """
    table = await table_commands.FindTable(call.caller.namespace, own_name(call, call.input["TableName"]))
    is_found = call.operation in _OF_FILLED or "ReplicaUpdates" in call.input
    if is_being_filled(table, call.gateway.now_ms()) and not is_found:
        raise TableMissing(table.name)
    return table


_OF_FILLED = ("DescribeTable", "DeleteTable")


# CreateTable


async def create_table(call: CallContext) -> Answer:
    """CreateTable: create a table with its indexes and describe it.

    An existing name is ResourceInUseException, in any state of that table. Raises ServiceError, TableExists.
    """
    arguments, now_ms = call.input, call.gateway.now_ms()
    command = new_table(call)
    try:
        table = await command
    except TableBusy as busy:
        raise TableExists(busy.name) from busy
    except TableExists as taken:
        [existing] = await all_of([table_commands.FindTable(command.namespace, taken.name)])
        if isinstance(existing, Table) and is_being_restored(existing, now_ms):
            raise running_changes.in_use(f"Table is being used: {taken.name}") from taken
        if isinstance(existing, Table) and existing.state_at(now_ms) is State.CREATING:
            raise TableBusy(taken.name, State.CREATING.value) from taken
        raise
    resource_policies.apply_policies(call, table)
    description = describe(in_state(State.CREATING, table, now_ms), None, call.caller, now_ms)
    return {"TableDescription": _as_created(description, arguments)}


def new_table(call: CallContext) -> table_commands.CreateTable:
    """Return the table that the members of CreateTable define. Raises ServiceError."""
    arguments, now_ms = call.input, call.gateway.now_ms()
    other_indexes = [index for extension in EXTENSIONS for index in extension.new_indexes(arguments)]
    types = table_definitions.defined_types(arguments)
    return table_commands.CreateTable(
        DIALECT,
        call.caller.namespace,
        own_name(call, arguments["TableName"]),
        table_definitions.key_schema(arguments["KeySchema"], types),
        _new_indexes(arguments),
        Rules(stream=table_settings.stream_of_new_table(arguments.get("StreamSpecification"), now_ms)),
        {
            **_new_properties(call, now_ms).document(),
            **resource_policies.of_new_table(call, own_name(call, arguments["TableName"])),
        },
        other_indexes=tuple(other_indexes),
    )


def _new_indexes(arguments: Mapping[str, Any]) -> tuple[Any, ...]:
    types = table_definitions.defined_types(arguments)
    mode = arguments.get("BillingMode", "PROVISIONED")
    local = [
        table_definitions.new_local_index(item, types) for item in arguments.get("LocalSecondaryIndexes", ())
    ]
    return (
        *local,
        *(
            table_definitions.new_global_index(item, types, mode)
            for item in arguments.get("GlobalSecondaryIndexes", ())
        ),
    )


def _new_properties(call: CallContext, now_ms: int) -> TableProperties:
    arguments = call.input
    return replace(
        billing.of_new_table(arguments, now_ms),
        table_class=arguments.get("TableClass"),
        deletion_protection=arguments.get("DeletionProtectionEnabled", False),
        encryption_key=table_settings.encryption_key_of(call, arguments.get("SSESpecification", {})),
        replication_mode=_replication_mode(arguments, "ENABLED_WITH_OVERRIDES"),
        tags=tags.new_tags(arguments.get("Tags", ())),
    )


def _as_created(description: dict[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the members that DescribeTable has and CreateTable lacks (ack-api-quirks 033, 138)."""
    if "WarmThroughput" not in arguments:
        del description["WarmThroughput"]
    for name in ("BillingModeSummary", "TableThroughputModeSummary"):
        if name in description:
            del description[name]["LastUpdateToPayPerRequestDateTime"]
    for index in description.get("GlobalSecondaryIndexes", ()):
        del index["WarmThroughput"]
    return description


# DescribeTable, ListTables


async def describe_table(call: CallContext) -> Answer:
    """DescribeTable: describe a table.

    Counts are exact for small tables and cached for large ones. Raises TableMissing.
    """
    table = await find_table(call)
    statistics = await table_commands.CountRows(table)
    now_ms = call.gateway.now_ms()
    description = describe(table, statistics, call.caller, now_ms)
    running_changes.show_deleting(description, running_changes.deleting(table, now_ms).get("deleting", {}))
    return {"Table": description}


async def list_tables(call: CallContext) -> Answer:
    """ListTables: a page of names, in byte order. LastEvaluatedTableName is absent from the last page."""
    limit = call.input.get("Limit", limits.LIST_TABLES_NAMES)
    after = call.input.get("ExclusiveStartTableName", "")
    tables = await table_commands.ListTables(call.caller.namespace, after, limit + 1)
    names = [table.name for table in tables]
    answer: dict[str, Any] = {"TableNames": names[:limit]}
    if len(names) > limit:
        answer["LastEvaluatedTableName"] = names[limit - 1]
    return answer


# UpdateTable


class _TableUpdate(NamedTuple):
    """The parts of an UpdateTable that are known before the table is altered."""

    properties: TableProperties
    rules: Rules | None
    added: tuple[table_commands.NewIndex, ...]
    added_others: tuple[BaseIndex, ...]
    """Indexes of other kinds."""
    dropped: tuple[str, ...]
    throughput: Mapping[str, IndexProperties]
    """The new properties of indexes whose throughput changes."""
    is_slow: Mapping[str, bool]
    """For each member: True if its change takes the delay of the control plane."""

    @property
    def instant(self) -> bool:
        """True if no part of it takes time."""
        return not (self.added or self.added_others or self.dropped or any(self.is_slow.values()))


class CheckedUpdate(NamedTuple):
    """An UpdateTable that its table permits."""

    command: table_commands.AlterTable
    describe: Callable[[Table], Answer]
    """Returns the answer, for the altered table."""


async def update_table(call: CallContext) -> Answer:
    """UpdateTable: change throughput, indexes, the stream or a setting. Raises ServiceError, TableMissing, TableBusy."""
    update = await check_update(call)
    altered = await unless_changing(call, update.command.table, update.command)
    return update.describe(altered)


async def check_update(call: CallContext) -> CheckedUpdate:
    """Check an UpdateTable. Raises ServiceError, TableMissing.

    The answer describes the table before the change, with the states of the parts being changed.
    """
    arguments, now_ms = call.input, call.gateway.now_ms()
    table = await find_table(call)
    update = _update_of(call, table)
    statistics = await table_commands.CountRows(table)
    before = describe(table, statistics, call.caller, now_ms)
    dropped_indexes = running_changes.being_deleted(before, update.dropped)

    def description_of(altered: Table) -> Answer:
        description = describe(in_state(State.UPDATING, altered, now_ms), statistics, call.caller, now_ms)
        if update.instant and not update.is_slow.keys() & arguments:
            description["TableStatus"] = altered.state_at(now_ms).value.upper()
        _show_setting_changes(call, description, before)
        for index in description.get("GlobalSecondaryIndexes", ()):
            if index["IndexName"] in update.throughput:
                index["IndexStatus"] = "UPDATING"
        running_changes.show_deleting(description, dropped_indexes)
        return {"TableDescription": description}

    return CheckedUpdate(_alter_command(call, table, update, dropped_indexes), description_of)


def _update_of(call: CallContext, table: Table) -> _TableUpdate:
    arguments, now_ms = call.input, call.gateway.now_ms()
    current = TableProperties.of(table)
    properties = billing.of_table(table, arguments, now_ms)
    added, dropped = table_definitions.index_changes(table, arguments, properties.billing, now_ms)
    added_others: tuple[BaseIndex, ...] = ()
    for extension in EXTENSIONS:
        new, old = extension.index_changes(table, arguments, properties.billing, now_ms)
        added_others, dropped = added_others + new, dropped + old
    updates = arguments.get("GlobalSecondaryIndexUpdates", ())
    throughput = [update["Update"] for update in updates if "Update" in update]
    index_properties = billing.of_indexes(table, properties.billing, throughput, now_ms)
    properties = _with_settings(call, properties, dropped, table.state_at(now_ms) is State.UPDATING)
    is_slow = {
        "BillingMode": properties.billing != current.billing,
        "ProvisionedThroughput": "ProvisionedThroughput" in arguments,
        "StreamSpecification": "StreamSpecification" in arguments,
        "TableClass": properties.table_class != current.table_class,
    }
    if table.rules.replication is not None:  # TABLE-263
        is_slow["DeletionProtectionEnabled"] = properties.deletion_protection != current.deletion_protection
    rules = table_settings.with_stream(table, arguments.get("StreamSpecification"), now_ms)
    return _TableUpdate(properties, rules, added, added_others, dropped, index_properties, is_slow)


def _alter_command(
    call: CallContext, table: Table, update: _TableUpdate, dropped_indexes: Mapping[str, Any]
) -> table_commands.AlterTable:
    """Return the command of an update. `dropped_indexes`: descriptions of the indexes that it drops."""
    arguments, current, properties = call.input, TableProperties.of(table), update.properties
    is_updating = table.state_at(call.gateway.now_ms()) is State.UPDATING
    if not update.instant:
        change = running_changes.started_change(arguments, update.rules or table.rules, current.billing)
        if dropped_indexes:
            change |= {"deleting": dropped_indexes, "insights": current.insights.get(change["index"])}
        properties = replace(properties, change=change)
    elif not is_updating:
        properties = replace(properties, change=None)
    return table_commands.AlterTable(
        DIALECT,
        table,
        update.rules,
        properties.document(),
        update.added,
        update.dropped,
        {name: item.document() for name, item in update.throughput.items() if name not in update.dropped},
        update.instant and not (is_updating and arguments.keys() & NOT_MEANWHILE),
        update.added_others,
    )


def _with_settings(
    call: CallContext, properties: TableProperties, dropped: tuple[str, ...], is_updating: bool
) -> TableProperties:
    """Return the properties with the settings of an UpdateTable. Raises ServiceError.

    `dropped`: the indexes that it drops. `is_updating`: the table is being changed.
    """
    arguments = call.input
    properties = replace(
        properties,
        deletion_protection=arguments.get("DeletionProtectionEnabled", properties.deletion_protection),
        replication_mode=_replication_mode(arguments, properties.replication_mode),
        disassociation_protection=arguments.get(
            "DisassociationProtectionEnabled", properties.disassociation_protection
        ),
        insights={name: insights for name, insights in properties.insights.items() if name not in dropped},
    )
    if "TableClass" in arguments and not is_updating:
        delay_ms = round(call.gateway.settings.table_creation_delay * 1000)
        properties = table_settings.with_table_class(
            properties, arguments["TableClass"], call.gateway.now_ms(), delay_ms
        )
    return table_settings.with_encryption(call, properties) if "SSESpecification" in arguments else properties


NOT_MEANWHILE = frozenset(
    {"BillingMode", "ProvisionedThroughput", "OnDemandThroughput", "StreamSpecification", "TableClass"}
)
"""Members of UpdateTable that are rejected while the table is being changed, even if they change nothing."""


async def unless_changing(call: CallContext, table: Table, command: Command[R]) -> R:
    """Run a command on a table. If a change is running, the error names it. Raises ServiceError, TableBusy."""
    try:
        return await command
    except TableBusy as busy:
        if busy.state != State.UPDATING.value:
            raise
        running = TableProperties.of(table).change
        raise running_changes.refusal(table.name, running, call.input, call.operation) from busy


def _show_setting_changes(call: CallContext, description: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Show the settings of an UpdateTable in its answer: maxima as requested, others as before."""
    arguments = call.input
    if arguments.get("OnDemandThroughput"):
        description["OnDemandThroughput"] = {
            **before.get("OnDemandThroughput", {}),
            **arguments["OnDemandThroughput"],
        }
    if "WarmThroughput" in arguments:
        description["WarmThroughput"] = {**before["WarmThroughput"], "Status": "UPDATING"}
    if "SSESpecification" in arguments:
        description["SSEDescription"] = {**before.get("SSEDescription", {}), "Status": "UPDATING"}
        description["TableStatus"] = "ACTIVE"


# DeleteTable


async def delete_table(call: CallContext) -> Answer:
    """DeleteTable: drop a table. Raises ServiceError, TableMissing, TableBusy.

    The answer omits keys, indexes and creation time (rule 40).
    """
    now_ms = call.gateway.now_ms()
    table = await find_table(call)
    if TableProperties.of(table).deletion_protection:
        raise validation(
            "Resource cannot be deleted as it is currently protected against deletion. Disable deletion protection first."
        )
    is_there = table.state_at(now_ms) in (State.ACTIVE, State.UPDATING)
    if is_there and not all(index.is_active(now_ms) for index in table.all_indexes):
        raise running_changes.in_use(
            "Cannot delete table while indexes are being created, updated, or deleted."
        )
    if table_settings.is_encryption_changing(TableProperties.of(table), now_ms):
        raise running_changes.refusal(table.name, None, call.input, call.operation)
    statistics = await table_commands.CountRows(table)
    dropped_table = await unless_changing(call, table, table_commands.DropTable(table))
    description = describe(in_state(State.DELETING, dropped_table, now_ms), statistics, call.caller, now_ms)
    for name in _NOT_OF_DELETED:
        description.pop(name, None)
    return {"TableDescription": description}


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


def _replication_mode(arguments: Mapping[str, Any], current: str) -> str:
    """Return the mode in which settings of a global table are copied to its regions.

    ENABLED_WITH_OVERRIDES is the default in descriptions. A request may not set it.
    """
    mode: str | None = arguments.get("GlobalTableSettingsReplicationMode")
    if mode == "ENABLED_WITH_OVERRIDES":
        text = "Only ENABLED and DISABLED settings replication are allowed"
        raise validation(
            "Value 'ENABLED_WITH_OVERRIDES' at 'GlobalTableSettingsReplicationMode' failed to satisfy constraint: "
            + text
        )
    return current if mode is None else mode


# Descriptions


def in_state(state: State, table: Table, now_ms: int) -> Table:
    """Return the table in the state of a running change, which the answer to any change shows."""
    until_ms = max(table.busy_until_ms, now_ms + 1)
    table_indexes, other_indexes = table.indexes, table.other_indexes
    if state is State.CREATING:
        table_indexes = tuple(replace(index, busy_until_ms=until_ms) for index in table_indexes)
        other_indexes = tuple(replace(index, busy_until_ms=until_ms) for index in other_indexes)
    return replace(
        table, state=state, busy_until_ms=until_ms, indexes=table_indexes, other_indexes=other_indexes
    )
