"""Contributor insights: UpdateContributorInsights, DescribeContributorInsights, ListContributorInsights.

The table's properties hold the state and mode of insights for the table and its indexes. contributors.py counts the
keys. States, rules and texts: ack-api-quirks (live service, October 2026). Shapes: botocore 1.44.5.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.call import Answer, CallContext, own_name
from tablegate.adapters.dynamodb.features.insights.contributors import ACCESSED, THROTTLED, forget
from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.tables import running_changes
from tablegate.adapters.dynamodb.tables.properties import TableProperties, seconds
from tablegate.adapters.dynamodb.tables.tables import find_table
from tablegate.adapters.dynamodb.validation.shapes import (
    TABLE_NAME,
    TEXT,
    Members,
    Number,
    Text,
    named,
    one_of,
    requests_of,
)
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.dialects.coroutines import all_of
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.commands.table_commands import AlterTable, FindTable, ListTables
from tablegate.gateway.model.tables.tables import State, Table

# Handlers


# Kinds of rules: partition keys (PK) and whole keys (SK), by accesses (C) and by throttled requests (T).
_RULES = {ACCESSED: ("PKC", "PKT", "SKC", "SKT"), THROTTLED: ("PKT", "SKT")}


async def update_contributor_insights(call: CallContext) -> Answer:
    """UpdateContributorInsights: switch insights on or off, or change the mode. The current state changes nothing.

    Raises ServiceError, TableMissing.
    """
    arguments = call.input
    table = await find_table(call)
    index = _index_name(call, table)
    now_ms = call.gateway.now_ms()
    state = table.state_at(now_ms)
    is_enabling = arguments["ContributorInsightsAction"] == "ENABLE"
    if state is State.CREATING or (state is State.DELETING and is_enabling):
        raise _not_active("TableStatus")
    named_index = table.index(index)
    is_going = state is State.DELETING or (named_index is None and index != "")
    if (named_index is not None and not named_index.is_active(now_ms)) or (is_going and is_enabling):
        raise _not_active("IndexStatus")
    mode = arguments.get("ContributorInsightsMode", ACCESSED)
    insights = _insights_by_index(call, table).get(index)
    if insights is None and not is_enabling:
        return {**_place(table, index), "ContributorInsightsStatus": "DISABLED"}
    keeps_mode = not is_enabling or (insights is not None and insights["mode"] == mode)
    if insights is not None and insights["on"] == is_enabling and keeps_mode:
        return {**_place(table, index), **_state(call, insights), "ContributorInsightsMode": insights["mode"]}
    since_ms = insights["since_ms"] if insights is not None and insights["on"] else now_ms
    new_insights = {
        "on": is_enabling,
        "mode": mode if is_enabling or insights is None else insights["mode"],
        "since_ms": since_ms,
        "changed_at_ms": now_ms,
    }
    if not is_going:  # otherwise they are deleted with the table or index
        properties = TableProperties.of(table)
        document = replace(properties, insights={**properties.insights, index: new_insights}).document()
        await AlterTable(DIALECT, table, properties=document, instant=True)
    if not is_enabling:
        forget(table, index)
    return {
        **_place(table, index),
        "ContributorInsightsStatus": "ENABLING" if is_enabling else "DISABLING",
        "ContributorInsightsMode": new_insights["mode"],
    }


def _not_active(member: str) -> ServiceError:
    text = "Table or Index is not in a valid state to update Key Access Insights: "
    return validation(f"{text}{member} must be ACTIVE to enable ContributorInsights.")


async def describe_contributor_insights(call: CallContext) -> Answer:
    """DescribeContributorInsights: the state of insights of a table or a global index.

    Raises ServiceError, TableMissing.
    """
    table = await find_table(call)
    index = _index_name(call, table)
    insights = _insights_by_index(call, table).get(index)
    if insights is None:
        return {**_place(table, index), "ContributorInsightsStatus": "DISABLED"}
    answer = {**_place(table, index), **_state(call, insights)}
    if insights["on"]:
        answer["ContributorInsightsRuleList"] = _rules(call, table, index, insights)
    answer["LastUpdateDateTime"] = seconds(insights["changed_at_ms"])
    answer["ContributorInsightsMode"] = insights["mode"]
    return answer


async def list_contributor_insights(call: CallContext) -> Answer:
    """ListContributorInsights: insights of one table or of all, a table before its indexes.

    A page of one table counts the listed entries. A page of all tables counts all candidates, so it may be empty
    without being the last (TABLE-095, TABLE-344). Raises ServiceError.
    """
    arguments = call.input
    limit = arguments.get("MaxResults", limits.INSIGHTS_PAGE)
    if limit < 1:
        limit = limits.INSIGHTS_PAGE
    after = _token(arguments.get("NextToken"))
    if "TableName" in arguments:
        table = await FindTable(call.caller.namespace, own_name(call, arguments["TableName"]))
        candidates = [candidate for candidate in _candidates(call, table, after) if candidate[1]]
    else:
        tables = await ListTables(call.caller.namespace, after[0], limit + 1)
        if after[0]:
            [first] = await all_of([FindTable(call.caller.namespace, after[0])])
            tables = [first, *tables] if isinstance(first, Table) else tables
        candidates = [candidate for table in tables for candidate in _candidates(call, table, after)]
    page = candidates[:limit]
    answer: dict[str, Any] = {"ContributorInsightsSummaries": [summary for _, summary in page if summary]}
    if len(candidates) > limit:
        answer["NextToken"] = base64.urlsafe_b64encode("\0".join(page[-1][0]).encode()).decode()
    return answer


def _candidates(
    call: CallContext, table: Table, after: tuple[str, str]
) -> list[tuple[tuple[str, str], dict[str, Any]]]:
    """Return ((table, index), summary) of a table and its indexes after a position.

    A summary is empty if insights are DISABLED.
    """
    candidates = []
    insights_by_index = _insights_by_index(call, table)
    for name in sorted(_places(call, table)):
        insights = insights_by_index.get(name)
        summary: dict[str, Any] = {}
        if insights is not None:
            summary = {
                **_place(table, name),
                **_state(call, insights),
                "ContributorInsightsMode": insights["mode"],
            }
        is_off = summary.get("ContributorInsightsStatus") == "DISABLED"
        candidates.append(((table.name, name), {} if is_off else summary))
    return [candidate for candidate in candidates if candidate[0] > after]


def _token(token: str | None) -> tuple[str, str]:
    """Return the (table, index) after which a list continues."""
    if token is None:
        return "", ""
    try:
        table, _, index = base64.urlsafe_b64decode(token).decode().partition("\0")
    except (ValueError, binascii.Error):
        raise validation("Invalid NextToken") from None
    return table, index


def _places(call: CallContext, table: Table) -> dict[str, bool]:
    """Return the names that can have insights: "" for the table, and its global indexes, including one being deleted.

    The value is True if the table or index has a sort key.
    """
    places = {"": bool(table.key_schema.sort)}
    places |= {index.name: bool(index.key_schema.sort) for index in table.indexes if not index.local}
    deleting = running_changes.deleting(table, call.gateway.now_ms()).get("deleting", {})
    for index in deleting.get("GlobalSecondaryIndexes", ()):
        places[index["IndexName"]] = any(key["KeyType"] == "RANGE" for key in index["KeySchema"])
    return places


def _insights_by_index(call: CallContext, table: Table) -> Mapping[str, Mapping[str, Any] | None]:
    stored = TableProperties.of(table).insights
    deleted_index = running_changes.deleting(table, call.gateway.now_ms())
    return {**stored, deleted_index["index"]: deleted_index["insights"]} if deleted_index else stored


def _index_name(call: CallContext, table: Table) -> str:
    """Return the global index of a request, or "" for the table. Raises ServiceError."""
    name: str = call.input.get("IndexName", "")
    if name not in _places(call, table):
        text = f"Requested resource not found: Index: {name} not found for table: {table.name}"
        raise ServiceError("ResourceNotFoundException", text)
    return name


def _place(table: Table, index: str) -> dict[str, Any]:
    return {"TableName": table.name, **({"IndexName": index} if index else {})}


def _state(call: CallContext, insights: Mapping[str, Any]) -> dict[str, Any]:
    delay_ms = call.gateway.settings.table_creation_delay * 1000
    is_settled = call.gateway.now_ms() >= insights["changed_at_ms"] + delay_ms
    states = ("ENABLING", "ENABLED") if insights["on"] else ("DISABLING", "DISABLED")
    return {"ContributorInsightsStatus": states[is_settled]}


def _rules(call: CallContext, table: Table, index: str, insights: Mapping[str, Any]) -> list[str]:
    """Return the names of the rules. Rules of whole keys need a sort key."""
    has_sort = _places(call, table)[index]
    name = f"{table.name}-{index}" if index else table.name
    return [
        f"DynamoDBContributorInsights-{kind}-{name}-{insights['since_ms']}"
        for kind in _RULES[insights["mode"]]
        if has_sort or kind.startswith("PK")
    ]


# Inputs


_BY_TABLE: Members = {"TableName": TABLE_NAME, "IndexName": named("IndexName")}
_UPDATE: Members = {
    **_BY_TABLE,
    "ContributorInsightsAction": one_of("ENABLE", "DISABLE"),
    "ContributorInsightsMode": one_of("THROTTLED_KEYS", "ACCESSED_AND_THROTTLED_KEYS"),
}
_LISTED: Members = {
    "TableName": Text(minimum=1, maximum=limits.TABLE_ARN_CHARACTERS),
    "NextToken": TEXT,
    "MaxResults": Number("Integer", None, limits.INSIGHTS_PAGE),
}
INSIGHTS_REQUESTS = requests_of(
    {
        "DescribeContributorInsights": (_BY_TABLE, ("TableName",)),
        "UpdateContributorInsights": (_UPDATE, ("TableName", "ContributorInsightsAction")),
        "ListContributorInsights": (_LISTED, ()),
    }
)


# Operations


_P = Permission
OPERATIONS = by_name(
    Operation(
        "ListContributorInsights", list_contributor_insights, INSIGHTS_REQUESTS,
        Purpose((_P.LIST_FEATURES,)),
    ),
    Operation(
        "DescribeContributorInsights", describe_contributor_insights, INSIGHTS_REQUESTS,
        Purpose((_P.DESCRIBE_FEATURES,)),
    ),
    Operation(
        "UpdateContributorInsights", update_contributor_insights, INSIGHTS_REQUESTS,
        Purpose((_P.ALTER_INSIGHTS,)),
    ),
)  # fmt: skip
