"""Continuous backups, and the table that a restore creates: UpdateContinuousBackups, DescribeContinuousBackups,
RestoreTableToPointInTime, and the part of RestoreTableFromBackup that it shares.

Continuous backups only mean that point-in-time recovery can be switched on. They become ENABLED on every table when it is
ACTIVE, or seconds later, as in the service, with `--table-creation-delay`. Order of checks and texts: ack-api-quirks
(live service, October 2026). Shapes: botocore 1.44.5. A table can be restored to the present time. The service lags by
five minutes.

A restored table has the keys, indexes, billing and encryption of its source. It has no stream, no time to live, no
point-in-time recovery, no tags, no deletion protection, and the standard class (ack-api-quirks, live service, October
2026; developer guide, "Restoring tables").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.call import Answer, CallContext, check_place
from tablegate.adapters.dynamodb.tables import billing, table_settings
from tablegate.adapters.dynamodb.tables.properties import ON_DEMAND, PROVISIONED, TableProperties, seconds
from tablegate.adapters.dynamodb.tables.table_definitions import describe, index_definition
from tablegate.adapters.dynamodb.tables.table_extensions import EXTENSIONS
from tablegate.adapters.dynamodb.tables.tables import find_table
from tablegate.adapters.dynamodb.validation.table_rules import refuse_missing_capabilities
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.arns import table_arn, table_name_of_arn
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.dialects.coroutines import all_of
from tablegate.gateway.features.history.backup_commands import (
    RECOVERY_DAYS,
    Backup,
    KeepHistory,
    RestoreTable,
)
from tablegate.gateway.model.commands.table_commands import AlterTable, CreateTable, FindTable, NewIndex
from tablegate.gateway.model.errors import BackupBusy, TableBusy, TableExists, TableMissing, TimeNotRetained
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.rows import TICKS_PER_MS
from tablegate.gateway.security.credentials import Scheme

# Restored tables


_CHANGED_TO_ON_DEMAND = f"Cannot override ProvisionedThroughput if BillingMode is overridden to {ON_DEMAND}"

Wire = Mapping[str, Any]


def require_key(call: CallContext, region: str) -> None:
    """Check that a restore from another region names a key (ack-api-quirks 274). Raises ServiceError."""
    if region and region != call.caller.region and "SSESpecificationOverride" not in call.input:
        raise validation(
            f"{error_texts.INVALID_REQUEST}sseSpecificationOverride must be provided for cross-region restores"
        )


async def begin_restore(call: CallContext, source: Table | Backup, at: int | None, summary: Wire) -> Answer:
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
        encryption_key=table_settings.encryption_key_of(call, arguments["SSESpecificationOverride"])
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
            raise validation(error_texts.INVALID_REQUEST + _CHANGED_TO_ON_DEMAND)
        raise validation(
            f"{error_texts.INVALID_REQUEST}Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED"
        )
    if units is None and mode == PROVISIONED and "BillingModeOverride" in arguments:
        text = "Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED"
        raise validation(error_texts.INVALID_REQUEST + text)
    for name, value in (on_demand or {}).items():
        if mode == PROVISIONED:
            text = f"Cannot override {name} for OnDemandThroughput unless BillingModeOverride is {ON_DEMAND}"
            raise validation(error_texts.INVALID_REQUEST + text)
        if value < 1:
            raise validation(
                f"{error_texts.INVALID_REQUEST}Requested {name} for OnDemandThroughput is outside of valid range"
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
                    f"{error_texts.INVALID_REQUEST}Index {name} does not match a secondary index that existed in the source "
                    "table and cannot be created during the restore operation"
                )
            _check_units(override, local, arguments, mode)
            new_indexes.append(_billed_index(replace(new[same[0].name], name=name), override, mode))
    return tuple(new_indexes)


def _check_units(override: Wire, local: bool, arguments: Wire, mode: str) -> None:
    name, has_units = override["IndexName"], "ProvisionedThroughput" in override
    if not local and mode == PROVISIONED and not has_units:
        raise validation(f"{error_texts.INVALID_REQUEST}Must specify provisioned throughput for index {name}")
    if has_units and arguments.get("BillingModeOverride") == ON_DEMAND:
        raise validation(f"{error_texts.INVALID_REQUEST}{_CHANGED_TO_ON_DEMAND} for index {name}")


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


# Continuous backups


async def describe_continuous_backups(call: CallContext) -> Answer:
    """DescribeContinuousBackups: the state of recovery and the restorable times of a table. Raises TableMissing."""
    table = await find_table(call)
    return _description(call, table)


async def update_continuous_backups(call: CallContext) -> Answer:
    """UpdateContinuousBackups: switch point-in-time recovery on or off, without delay.

    Raises ServiceError, TableMissing.
    """
    specification = call.input["PointInTimeRecoverySpecification"]
    is_on, days = specification["PointInTimeRecoveryEnabled"], specification.get("RecoveryPeriodInDays")
    if not is_on and days is not None:
        text = "Cannot specify RecoveryPeriodInDays when disabling point-in-time recovery."
        raise validation(error_texts.INVALID_REQUEST + text)
    table = await find_table(call)
    _refuse_new(call, table)
    rule = table.rules.history
    if is_on and days is None:
        days = rule.days if rule is not None and rule.days is not None else RECOVERY_DAYS
    new_table = await KeepHistory(table, days if is_on else None)
    if is_on and _is_new(call, new_table) and new_table.state_at(call.gateway.now_ms()) is not State.DELETING:
        properties = replace(TableProperties.of(new_table), continuous_backups=True)
        new_table = await AlterTable(DIALECT, new_table, properties=properties.document(), instant=True)
    return _description(call, new_table)


def _refuse_new(call: CallContext, table: Table) -> None:
    if table.state_at(call.gateway.now_ms()) is State.CREATING:
        text = f"Backups are being enabled for the table: {table.name}. Please retry later"
        raise ServiceError("ContinuousBackupsUnavailableException", text)


def _is_new(call: CallContext, table: Table) -> bool:
    """Return True until continuous backups are ENABLED, after a delay or because recovery was switched on.

    Without `table_creation_delay` there is no delay.
    """
    creation_delay = call.gateway.settings.table_creation_delay
    if not creation_delay or TableProperties.of(table).continuous_backups:
        return False
    active_at_ms = table.created_at_ms + creation_delay * 1000
    return call.gateway.now_ms() < active_at_ms + limits.CONTINUOUS_BACKUPS_DELAY_MS


def _description(call: CallContext, table: Table) -> Answer:
    now_ms = call.gateway.now_ms()
    rule = table.rules.history
    recovery: dict[str, Any] = {"PointInTimeRecoveryStatus": "DISABLED"}
    if rule is not None and rule.days is not None:
        earliest_ms = rule.earliest_ms(now_ms)
        recovery = {
            "PointInTimeRecoveryStatus": "ENABLED",
            "RecoveryPeriodInDays": rule.days,
            "EarliestRestorableDateTime": seconds(earliest_ms),
            "LatestRestorableDateTime": seconds(max(earliest_ms, now_ms)),
        }
    is_off = _is_new(call, table) or table.state_at(now_ms) is State.CREATING
    return {
        "ContinuousBackupsDescription": {
            "ContinuousBackupsStatus": "DISABLED" if is_off else "ENABLED",
            "PointInTimeRecoveryDescription": recovery,
        }
    }


async def restore_to_point_in_time(call: CallContext) -> Answer:
    """RestoreTableToPointInTime: create a table with the rows of another at a given time.

    Raises ServiceError, TableMissing.
    """
    arguments = call.input
    requested = arguments.get("RestoreDateTime")
    _check_times(requested, arguments.get("UseLatestRestorableTime", False))
    name = _source_name(call)
    source = await FindTable(call.caller.namespace, name)
    if source.state_at(call.gateway.now_ms()) is State.CREATING:
        raise TableMissing(name)
    at = None if requested is None else round(requested * 1000) * TICKS_PER_MS
    summary = {
        "SourceTableArn": table_arn(call.caller, name),
        "RestoreDateTime": seconds(call.gateway.now_ms()) if requested is None else requested,
    }
    try:
        return await begin_restore(call, source, at, summary)
    except TimeNotRetained as refused:
        if refused.earliest_ms is None or refused.latest_ms is None:
            raise
        text = (
            f"RestoreDateTime '{_iso(requested or 0)}' must be within EarliestRestorableDateTime "
            f"'{_iso(refused.earliest_ms / 1000)}' and LatestRestorableDateTime '{_iso(refused.latest_ms / 1000)}'"
        )
        raise ServiceError("InvalidRestoreTimeException", text) from None


def _check_times(requested: float | None, is_latest: bool) -> None:
    if requested is not None and is_latest:
        text = (
            "Both RestoreDateTime and UseLatestRestorableTime cannot be set for point-in-time restore request. "
            "Please set only one of them"
        )
        raise validation(error_texts.INVALID_REQUEST + text)
    if requested is None and not is_latest:
        text = "Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but not both"
        raise validation(error_texts.INVALID_REQUEST + text)
    if requested is not None and not limits.EARLIEST_SECONDS <= requested < limits.LATEST_SECONDS:
        raise validation(f"{error_texts.INVALID_REQUEST}RestoreDateTime is out of range")


def _source_name(call: CallContext) -> str:
    name, arn = call.input.get("SourceTableName"), call.input.get("SourceTableArn")
    if name is not None and arn is not None:
        raise validation("Must provide exactly one of: sourceTableArn, sourceTableName")
    if name is not None:
        return str(name)
    if arn is None:
        raise validation("The parameter 'TableName' is required but was not present in the request")
    source_name = table_name_of_arn(arn)
    if source_name is None:
        raise validation(f"{error_texts.INVALID}sourceTableArn is not a valid ARN")
    *_, region, account, _ = arn.split(":", 5)
    if call.gateway.credentials.namespace(Scheme.AWS, account, call.caller.region) != call.caller.namespace:
        raise validation(
            "This action is only supported by accounts that match the resource owner\u2019s account."
        )
    require_key(call, region)
    check_place(call, arn)
    return source_name


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
