"""Inputs of the operation on vectors, as data (botocore 1.44.5 service-2.json)."""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas import schema_types
from tablegate.adapters.dynamodb.validation.schemas.schema_parts import (
    CAPACITY,
    INTEGER_FROM_1,
    NAME,
    PLACEHOLDERS,
    TABLE_NAME,
    TEXT,
    Members,
    requests_of,
)
from tablegate.adapters.dynamodb.wire import limits

# Inputs


_SEARCH: Members = {
    "TableName": TABLE_NAME,
    "IndexName": NAME,
    "ReturnConsumedCapacity": CAPACITY,
    "SearchVector": schema_types.Sequence(schema_types.AttributeValue(), 1, limits.VECTOR_DIMENSIONS),
    "TopK": INTEGER_FROM_1,
    "SearchConditionExpression": TEXT,
    "ProjectionExpression": TEXT,
    **PLACEHOLDERS,
}
VECTOR_REQUESTS = requests_of(
    {"SearchVectors": (_SEARCH, ("TableName", "IndexName", "SearchVector", "TopK"))}
)
