"""Inputs of the operations on contributor insights, as data (botocore 1.44.5 service-2.json)."""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas.schema_parts import (
    TABLE_NAME,
    TEXT,
    Members,
    named,
    one_of,
    requests_of,
)
from tablegate.adapters.dynamodb.validation.schemas.schema_types import Number, Text
from tablegate.adapters.dynamodb.wire import limits

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
