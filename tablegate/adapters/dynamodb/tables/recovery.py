"""Continuous backups: UpdateContinuousBackups, DescribeContinuousBackups, RestoreTableToPointInTime.

Continuous backups only mean that point-in-time recovery can be switched on. They become ENABLED on every table when it is
ACTIVE, or seconds later, as in the service, with `--table-creation-delay`. Order of checks and texts: ack-api-quirks
(live service, October 2026). Shapes: botocore 1.44.5. A table can be restored to the present time. The service lags by
five minutes.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.tables import restores
from tablegate.adapters.dynamodb.tables.properties import TableProperties, seconds
from tablegate.adapters.dynamodb.tables.tables import find_table
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.call_context import Answer, CallContext, check_place
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.adapters.dynamodb.wire.resources import table_arn, table_name_of_arn
from tablegate.gateway.features.history.backup_commands import RECOVERY_DAYS, KeepHistory
from tablegate.gateway.model.commands.table_commands import AlterTable, FindTable
from tablegate.gateway.model.errors import TableMissing, TimeNotRetained
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.rows import TICKS_PER_MS
from tablegate.gateway.security.credentials import Scheme

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
        raise validation(messages.INVALID_REQUEST + text)
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
        return await restores.begin(call, source, at, summary)
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
        raise validation(messages.INVALID_REQUEST + text)
    if requested is None and not is_latest:
        text = "Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but not both"
        raise validation(messages.INVALID_REQUEST + text)
    if requested is not None and not limits.EARLIEST_SECONDS <= requested < limits.LATEST_SECONDS:
        raise validation(f"{messages.INVALID_REQUEST}RestoreDateTime is out of range")


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
        raise validation(f"{messages.INVALID}sourceTableArn is not a valid ARN")
    *_, region, account, _ = arn.split(":", 5)
    if call.gateway.credentials.namespace(Scheme.AWS, account, call.caller.region) != call.caller.namespace:
        raise validation(
            "This action is only supported by accounts that match the resource owner\u2019s account."
        )
    restores.require_key(call, region)
    check_place(call, arn)
    return source_name


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
