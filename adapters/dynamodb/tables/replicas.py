"""Global tables of version 2019.11.21: replicas of a table in other regions, added, changed and removed by UpdateTable.

A region is a namespace of its own, so there are replicas only where namespaces are kept apart (`--namespaces separate` or
`keys`). Rows go from one to the others in gateway/engine/replicating.py. What is set for the whole group - time to live,
indexes, billing, throughput, class, encryption - is set in each of its tables here. Texts: ack-api-quirks (live service,
October 2026); shapes: botocore 1.44.5; regions of strong consistency: developer guide, "Multi-Region strong consistency".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapters.dynamodb import DIALECT
from adapters.dynamodb.tables import tables, time_to_live
from adapters.dynamodb.tables.descriptions import describe, replica_status
from adapters.dynamodb.tables.properties import INSIGHTS, ON_DEMAND, TableProperties
from adapters.dynamodb.tables.tables import find_table, in_state, in_style, stream_rule
from adapters.dynamodb.wire.calls import Answer, Call, Caller, own_name
from adapters.dynamodb.wire.errors import ServiceError, validation
from adapters.dynamodb.wire.resources import key_arn
from gateway.engine.engine import one
from gateway.model.commands import (
    AddReplicas,
    AlterTable,
    CountRows,
    CreateTable,
    Exchange,
    FindTable,
    NewReplica,
    RemoveReplicas,
)
from gateway.model.errors import TableBusy, TableExists
from gateway.model.restored_tables import like
from gateway.model.tables import State, Table

_INVALID = "One or more parameter values were invalid: "
_IN_USE = "The resource which you are attempting to change is in use."
_STRONG = "global tables with MultiRegionConsistency set to STRONG"
_DAY_MS = 86_400_000
# Amazon DynamoDB endpoints and quotas (AWS General Reference).
REGIONS = (
    "af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1", "ap-south-2",
    "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4", "ap-southeast-5", "ap-southeast-6", "ap-southeast-7",
    "ca-central-1", "ca-west-1", "eu-central-1", "eu-central-2", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1",
    "eu-west-2", "eu-west-3", "il-central-1", "me-central-1", "me-south-1",
    "mx-central-1", "sa-east-1", "us-east-1", "us-east-2", "us-west-1",
    "us-west-2",
)  # fmt: skip
_STRONG_SETS = (
    frozenset({"us-east-1", "us-east-2", "us-west-2"}),
    frozenset({"eu-west-1", "eu-west-2", "eu-west-3", "eu-central-1"}),
    frozenset({"ap-northeast-1", "ap-northeast-2", "ap-northeast-3"}),
)
# What an UpdateTable sets in all regions.
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

Wire = Mapping[str, Any]


# UpdateTable, DeleteTable, UpdateTimeToLive: what they are for a table that has replicas


def update_table(call: Call) -> Exchange[Answer]:
    """UpdateTable: change a table, and what its group has in common in all of it; or its replicas. Raises ServiceError and what
    the change of a single table does."""
    given = call.input
    if "ReplicaUpdates" in given or "GlobalTableWitnessUpdates" in given:
        return (yield from _update_replicas(call))
    if "MultiRegionConsistency" in given:
        raise validation("MultiRegionConsistency parameter is unsupported on existing global table")
    answer = yield from tables.update_table(call)
    shared = {name: given[name] for name in _OF_GROUP if name in given}
    specification = given.get("SSESpecification")
    if specification is not None and "KMSMasterKeyId" not in specification:
        shared["SSESpecification"] = specification
    if set(shared) - {"AttributeDefinitions"}:
        for each in (yield from _elsewhere(call)):
            yield from tables.update_table(
                each._replace(input={**shared, "TableName": each.input["TableName"]})
            )
    return answer


def update_time_to_live(call: Call) -> Exchange[Answer]:
    """UpdateTimeToLive: in all regions. Raises ServiceError, TableMissing."""
    answer = yield from time_to_live.update_time_to_live(call)
    for each in (yield from _elsewhere(call)):
        yield from time_to_live.update_time_to_live(each)
    return answer


def delete_table(call: Call) -> Exchange[Answer]:
    """DeleteTable: the table of this region leaves its group. Raises ServiceError, TableMissing, TableBusy."""
    table = yield from find_table(call)
    rule = table.rules.replication
    if rule is not None:
        if rule.strong:
            raise validation(f"Deletion of only one table replica is not supported for {_STRONG}.")
        _refuse_source(call, table)
    return (yield from tables.delete_table(call))


def _elsewhere(call: Call) -> Exchange[list[Call]]:
    """A call about a table as it would be made in each other region of the table."""
    table = yield from find_table(call)
    rule = table.rules.replication
    input_ = {**call.input, "TableName": table.name}
    peers = [] if rule is None else rule.peers
    return [call._replace(caller=_in_region(call, peer.name), input=input_) for peer in peers]


def _in_region(call: Call, region: str) -> Caller:
    """The caller as it would be in another region."""
    known = call.caller
    namespace = call.gateway.credentials.aws_namespace(known.access_id, known.account, region)
    return replace(known, region=region, namespace=namespace)


# ReplicaUpdates


def _update_replicas(call: Call) -> Exchange[Answer]:
    given = call.input
    table = yield from find_table(call)
    now_ms = call.gateway.now_ms()
    updates = [next(iter(update.items())) for update in given.get("ReplicaUpdates", ())]
    witness = [next(iter(update.items())) for update in given.get("GlobalTableWitnessUpdates", ()) if update]
    _check_regions(call, table, [*updates, *witness])
    rule = table.rules.replication
    if given.get("MultiRegionConsistency") == "STRONG" or witness or (rule is not None and rule.strong):
        _check_strong(call, table, updates, witness)
    elif len({entry["RegionName"] for action, entry in updates if action != "Update"}) > 1:
        raise validation(
            "Update table operation with more than one create or delete replica actions not allowed"
        )
    _refuse_busy(table, updates, now_ms)
    before = yield from _described(call, table)
    actions = {action for action, _ in updates} or {action for action, _ in witness}
    if actions == {"Create"}:
        table = yield from _create(call, table, _once(updates), witness)
    elif actions == {"Delete"}:
        yield from _delete(call, table, _once(updates))
        return {"TableDescription": in_style(call, {**before, "TableStatus": "UPDATING"})}
    elif actions == {"Disassociate"}:
        table = yield from _disassociate(call, table, updates[0][1])
    else:
        for _, entry in updates:
            table = yield from _override(call, table, entry)
        return {"TableDescription": in_style(call, {**before, "TableStatus": "UPDATING"})}
    shown = yield from _described(call, table)
    # What is being added shows a moment later.
    shown["Replicas"] = before.get("Replicas", [])
    return {"TableDescription": in_style(call, {**shown, "TableStatus": "UPDATING"})}


def _once(updates: Sequence[tuple[str, Wire]]) -> list[Wire]:
    return list({entry["RegionName"]: entry for _, entry in updates}.values())


def _described(call: Call, table: Table) -> Exchange[dict[str, Any]]:
    statistics = yield from one(CountRows(table))
    now_ms = call.gateway.now_ms()
    return describe(in_state(State.UPDATING, table, now_ms), statistics, call.caller, now_ms)


def _check_regions(call: Call, table: Table, updates: Sequence[tuple[str, Wire]]) -> None:
    """Refuse regions that are not there, the own one, and those that are no replicas."""
    rule = table.rules.replication
    members = set() if rule is None else {peer.name for peer in rule.peers} | {rule.witness}
    for action, entry in updates:
        region = entry["RegionName"]
        if not region:
            raise ServiceError("AccessDeniedException", "")
        if region not in REGIONS:
            listed = ", ".join(REGIONS)
            raise validation(
                f"Region {region} is not supported. The latest version of global tables are only supported in the following "
                f"regions: [{listed}]"
            )
        if action == "Disassociate":
            continue
        if region == call.caller.region:
            what = "add or delete" if action != "Update" else "add, delete, or update"
            raise validation(
                f"Cannot {what} the local region through ReplicaUpdates. Use CreateTable, DeleteTable, or UpdateTable as "
                "required."
            )
        if action != "Create" and region not in members:
            raise validation(
                "Update global table operation failed because one or more replicas were not part of the global table. Please "
                f"retry the request without these replicas: [{region}]."
            )
        if _in_region(call, region).namespace == call.caller.namespace:
            raise validation(
                f"Failed to access the region: '{region}'. User is missing the permissions since the region is disabled. This "
                "server has one namespace for all regions; it has replicas with --namespaces separate or keys."
            )


def _refuse_busy(table: Table, updates: Sequence[tuple[str, Wire]], now_ms: int) -> None:
    """One change of replicas at a time."""
    rule = table.rules.replication
    if rule is None:
        return
    properties = TableProperties.of(table)
    coming = [peer.name for peer in rule.peers if replica_status(properties, peer, now_ms) == "CREATING"]
    if not coming:
        return
    if any(action == "Create" and entry["RegionName"] in coming for action, entry in updates):
        regions = ", ".join(sorted([rule.name, *(peer.name for peer in rule.peers)]))
        text = f"Global table with name: {table.name} already exists with replicas in regions: {regions}."
        raise ServiceError("ResourceInUseException", text)
    raise ServiceError("ResourceInUseException", _IN_USE)


# Adding


def _create(
    call: Call, table: Table, entries: Sequence[Wire], witness: Sequence[tuple[str, Wire]]
) -> Exchange[Table]:
    """Add replicas. Raises ServiceError."""
    known = TableProperties.of(table)
    if known.billing != ON_DEMAND and table.rules.replication is None:
        raise validation("Table write capacity should either be Pay-Per-Request or AutoScaled.")
    _check_keys(call, known, entries)
    for entry in entries:
        _check_overrides(known, entry)
    for entry in entries:
        found = yield [FindTable(_in_region(call, entry["RegionName"]).namespace, table.name)]
        if isinstance(found[0], Table | TableBusy):
            raise _already_there(table)
    table = yield from _with_stream(call, table)
    now_ms = call.gateway.now_ms()
    until_ms = now_ms + round(call.gateway.settings.control_plane_delay * 1000)
    settings = dict(known.replicas)
    for entry in entries:
        of_it = _overridden({}, known, call, entry)
        settings[entry["RegionName"]] = {**of_it, "creating_until_ms": until_ms}
    made = [_made(call, table, entry, settings) for entry in entries]
    strong = call.input.get("MultiRegionConsistency") == "STRONG"
    command = AddReplicas(
        table, call.caller.region, tuple(made), strong, witness[0][1]["RegionName"] if witness else ""
    )
    try:
        yield from one(command)
    except (TableExists, TableBusy):
        raise _already_there(table) from None
    sourced = {**known.sourced, **{entry["RegionName"]: now_ms for entry in entries}}
    return (
        yield from spread(
            call,
            lambda properties: replace(properties, replicas=settings),
            lambda properties: replace(properties, replicas=settings, sourced=sourced),
        )
    )


def _already_there(table: Table) -> ServiceError:
    return validation(
        f"Failed to create a the new replica of table with name: \u2018{table.name}\u2019 because one or more replicas already "
        "existed as tables."
    )


def _with_stream(call: Call, table: Table) -> Exchange[Table]:
    """The table with a stream, which replicas need: one that is there stays as it is."""
    if table.rules.stream is not None and table.rules.stream.enabled:
        return table
    rule = stream_rule("NEW_AND_OLD_IMAGES", call.gateway.now_ms())
    rules = replace(table.rules, stream=rule)
    return (yield from one(AlterTable(DIALECT, table, rules, instant=True)))


def _made(call: Call, table: Table, entry: Wire, settings: Wire) -> NewReplica:
    """The table of a new region: keys, indexes, billing, expiry and kind of stream are the same; tags, protection and what
    else is a region's own begin anew."""
    region = entry["RegionName"]
    stream = table.rules.stream
    assert stream is not None
    of_it = settings[region]
    properties = replace(
        TableProperties.of(table),
        deletion_protection=False,
        encryption_key=of_it.get("encryption_key") or TableProperties.of(table).encryption_key,
        table_class=of_it.get("table_class") or TableProperties.of(table).table_class,
        tags={},
        insights={},
        kinesis=(),
        sourced={},
        replicas=settings,
        restore=None,
    )
    made: CreateTable = like(table, _in_region(call, region).namespace, table.name)
    made = replace(
        made,
        dialect=DIALECT,
        rules=replace(made.rules, stream=stream_rule(stream.view, call.gateway.now_ms())),
        properties={**made.properties, INSIGHTS: {}, **properties.document()},
    )
    return NewReplica(region, made)


def _check_keys(call: Call, known: TableProperties, entries: Sequence[Wire]) -> None:
    """A table with a key of the customer's has one in each region."""
    is_customers = known.encryption_key not in (None, key_arn(call.caller, "alias/aws/dynamodb"))
    for entry in entries:
        given = entry.get("KMSMasterKeyId")
        if given is None and is_customers:
            raise validation(f"{_INVALID}KMSMasterKeyId must be specified for each replica.")
        if given is not None and not is_customers:
            text = "All replica keys must either be Customer Managed CMK or AWS Managed CMK."
            raise validation(_INVALID + text)
        if given is not None and given.startswith("arn:") and given.split(":")[3] != entry["RegionName"]:
            region = entry["RegionName"]
            other = given.split(":")[3]
            raise validation(
                f"KMS validation error for region {region}: NotFoundException: Invalid arn {other}"
            )


# Overrides


def _check_overrides(known: TableProperties, entry: Wire) -> None:
    for owner in (entry, *entry.get("GlobalSecondaryIndexes", ())):
        if "OnDemandThroughputOverride" in owner and known.billing != ON_DEMAND:
            raise validation(
                "MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode is PROVISIONED"
            )
        if "ProvisionedThroughputOverride" in owner and known.billing == ON_DEMAND:
            raise validation(
                "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
            )


def _overridden(before: Wire, known: TableProperties, call: Call, entry: Wire) -> dict[str, Any]:
    """What is set of a replica after a request. What is given as the table itself has it is inherited again."""
    after = dict(before)
    _merge(after, entry, known.throughput.read, known.on_demand.get("MaxReadRequestUnits"))
    if "KMSMasterKeyId" in entry:
        after["encryption_key"] = key_arn(_in_region(call, entry["RegionName"]), entry["KMSMasterKeyId"])
    if "TableClassOverride" in entry:
        wanted = entry["TableClassOverride"]
        is_base = wanted == (known.table_class or "STANDARD")
        if not is_base or after.get("table_class") is not None:
            after |= {"table_class": wanted, "table_class_at_ms": call.gateway.now_ms()}
    indexes = {name: dict(known_index) for name, known_index in after.get("indexes", {}).items()}
    for index in entry.get("GlobalSecondaryIndexes", ()):
        _merge(indexes.setdefault(index["IndexName"], {}), index, None, None)
    return {**after, "indexes": indexes}


def _merge(after: dict[str, Any], entry: Wire, read: int | None, max_read: int | None) -> None:
    for member, name, wire, base in (
        ("ProvisionedThroughputOverride", "read_units", "ReadCapacityUnits", read),
        ("OnDemandThroughputOverride", "max_read_units", "MaxReadRequestUnits", max_read),
    ):
        if member in entry:
            units = entry[member].get(wire)
            after[name] = None if units == base or units == -1 else units


def _override(call: Call, table: Table, entry: Wire) -> Exchange[Table]:
    """Change what is set of a replica. Raises ServiceError."""
    known = TableProperties.of(table)
    region = entry["RegionName"]
    if "KMSMasterKeyId" in entry:
        raise validation(f"{_INVALID}KMSMasterKeyId must be specified for each replica.")
    _check_overrides(known, entry)
    changed = _overridden(known.replicas.get(region, {}), known, call, entry)
    settings = {**known.replicas, region: changed}
    return (yield from spread(call, lambda properties: replace(properties, replicas=settings)))


def spread(
    call: Call,
    change: Callable[[TableProperties], TableProperties],
    own: Callable[[TableProperties], TableProperties] | None = None,
) -> Exchange[Table]:
    """Change the properties of a table in all its regions; the table as it is then in the caller's. `own`: what is changed there
    instead."""
    for each in (yield from _elsewhere(call)):
        yield from _keep(each, change)
    return (yield from _keep(call, own or change))


def _keep(call: Call, change: Callable[[TableProperties], TableProperties]) -> Exchange[Table]:
    table = yield from one(FindTable(call.caller.namespace, own_name(call, call.input["TableName"])))
    document = change(TableProperties.of(table)).document()
    if table.state_at(call.gateway.now_ms()) is State.CREATING:  # its properties were made with it
        return table
    return (yield from one(AlterTable(DIALECT, table, properties=document, instant=True)))


# Removing


def _delete(call: Call, table: Table, entries: Sequence[Wire]) -> Exchange[Table]:
    """Drop replicas. Raises ServiceError."""
    names = [entry["RegionName"] for entry in entries]
    for region in names:
        namespace = _in_region(call, region).namespace
        [found] = yield [FindTable(namespace, table.name)]
        if not isinstance(found, Table):
            continue
        if TableProperties.of(found).deletion_protection:
            raise validation(
                f"Cannot delete table {table.name} in region {region} because it has deletion protection enabled. Disable "
                "deletion protection first."
            )
        if not (table.rules.replication is not None and table.rules.replication.strong):
            _refuse_source(call, found)
    left = yield from one(RemoveReplicas(table, tuple(names)))
    if left.rules.replication is None:
        settings: Wire = {}
    else:
        known = TableProperties.of(left).replicas
        settings = {region: each for region, each in known.items() if region not in names}
    return (yield from spread(call, lambda properties: _without(properties, settings, names)))


def _without(properties: TableProperties, settings: Wire, names: Sequence[str]) -> TableProperties:
    sourced = {region: at for region, at in properties.sourced.items() if region not in names}
    return replace(properties, replicas=settings, sourced=sourced)


def _refuse_source(call: Call, table: Table) -> None:
    """A region from which a replica was added within a day cannot go before that."""
    rule = table.rules.replication
    names = set() if rule is None else {peer.name for peer in rule.peers}
    since_ms = call.gateway.now_ms() - _DAY_MS
    sourced = TableProperties.of(table).sourced
    if any(region in names and at_ms > since_ms for region, at_ms in sourced.items()):
        raise validation(
            "Replica cannot be deleted because it has acted as a source region for new replica(s) being added to the table in "
            "the last 24 hours."
        )


def _disassociate(call: Call, table: Table, entry: Wire) -> Exchange[Table]:
    """Let the replica of the caller's region go on alone. Raises ServiceError."""
    rule = table.rules.replication
    if rule is None or entry["RegionName"] != call.caller.region:
        raise validation(
            "Update global table operation failed because one or more replicas were not part of the global table. Please retry "
            f"the request without these replicas: [{entry['RegionName']}]."
        )
    if TableProperties.of(table).disassociation_protection:
        text = "Replica cannot be disassociated while DisassociationProtectionEnabled is true"
        raise validation(_INVALID + text)
    return (yield from one(RemoveReplicas(table, (rule.name,), keeps=True)))


# Strong consistency


def _check_strong(
    call: Call, table: Table, updates: Sequence[tuple[str, Wire]], witness: Sequence[tuple[str, Wire]]
) -> None:
    """A group of strong consistency is made, and taken apart, as a whole."""
    rule = table.rules.replication
    wants = call.input.get("MultiRegionConsistency") == "STRONG"
    regions = [entry["RegionName"] for _, entry in updates]
    witnesses = [entry["RegionName"] for _, entry in witness]
    if rule is not None and not rule.strong:
        if wants:
            raise validation("MultiRegionConsistency parameter is unsupported on existing global table")
        raise validation(
            "MultiRegionConsistency must be set as STRONG when GlobalTableWitnessUpdates parameter is present."
        )
    if rule is not None:
        if any(action == "Create" for action, _ in updates):
            raise validation("Cannot add replicas to a global table with strong MultiRegionConsistency")
        if any(action == "Delete" for action, _ in updates):
            if rule.witness and rule.witness not in witnesses:
                raise validation("Update table delete operation does not include all witnesses.")
            if {peer.name for peer in rule.peers} != set(regions):
                raise validation(f"Deletion of only one table replica is not supported for {_STRONG}.")
        return
    if not wants:
        raise validation(
            "MultiRegionConsistency must be set as STRONG when GlobalTableWitnessUpdates parameter is present."
        )
    if set(witnesses) & set(regions):
        raise validation("Cannot target multiple regions with the same action")
    if len({*regions, *witnesses}) != 2:
        raise validation(f"Unsupported replica count for {_STRONG}.")
    own = [each for each in _STRONG_SETS if call.caller.region in each]
    outside = [each for each in (*regions, *witnesses) if not own or each not in own[0]]
    if outside:
        raise validation(f"Unsupported Region(s) specified for {_STRONG}: [{', '.join(outside)}].")
