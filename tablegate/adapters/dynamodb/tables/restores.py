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
from tablegate.adapters.dynamodb.tables import billing, encryption
from tablegate.adapters.dynamodb.tables.descriptions import describe, index_definition
from tablegate.adapters.dynamodb.tables.properties import ON_DEMAND, PROVISIONED, TableProperties
from tablegate.adapters.dynamodb.tables.table_extensions import EXTENSIONS
from tablegate.adapters.dynamodb.validation.rules.table_rules import refuse_missing_capabilities
from tablegate.adapters.dynamodb.wire import messages
from tablegate.adapters.dynamodb.wire.call_context import Answer, CallContext
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.coroutines import all_of
from tablegate.gateway.features.history.backup_commands import Backup, RestoreTable
from tablegate.gateway.model.commands.table_commands import CreateTable, FindTable, NewIndex
from tablegate.gateway.model.errors import BackupBusy, TableBusy, TableExists
from tablegate.gateway.model.tables.tables import State, Table

# Restored tables


_CHANGED_TO_ON_DEMAND = f"Cannot override ProvisionedThroughput if BillingMode is overridden to {ON_DEMAND}"

Wire = Mapping[str, Any]


def require_key(call: CallContext, region: str) -> None:
    """Check that a restore from another region names a key (ack-api-quirks 274). Raises ServiceError."""
    if region and region != call.caller.region and "SSESpecificationOverride" not in call.input:
        raise validation(
            f"{messages.INVALID_REQUEST}sseSpecificationOverride must be provided for cross-region restores"
        )


async def begin(call: CallContext, source: Table | Backup, at: int | None, summary: Wire) -> Answer:
    """Start a restore and describe the table.

    `summary`: its RestoreSummary. Raises ServiceError and errors of RestoreTable.
    """
    refuse_missing_capabilities(call.input)
    definition = source if isinstance(source, Table) else source.source
    create_command = _target(call, definition, summary)
    try:
        table = await RestoreTable(create_command, source, at)
    except (TableExists, TableBusy, BackupBusy) as error:
        name_error = await _name_error(call, create_command.name)
        if name_error is None and isinstance(error, BackupBusy):
            raise
        raise name_error or _exists(create_command.name) from None
    description = describe(table, None, call.caller, call.gateway.now_ms())
    return {"TableDescription": description}


async def _name_error(call: CallContext, name: str) -> ServiceError | None:
    """Return the error for the name of an existing table, or None. It precedes that for a backup in use."""
    [existing] = await all_of([FindTable(call.caller.namespace, name)])
    if not isinstance(existing, Table):
        return None
    if existing.state_at(call.gateway.now_ms()) is State.CREATING:
        restore = TableProperties.of(existing).restore
        if restore is not None:
            source = restore.get("SourceBackupArn", restore["SourceTableArn"])
            text = f"Table: {name} is already being restored from backup: {source}"
            return ServiceError("TableInUseException", text)
    return _exists(name)


def _exists(name: str) -> ServiceError:
    return ServiceError("TableAlreadyExistsException", f"Table already exists: {name}")


def _target(call: CallContext, source: Table, summary: Wire) -> CreateTable:
    arguments = call.input
    expiry = source.rules.expiry
    kept_expiry = expiry if expiry is not None and expiry.attribute is None else None
    create_command = CreateTable.like(source, call.caller.namespace, arguments["TargetTableName"])
    # A restored table keeps billing, throughput and key of the source. All else is as in a new table.
    properties = replace(
        _billing_properties(source, arguments, call.gateway.now_ms()),
        encryption_key=encryption.key_of(call, arguments["SSESpecificationOverride"])
        if "SSESpecificationOverride" in arguments
        else TableProperties.of(source).encryption_key,
        restore=summary,
    )
    return replace(
        create_command,
        dialect=DIALECT,
        rules=replace(create_command.rules, expiry=kept_expiry),
        indexes=_indexes(source, create_command.indexes, arguments, properties.billing),
        other_indexes=tuple(
            index for extension in EXTENSIONS for index in extension.restored_indexes(source, arguments)
        ),
        properties={**create_command.properties, **properties.document()},
    )


def _billing_properties(source: Table, arguments: Wire, now_ms: int) -> TableProperties:
    current = TableProperties.of(source)
    mode = arguments.get("BillingModeOverride", current.billing)
    units = arguments.get("ProvisionedThroughputOverride")
    on_demand = arguments.get("OnDemandThroughputOverride")
    if units is not None and mode == ON_DEMAND:
        if "BillingModeOverride" in arguments:
            raise validation(messages.INVALID_REQUEST + _CHANGED_TO_ON_DEMAND)
        raise validation(
            f"{messages.INVALID_REQUEST}Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED"
        )
    if units is None and mode == PROVISIONED and "BillingModeOverride" in arguments:
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
        source_units = {
            "ReadCapacityUnits": current.throughput.read,
            "WriteCapacityUnits": current.throughput.write,
        }
        of_new["ProvisionedThroughput"] = units or source_units
    if on_demand is not None:
        of_new["OnDemandThroughput"] = on_demand
    elif mode == ON_DEMAND:
        of_new["OnDemandThroughput"] = dict(current.on_demand)
    return billing.of_new_table(of_new, now_ms)


def _indexes(
    source: Table, copied_indexes: Sequence[NewIndex], arguments: Wire, mode: str
) -> tuple[NewIndex, ...]:
    """Return the indexes of the restored table: all, or those in an override.

    An override must match indexes of the source, but may rename them.
    """
    definitions = [(index, index_definition(index)) for index in source.indexes]
    new = {index.name: index for index in copied_indexes}
    new_indexes: list[NewIndex] = []
    for member, local in (("LocalSecondaryIndexOverride", True), ("GlobalSecondaryIndexOverride", False)):
        if member not in arguments:
            new_indexes += [
                _billed_index(new[index.name], {}, mode) for index in source.indexes if index.local is local
            ]
            continue
        for override in arguments[member]:
            name = override["IndexName"]
            same = [
                index
                for index, definition in definitions
                if index.local is local and _is_same_index(override, definition)
            ]
            if not same:
                raise validation(
                    f"{messages.INVALID_REQUEST}Index {name} does not match a secondary index that existed in the source "
                    "table and cannot be created during the restore operation"
                )
            _check_units(override, local, arguments, mode)
            new_indexes.append(_billed_index(replace(new[same[0].name], name=name), override, mode))
    return tuple(new_indexes)


def _check_units(override: Wire, local: bool, arguments: Wire, mode: str) -> None:
    name, has_units = override["IndexName"], "ProvisionedThroughput" in override
    if not local and mode == PROVISIONED and not has_units:
        raise validation(f"{messages.INVALID_REQUEST}Must specify provisioned throughput for index {name}")
    if has_units and arguments.get("BillingModeOverride") == ON_DEMAND:
        raise validation(f"{messages.INVALID_REQUEST}{_CHANGED_TO_ON_DEMAND} for index {name}")


def _is_same_index(override: Wire, definition: Wire) -> bool:
    projection = override["Projection"]
    own_projection = {"ProjectionType": projection.get("ProjectionType")}
    if projection.get("NonKeyAttributes"):
        own_projection["NonKeyAttributes"] = sorted(projection["NonKeyAttributes"])
    keys = [(element["AttributeName"], element["KeyType"]) for element in override["KeySchema"]]
    source_keys = [(element["AttributeName"], element["KeyType"]) for element in definition["KeySchema"]]
    return keys == source_keys and own_projection == definition["Projection"]


def _billed_index(index: NewIndex, override: Wire, mode: str) -> NewIndex:
    """Return an index with the throughput of its override or of the source. An on-demand table has none."""
    if index.local:
        return index
    if mode == ON_DEMAND or "ProvisionedThroughput" in override or "OnDemandThroughput" in override:
        definition = {**override, "IndexName": index.name}
        if mode == ON_DEMAND:
            definition.pop("ProvisionedThroughput", None)
        elif "ProvisionedThroughput" not in definition:
            return index
        return replace(index, properties=billing.of_new_index(definition, mode).document())
    return index
