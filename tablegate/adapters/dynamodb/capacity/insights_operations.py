"""The operations on contributor insights."""

from __future__ import annotations

from tablegate.adapters.dynamodb.capacity import contributor_insights
from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.validation.schemas.insights_schemas import INSIGHTS_REQUESTS
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

# Operations


_P = Permission
OPERATIONS = by_name(
    Operation(
        "ListContributorInsights", contributor_insights.list_contributor_insights, INSIGHTS_REQUESTS,
        Purpose((_P.LIST_FEATURES,)),
    ),
    Operation(
        "DescribeContributorInsights", contributor_insights.describe_contributor_insights, INSIGHTS_REQUESTS,
        Purpose((_P.DESCRIBE_FEATURES,)),
    ),
    Operation(
        "UpdateContributorInsights", contributor_insights.update_contributor_insights, INSIGHTS_REQUESTS,
        Purpose((_P.ALTER_INSIGHTS,)),
    ),
)  # fmt: skip
