"""Common parts of RestoreTableFromBackup and RestoreTableToPointInTime: the new table and its overrides.

A restored table has the keys, indexes, billing and encryption of its source. It has no stream, no time to live, no
point-in-time recovery, no tags, no deletion protection, and the standard class (ack-api-quirks, live service, October
2026; developer guide, "Restoring tables").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.tables import billing, encryption, vector_indexes
from tablegate.adapters.dynamodb.tables.descriptions import describe, index_definition
from tablegate.adapters.dynamodb.tables.properties import ON_DEMAND, PROVISIONED, TableProperties
from tablegate.adapters.dynamodb.tables.tables import in_style
from tablegate.adapters.dynamodb.wire import messages
from tablegate.adapters.dynamodb.wire.call_context import Answer, CallContext
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.exchanges import one
from tablegate.gateway.model.commands.backup_commands import RestoreTable
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.table_commands import CreateTable, FindTable, NewIndex
from tablegate.gateway.model.errors import TableBusy, TableExists
from tablegate.gateway.model.tables.backups import Backup
from tablegate.gateway.model.tables.restored_tables import copied_definition
from tablegate.gateway.model.tables.tables import State, Table

_CHANGED_TO_ON_DEMAND = f"Cannot override ProvisionedThroughput if BillingMode is overridden to {ON_DEMAND}"

Wire = Mapping[str, Any]


def require_key(call: CallContext, region: str) -> None:
    """Check that a restore from another region names a key (ack-api-quirks 274). Raises ServiceError."""
    if region and region != call.caller.region and "SSESpecificationOverride" not in call.input:
        raise validation(
            f"{messages.INVALID_REQUEST}sseSpecificationOverride must be provided for cross-region restores"
        )


def begin(call: CallContext, source: Table | Backup, at: int | None, summary: Wire) -> Exchange[Answer]:
    """Start a restore and describe the table.

    `summary`: its RestoreSummary. Raises ServiceError and errors of RestoreTable.
    """
    definition = source if isinstance(source, Table) else source.source
    made = _target(call, definition, summary)
    try:
        table = yield from one(RestoreTable(made, source, at))
    except (TableExists, TableBusy):
        raise (yield from _taken(call, made.name, summary)) from None
    shown = describe(table, None, call.caller, call.gateway.now_ms())
    return {"TableDescription": in_style(call, shown)}


def _taken(call: CallContext, name: str, summary: Wire) -> Exchange[ServiceError]:
    [existing] = yield [FindTable(call.caller.namespace, name)]
    if isinstance(existing, Table) and existing.state_at(call.gateway.now_ms()) is State.CREATING:
        known = TableProperties.of(existing).restore
        if known is not None:
            source = known.get("SourceBackupArn", known["SourceTableArn"])
            text = f"Table: {name} is already being restored from backup: {source}"
            return ServiceError("TableInUseException", text)
    return ServiceError("TableAlreadyExistsException", f"Table already exists: {name}")


def _target(call: CallContext, source: Table, summary: Wire) -> CreateTable:
    given = call.input
    expiry = source.rules.expiry
    kept = expiry if expiry is not None and expiry.attribute is None else None
    made = copied_definition(source, call.caller.namespace, given["TargetTableName"])
    # A restored table keeps billing, throughput and key of the source. All else is as in a new table.
    properties = replace(
        _billed(source, given, call.gateway.now_ms()),
        encryption_key=encryption.key_of(call, given["SSESpecificationOverride"])
        if "SSESpecificationOverride" in given
        else TableProperties.of(source).encryption_key,
        restore=summary,
    )
    return replace(
        made,
        dialect=DIALECT,
        rules=replace(made.rules, expiry=kept),
        indexes=_indexes(source, made.indexes, given, properties.billing),
        vector_indexes=vector_indexes.restored(source, made.vector_indexes, given),
        properties={**made.properties, **properties.document()},
    )


def _billed(source: Table, given: Wire, now_ms: int) -> TableProperties:
    known = TableProperties.of(source)
    mode = given.get("BillingModeOverride", known.billing)
    units = given.get("ProvisionedThroughputOverride")
    on_demand = given.get("OnDemandThroughputOverride")
    if units is not None and mode == ON_DEMAND:
        if "BillingModeOverride" in given:
            raise validation(messages.INVALID_REQUEST + _CHANGED_TO_ON_DEMAND)
        raise validation(
            f"{messages.INVALID_REQUEST}Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED"
        )
    if units is None and mode == PROVISIONED and "BillingModeOverride" in given:
        text = "Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED"
        raise validation(messages.INVALID_REQUEST + text)
    for name, value in (on_demand or {}).items():
        if mode == PROVISIONED:
            text = f"Cannot override {name} for OnDemandThroughput unless BillingModeOverride is {ON_DEMAND}"
            raise validation(messages.INVALID_REQUEST + text)
        if value < 1:
            raise validation(
                f"{messages.INVALID_REQUEST}Requested {name} for OnDemandThroughput is outside of valid range"
            )
    of_new: dict[str, Any] = {"BillingMode": mode}
    if mode == PROVISIONED:
        shown = {
            "ReadCapacityUnits": known.throughput.read,
            "WriteCapacityUnits": known.throughput.write,
        }
        of_new["ProvisionedThroughput"] = units or shown
    if on_demand is not None:
        of_new["OnDemandThroughput"] = on_demand
    elif mode == ON_DEMAND:
        of_new["OnDemandThroughput"] = dict(known.on_demand)
    return billing.of_new_table(of_new, now_ms)


def _indexes(source: Table, all_of_it: Sequence[NewIndex], given: Wire, mode: str) -> tuple[NewIndex, ...]:
    """Return the indexes of the restored table: all, or those in an override.

    An override must match indexes of the source, but may rename them.
    """
    definitions = [(index, index_definition(index)) for index in source.indexes]
    new = {index.name: index for index in all_of_it}
    made: list[NewIndex] = []
    for member, local in (("LocalSecondaryIndexOverride", True), ("GlobalSecondaryIndexOverride", False)):
        if member not in given:
            made += [
                _billed_index(new[index.name], {}, mode) for index in source.indexes if index.local is local
            ]
            continue
        for wanted in given[member]:
            name = wanted["IndexName"]
            same = [
                index
                for index, definition in definitions
                if index.local is local and _same(wanted, definition)
            ]
            if not same:
                raise validation(
                    f"{messages.INVALID_REQUEST}Index {name} does not match a secondary index that existed in the source "
                    "table and cannot be created during the restore operation"
                )
            _check_units(wanted, local, given, mode)
            made.append(_billed_index(replace(new[same[0].name], name=name), wanted, mode))
    return tuple(made)


def _check_units(wanted: Wire, local: bool, given: Wire, mode: str) -> None:
    name, has_units = wanted["IndexName"], "ProvisionedThroughput" in wanted
    if not local and mode == PROVISIONED and not has_units:
        raise validation(f"{messages.INVALID_REQUEST}Must specify provisioned throughput for index {name}")
    if has_units and given.get("BillingModeOverride") == ON_DEMAND:
        raise validation(f"{messages.INVALID_REQUEST}{_CHANGED_TO_ON_DEMAND} for index {name}")


def _same(wanted: Wire, definition: Wire) -> bool:
    projection = wanted["Projection"]
    shown = {"ProjectionType": projection.get("ProjectionType")}
    if projection.get("NonKeyAttributes"):
        shown["NonKeyAttributes"] = sorted(projection["NonKeyAttributes"])
    keys = [(element["AttributeName"], element["KeyType"]) for element in wanted["KeySchema"]]
    known = [(element["AttributeName"], element["KeyType"]) for element in definition["KeySchema"]]
    return keys == known and shown == definition["Projection"]


def _billed_index(index: NewIndex, wanted: Wire, mode: str) -> NewIndex:
    """Return an index with the throughput of its override or of the source. An on-demand table has none."""
    if index.local:
        return index
    if mode == ON_DEMAND or "ProvisionedThroughput" in wanted or "OnDemandThroughput" in wanted:
        given = {**wanted, "IndexName": index.name}
        if mode == ON_DEMAND:
            given.pop("ProvisionedThroughput", None)
        elif "ProvisionedThroughput" not in given:
            return index
        return replace(index, properties=billing.of_new_index(given, mode).document())
    return index
