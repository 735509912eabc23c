"""Global tables of version 2019.11.21: replicas of a table in other regions, managed by UpdateTable.

Each region is a namespace of its own. So replicas exist only with separate namespaces (`--namespaces separate` or
`keys`). gateway/features/global_tables/replication.py copies rows between them. This module sets the settings of the whole
group in each of its tables: time to live, indexes, billing, throughput, class and encryption. Texts: ack-api-quirks
(live service, October 2026). Shapes: botocore 1.44.5.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.call import Answer, CallContext, own_name
from tablegate.adapters.dynamodb.features.global_tables import replica_rules, replica_settings
from tablegate.adapters.dynamodb.features.global_tables.replica_rules import STRONG, in_region
from tablegate.adapters.dynamodb.tables import running_changes, table_settings, tables, time_to_live
from tablegate.adapters.dynamodb.tables.properties import ON_DEMAND, TableProperties
from tablegate.adapters.dynamodb.tables.table_definitions import describe
from tablegate.adapters.dynamodb.tables.tables import find_table, in_state
from tablegate.adapters.dynamodb.wire import error_texts
from tablegate.adapters.dynamodb.wire.arns import key_arn
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.gateway.dialects.coroutines import all_of
from tablegate.gateway.features.global_tables.replica_commands import AddReplicas, NewReplica, RemoveReplicas
from tablegate.gateway.model.commands.table_commands import (
    AlterTable,
    AlterTables,
    CountRows,
    CreateTable,
    FindTable,
)
from tablegate.gateway.model.errors import TableBusy, TableExists
from tablegate.gateway.model.tables.tables import State, Table

# Members that UpdateTable sets in all regions.
_OF_GROUP = (
    "AttributeDefinitions",
    "BillingMode",
    "ProvisionedThroughput",
    "OnDemandThroughput",
    "WarmThroughput",
    "GlobalSecondaryIndexUpdates",
    "TableClass",
    "GlobalTableSettingsReplicationMode",
)
_WAITING = tables.NOT_MEANWHILE | {"GlobalSecondaryIndexUpdates"}
_SHOWN_OF_GROUP = ("GlobalTableVersion", "GlobalTableSettingsReplicationMode", "Replicas")

Wire = Mapping[str, Any]


# UpdateTable, DeleteTable, UpdateTimeToLive of a table with replicas


async def update_table(call: CallContext) -> Answer:
    """UpdateTable: change a table or its replicas. Settings of the group are changed in all regions.

    Raises ServiceError and the errors of the change of a single table.
    """
    arguments = call.input
    if "ReplicaUpdates" in arguments:  # required for any change of replicas (table_rules.py)
        return await _update_replicas(call)
    [table] = await all_of([FindTable(call.caller.namespace, own_name(call, arguments["TableName"]))])
    if not isinstance(table, Table) or table.rules.replication is None:
        return await tables.update_table(call)
    replica_settings.check_new_indexes(table, arguments)
    is_coming = bool(replica_rules.incomplete_regions(table, call.gateway.now_ms()))
    # Switching off the stream has another error text.
    if is_coming and arguments.get("StreamSpecification", {}).get("StreamEnabled") is not False:
        raise replica_rules.in_use()
    shared = {name: arguments[name] for name in _OF_GROUP if name in arguments}
    specification = arguments.get("SSESpecification")
    if specification is not None and "KMSMasterKeyId" not in specification:
        shared["SSESpecification"] = specification
    elsewhere = await _calls_in_other_regions(call)
    is_shared = bool(set(shared) - {"AttributeDefinitions"})
    if is_shared and table.state_at(call.gateway.now_ms()) is State.ACTIVE:  # otherwise another error applies
        await _refuse_changing(elsewhere, shared)
    update = await tables.check_update(call)
    alterations = {call.caller.region: update.command}
    for region_call in elsewhere:
        region = region_call.caller.region
        if is_shared:
            input_ = {**shared, "TableName": region_call.input["TableName"]}
            alterations[region] = (await tables.check_update(region_call._replace(input=input_))).command
        elif "SSESpecification" in arguments:
            alterations |= await _alteration(region_call)
    settings = _shared_settings(call, alterations)

    def change(properties: TableProperties) -> TableProperties:
        return replica_settings.with_new_indexes(call, arguments, _with_settings(settings, properties))

    commands = tuple(_with_change(alteration, change) for alteration in alterations.values())
    altered, *_ = await tables.unless_changing(call, table, AlterTables(commands))
    return update.describe(altered)


def _shared_settings(call: CallContext, alterations: Mapping[str, AlterTable]) -> dict[str, Wire]:
    """Return the settings of replicas, by region, that an UpdateTable changes and that every region stores.

    `alterations`: its changes of tables, by region.
    """
    arguments = call.input
    settings: dict[str, Wire] = {}
    if {"SSESpecification", "TableClass"} & arguments.keys():
        settings = {
            region: replica_settings.own_settings(_properties_after(alteration))
            for region, alteration in alterations.items()
        }
    if "ProvisionedThroughput" in arguments:
        settings[call.caller.region] = {**settings.get(call.caller.region, {}), "read_units": None}
    return settings


async def _refuse_changing(calls: Sequence[CallContext], shared: Wire) -> None:
    """Check that all tables of a group, one for each call, can be changed now. Raises ServiceError."""
    for call in calls:
        table = await find_table(call)
        now_ms = call.gateway.now_ms()
        is_changing = table.state_at(now_ms) is State.UPDATING and _WAITING & shared.keys()
        is_encrypted = "SSESpecification" in shared and table_settings.is_encryption_changing(
            TableProperties.of(table), now_ms
        )
        if is_changing or is_encrypted:
            raise replica_rules.in_use()


def _with_settings(settings_by_region: Mapping[str, Wire], properties: TableProperties) -> TableProperties:
    """Return the properties with more settings of replicas, by region."""
    settings = dict(properties.replicas)
    for region, region_settings in settings_by_region.items():
        settings[region] = {**settings.get(region, {}), **region_settings}
    return replace(properties, replicas=settings)


async def update_time_to_live(call: CallContext) -> Answer:
    """UpdateTimeToLive, in all regions. Raises ServiceError, TableMissing."""
    table = await find_table(call)
    for region in replica_rules.incomplete_regions(table, call.gateway.now_ms()):
        raise replica_rules.being_added(table, region)
    alterations = []
    for region_call in [call, *await _calls_in_other_regions(call)]:
        alterations.append(await time_to_live.check_update(region_call))
    await AlterTables(tuple(alterations))
    return {"TimeToLiveSpecification": call.input["TimeToLiveSpecification"]}


async def delete_table(call: CallContext) -> Answer:
    """DeleteTable: the table of this region leaves its group. Raises ServiceError, TableMissing, TableBusy."""
    table = await find_table(call)
    rule = table.rules.replication
    if rule is not None:
        if rule.strong:
            raise validation(f"Deletion of only one table replica is not supported for {STRONG}.")
        if table.state_at(call.gateway.now_ms()) is State.CREATING:
            raise running_changes.in_use(f"Table: {table.name} is being used.")
        replica_rules.refuse_protected(table, call.caller.region)
        replica_rules.refuse_source(call, table)
    before = await _description(call, table)
    answer: Any = await tables.delete_table(call)
    answer["TableDescription"] |= {name: before[name] for name in _SHOWN_OF_GROUP if name in before}
    return answer


async def _calls_in_other_regions(call: CallContext) -> list[CallContext]:
    """Return the call about a table once for each of its other regions."""
    table = await find_table(call)
    rule = table.rules.replication
    input_ = {**call.input, "TableName": table.name}
    others = () if rule is None else rule.others
    return [call._replace(caller=in_region(call, region), input=input_) for region in others]


# ReplicaUpdates


async def _update_replicas(call: CallContext) -> Answer:
    arguments = call.input
    table = await find_table(call)
    now_ms = call.gateway.now_ms()
    updates = [next(iter(update.items())) for update in arguments["ReplicaUpdates"]]
    witness = [
        next(iter(update.items())) for update in arguments.get("GlobalTableWitnessUpdates", ()) if update
    ]
    replica_rules.check_regions(call, table, updates)
    rule = table.rules.replication
    if arguments.get("MultiRegionConsistency") == "STRONG" or witness or (rule is not None and rule.strong):
        replica_rules.check_strong(call, table, updates, witness)
    elif len({entry["RegionName"] for action, entry in updates if action != "Update"}) > 1:
        raise validation(
            "Update table operation with more than one create or delete replica actions not allowed"
        )
    replica_rules.refuse_busy(table, updates, now_ms)
    before = await _description(call, table)
    actions = {action for action, _ in updates}
    if actions == {"Create"}:
        table = await _create(call, table, _by_region(updates), witness)
    elif actions == {"Delete"}:
        await _delete(call, table, _by_region(updates))
        return {"TableDescription": {**before, "TableStatus": "UPDATING"}}
    elif actions == {"Disassociate"}:
        table = await _disassociate(call, table, updates[0][1])
    else:
        await _override(call, table, [entry for _, entry in updates])
        return {"TableDescription": {**before, "TableStatus": "UPDATING"}}
    description = await _description(call, table)
    # A replica being added is shown a moment later.
    description["Replicas"] = before.get("Replicas", [])
    return {"TableDescription": {**description, "TableStatus": "UPDATING"}}


def _by_region(updates: Sequence[tuple[str, Wire]]) -> list[Wire]:
    return list({entry["RegionName"]: entry for _, entry in updates}.values())


async def _description(call: CallContext, table: Table) -> dict[str, Any]:
    statistics = await CountRows(table)
    now_ms = call.gateway.now_ms()
    return describe(in_state(State.UPDATING, table, now_ms), statistics, call.caller, now_ms)


# Adding


async def _create(
    call: CallContext, table: Table, entries: Sequence[Wire], witness: Sequence[tuple[str, Wire]]
) -> Table:
    properties_before = TableProperties.of(table)
    if properties_before.billing != ON_DEMAND and table.rules.replication is None:
        raise validation("Table write capacity should either be Pay-Per-Request or AutoScaled.")
    replica_rules.check_keys(call, properties_before, entries)
    for entry in entries:
        outcomes = await all_of([FindTable(in_region(call, entry["RegionName"]).namespace, table.name)])
        if isinstance(outcomes[0], Table | TableBusy):
            raise replica_rules.already_there(table)
    table = await _with_stream(call, table)
    now_ms = call.gateway.now_ms()
    settings = _settings_with(call, table, entries)
    new_replicas = [_new_replica(call, table, entry, settings) for entry in entries]
    strong = call.input.get("MultiRegionConsistency") == "STRONG"
    sourced = {**properties_before.sourced, **{entry["RegionName"]: now_ms for entry in entries}}
    own_region = call.caller.region

    def with_settings(region: str, properties: TableProperties) -> TableProperties:
        new_sourced = sourced if region == own_region else properties.sourced
        return replace(properties, replicas=settings, sourced=new_sourced)

    alterations = await _alterations(call, with_settings)
    witness_region = witness[0][1]["RegionName"] if witness else ""
    try:
        return await AddReplicas(table, own_region, tuple(new_replicas), strong, witness_region, alterations)
    except (TableExists, TableBusy):
        raise replica_rules.already_there(table) from None


def _settings_with(call: CallContext, table: Table, entries: Sequence[Wire]) -> dict[str, Wire]:
    """Return the settings of replicas, including those being added."""
    properties = TableProperties.of(table)
    own = properties.replicas.get(call.caller.region, {})
    settings = {
        **properties.replicas,
        call.caller.region: {**own, **replica_settings.own_settings(properties)},
    }
    delay_ms = round(call.gateway.settings.table_creation_delay * 1000)
    has_service_key = properties.encryption_key == replica_rules.service_key(call, call.caller.region)
    for entry in entries:
        region, key = entry["RegionName"], entry.get("KMSMasterKeyId")
        if has_service_key:
            key = replica_rules.service_key(call, region)
        settings[region] = {
            **replica_settings.after(table, properties, entry),
            **_class_settings(call, properties, entry),
            "encryption_key": key and key_arn(in_region(call, region), key),
            "creating_until_ms": call.gateway.now_ms() + delay_ms,
        }
    return settings


async def _with_stream(call: CallContext, table: Table) -> Table:
    """Return the table with a stream, which replicas need. An existing stream is kept."""
    if table.rules.stream is not None and table.rules.stream.enabled:
        return table
    rule = table_settings.new_stream_rule("NEW_AND_OLD_IMAGES", call.gateway.now_ms())
    rules = replace(table.rules, stream=rule)
    return await AlterTable(DIALECT, table, rules, instant=True)


def _new_replica(call: CallContext, table: Table, entry: Wire, settings: Wire) -> NewReplica:
    """Return the table of a new region.

    Keys, indexes, billing, expiry and view type of the stream are the same. Other properties, such as tags and
    protection, have their defaults.
    """
    region = entry["RegionName"]
    stream = table.rules.stream
    assert stream is not None
    region_settings = settings[region]
    properties = replace(
        TableProperties.of(table),
        deletion_protection=False,
        encryption_key=region_settings["encryption_key"],
        encryption_change=None,
        former_class={},
        class_changes=(),
        table_class=region_settings.get("table_class", TableProperties.of(table).table_class),
        table_class_at_ms=region_settings.get("table_class_at_ms"),
        tags={},
        stream_tags={},
        insights={},
        kinesis=(),
        sourced={},
        replicas=settings,
        restore=None,
    )
    create_command: CreateTable = CreateTable.like(table, in_region(call, region).namespace, table.name)
    create_command = replace(
        create_command,
        dialect=DIALECT,
        rules=replace(
            create_command.rules, stream=table_settings.new_stream_rule(stream.view, call.gateway.now_ms())
        ),
        properties={**create_command.properties, **properties.document()},
    )
    return NewReplica(region, create_command)


async def _override(call: CallContext, table: Table, entries: Sequence[Wire]) -> None:
    """Change the settings of replicas, one after the other. Raises ServiceError."""
    properties = TableProperties.of(table)
    classes: dict[str, dict[str, Any]] = {}
    for entry in entries:
        region = entry["RegionName"]
        if "KMSMasterKeyId" in entry:
            raise validation(f"{error_texts.INVALID}KMSMasterKeyId must be specified for each replica.")
        replica_settings.check(properties, entry)
        table_class = _class_settings(call, properties, entry)
        classes[region] = {**classes.get(region, {}), **table_class}
        settings = {**replica_settings.after(table, properties, entry), **table_class}
        properties = replace(properties, replicas={**properties.replicas, region: settings})

    def with_overrides(region: str, of_region: TableProperties) -> TableProperties:
        return replace(of_region, replicas=properties.replicas, **classes.get(region, {}))

    await change_all_regions(call, with_overrides)


def _class_settings(call: CallContext, properties: TableProperties, entry: Wire) -> dict[str, Any]:
    """Return the class that an update sets. Empty if the replica has always had it."""
    table_class = entry.get("TableClassOverride")
    before = properties.replicas.get(entry["RegionName"], {}).get("table_class")
    if table_class is None or (before is None and table_class == (properties.table_class or "STANDARD")):
        return {}
    return {"table_class": table_class, "table_class_at_ms": call.gateway.now_ms()}


RegionalChange = Callable[[str, TableProperties], TableProperties]
"""Returns the new properties of the table in a region."""


async def change_all_regions(call: CallContext, change: RegionalChange) -> None:
    """Change the properties of a table in all its regions."""
    await AlterTables(await _alterations(call, change))


async def _alterations(
    call: CallContext, change: RegionalChange, removed_regions: Collection[str] = ()
) -> tuple[AlterTable, ...]:
    """Return the commands that change the properties in all regions except removed ones."""
    alterations: dict[str, AlterTable] = {}
    for region_call in [call, *await _calls_in_other_regions(call)]:
        if region_call.caller.region not in removed_regions:
            alterations |= await _alteration(region_call)
    return tuple(
        _with_change(alteration, partial(change, region)) for region, alteration in alterations.items()
    )


async def _alteration(call: CallContext) -> dict[str, AlterTable]:
    """Return region -> a command that changes nothing. Empty for a table being created, which has its properties."""
    table = await FindTable(call.caller.namespace, own_name(call, call.input["TableName"]))
    if table.state_at(call.gateway.now_ms()) is State.CREATING:
        return {}
    return {call.caller.region: AlterTable(DIALECT, table, properties={}, instant=True)}


def _properties_after(alteration: AlterTable) -> TableProperties:
    table = alteration.table
    return TableProperties.of(
        replace(table, properties={**table.properties, **(alteration.properties or {})})
    )


def _with_change(alteration: AlterTable, change: Callable[[TableProperties], TableProperties]) -> AlterTable:
    return replace(alteration, properties=change(_properties_after(alteration)).document())


# Removing


async def _delete(call: CallContext, table: Table, entries: Sequence[Wire]) -> None:
    names = [entry["RegionName"] for entry in entries]
    for region in names:
        namespace = in_region(call, region).namespace
        [replica] = await all_of([FindTable(namespace, table.name)])
        if not isinstance(replica, Table):
            continue
        replica_rules.refuse_protected(replica, region)
        if not (table.rules.replication is not None and table.rules.replication.strong):
            replica_rules.refuse_source(call, replica)
    replica_rules.refuse_incomplete(table, call.gateway.now_ms())
    rule, settings = table.rules.replication, TableProperties.of(table).replicas
    is_group = rule is not None and not set(rule.others) <= set(names)
    kept = {region: settings[region] for region in settings if is_group and region not in names}
    alterations = await _alterations(
        call, lambda _, properties: _without(properties, kept, names), removed_regions=names
    )
    await RemoveReplicas(table, tuple(names), alterations=alterations)


def _without(properties: TableProperties, settings: Wire, names: Sequence[str]) -> TableProperties:
    sourced = {region: at for region, at in properties.sourced.items() if region not in names}
    return replace(properties, replicas=settings, sourced=sourced)


async def _disassociate(call: CallContext, table: Table, entry: Wire) -> Table:
    """Remove the caller's replica from its group and keep the table. Raises ServiceError."""
    rule = table.rules.replication
    if rule is None or entry["RegionName"] != call.caller.region:
        raise validation(
            "Update global table operation failed because one or more replicas were not part of the global table. Please retry "
            f"the request without these replicas: [{entry['RegionName']}]."
        )
    if TableProperties.of(table).disassociation_protection:
        text = "Replica cannot be disassociated while DisassociationProtectionEnabled is true"
        raise validation(error_texts.INVALID + text)
    return await RemoveReplicas(table, (rule.name,), keeps=True)
