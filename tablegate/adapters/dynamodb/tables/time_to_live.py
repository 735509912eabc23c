"""UpdateTimeToLive and DescribeTimeToLive: expiry of the items of a table.

The rule is the gateway's own (ExpiryRule in model/tables/tables.py) and applies to the rows of all dialects. The engine
deletes expired rows. Rule 39. Texts: ack-api-quirks (live service, October 2026: findings 115, 143 to 147, 442).
"""

from __future__ import annotations

from dataclasses import replace

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.call import Answer, CallContext
from tablegate.adapters.dynamodb.tables import running_changes
from tablegate.adapters.dynamodb.tables.properties import TableProperties
from tablegate.adapters.dynamodb.tables.tables import find_table
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.gateway.model.commands.table_commands import AlterTable
from tablegate.gateway.model.errors import TableMissing
from tablegate.gateway.model.tables.tables import BUSY_STATES, ExpiryRule, State, Table


async def update_time_to_live(call: CallContext) -> Answer:
    """UpdateTimeToLive: switch expiry on or off. Raises ServiceError, TableMissing."""
    await (await check_update(call))
    return {"TimeToLiveSpecification": call.input["TimeToLiveSpecification"]}


async def check_update(call: CallContext) -> AlterTable:
    """Return the command of UpdateTimeToLive, which switches expiry on or off. Raises ServiceError, TableMissing.

    It is not idempotent. The right attribute must be named even to switch expiry off.
    """
    specification = call.input["TimeToLiveSpecification"]
    attribute, enabled = specification["AttributeName"], specification["Enabled"]
    table = await find_table(call)
    _refuse_inactive(call, table)
    current = _attribute(table)
    if current is not None and current != attribute:
        raise validation(
            f"TimeToLive is active on a different AttributeName: current AttributeName is {current}"
        )
    if enabled == (current is not None):
        raise validation(f"TimeToLive is already {'enabled' if enabled else 'disabled'}")
    _refuse_soon_again(call, table)
    expiry = ExpiryRule(attribute=attribute) if enabled else None
    properties = replace(TableProperties.of(table), time_to_live_at_ms=call.gateway.now_ms())
    rules = replace(table.rules, expiry=expiry)
    return AlterTable(DIALECT, table, rules, properties.document(), instant=True)


async def describe_time_to_live(call: CallContext) -> Answer:
    """DescribeTimeToLive: the state of expiry and its attribute. Raises ServiceError, TableMissing.

    After expiry is switched off, the answer is the same as for a table that never had it.
    """
    table = await find_table(call)
    state = table.state_at(call.gateway.now_ms())
    if state in BUSY_STATES:
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
    """Return the attribute with the expiry time, or None. Expiry by age, which Table Store has, is not visible here."""
    return None if table.rules.expiry is None else table.rules.expiry.attribute


def _refuse_soon_again(call: CallContext, table: Table) -> None:
    """Check that the last change is not too recent (TABLE-143). Raises ServiceError.

    Without `table_creation_delay` there is no minimum time between changes.
    """
    changed_at_ms = TableProperties.of(table).time_to_live_at_ms
    if changed_at_ms is None or not call.gateway.settings.table_creation_delay:
        return
    if call.gateway.now_ms() < changed_at_ms + limits.TIME_TO_LIVE_CHANGE_MS:
        raise validation("Time to live has been modified multiple times within a fixed interval")
