"""UpdateTimeToLive and DescribeTimeToLive: when items of a table expire.

The rule is the gateway's own (model/tables/tables.py ExpiryRule), so every dialect's rows obey it; the sweep that deletes what
has expired is the engine's. Rule 39; texts: ack-api-quirks (live service, October 2026: findings 115, 143 to 147, 442).
"""

from __future__ import annotations

from dataclasses import replace

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.tables import running_changes
from tablegate.adapters.dynamodb.tables.properties import TableProperties
from tablegate.adapters.dynamodb.tables.tables import find_table
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.call_context import Answer, CallContext
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.gateway.exchanges import one
from tablegate.gateway.model.commands.commands import Exchange
from tablegate.gateway.model.commands.table_commands import AlterTable
from tablegate.gateway.model.errors import TableMissing
from tablegate.gateway.model.tables.tables import ExpiryRule, State, Table


def update_time_to_live(call: CallContext) -> Exchange[Answer]:
    """UpdateTimeToLive: switch expiry on or off. It is not idempotent, and the attribute must be named, and rightly, to
    switch it off too. Raises ServiceError, TableMissing."""
    given = call.input["TimeToLiveSpecification"]
    attribute, enabled = given["AttributeName"], given["Enabled"]
    table = yield from find_table(call)
    _refuse_inactive(call, table)
    known = _attribute(table)
    if known is not None and known != attribute:
        raise validation(
            f"TimeToLive is active on a different AttributeName: current AttributeName is {known}"
        )
    if enabled == (known is not None):
        raise validation(f"TimeToLive is already {'enabled' if enabled else 'disabled'}")
    _refuse_soon_again(call, table)
    expiry = ExpiryRule(attribute=attribute) if enabled else None
    properties = replace(TableProperties.of(table), time_to_live_at_ms=call.gateway.now_ms())
    rules = replace(table.rules, expiry=expiry)
    yield from one(AlterTable(DIALECT, table, rules, properties.document(), instant=True))
    return {"TimeToLiveSpecification": {"Enabled": enabled, "AttributeName": attribute}}


def describe_time_to_live(call: CallContext) -> Exchange[Answer]:
    """DescribeTimeToLive: whether items expire, and by which attribute. A table that once had it looks like one that never
    did. Raises TableMissing."""
    table = yield from find_table(call)
    state = table.state_at(call.gateway.now_ms())
    if state in (State.CREATING, State.DELETING):
        name = state.value.upper()
        text = f"Cannot describe time to live while table is in {name} state: Current table state is {name}"
        raise validation(text)
    attribute = _attribute(table)
    if attribute is None:
        return {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
    return {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": attribute}}


def _refuse_inactive(call: CallContext, table: Table) -> None:
    state = table.state_at(call.gateway.now_ms())
    if state is State.CREATING:
        raise running_changes.in_use(f"Table {table.name} is being created")
    if state is State.DELETING:
        raise TableMissing(table.name)


def _attribute(table: Table) -> str | None:
    """The attribute that says when an item expires. Rows of Table Store may expire by age, which is not to be seen here."""
    return None if table.rules.expiry is None else table.rules.expiry.attribute


def _refuse_soon_again(call: CallContext, table: Table) -> None:
    """Raise ServiceError if the last change is too recent (TABLE-143). Without `table_creation_delay` changes may follow one
    another at once."""
    changed_at_ms = TableProperties.of(table).time_to_live_at_ms
    if changed_at_ms is None or not call.gateway.settings.table_creation_delay:
        return
    if call.gateway.now_ms() < changed_at_ms + limits.TIME_TO_LIVE_CHANGE_MS:
        raise validation("Time to live has been modified multiple times within a fixed interval")
