"""Every operation that botocore's models have is known here: it works, or answers as the service does where it is not used."""

from __future__ import annotations

from botocore.session import Session

from tests.support.capabilities import INSTALLED
from tests.support.operations_by_feature import features_of
from tests.support.tables import each_row

# Operations that other branches are bringing: each takes its own away when it is merged.
COMING: frozenset[str] = frozenset()
PREFIXES = {"dynamodb": "DynamoDB_20120810", "dynamodbstreams": "DynamoDBStreams_20120810"}
OPERATIONS = [
    (PREFIXES[name], operation)
    for name in PREFIXES
    for operation in Session().get_service_model(name).operation_names
]
OF_CAPABILITIES = {"global tables": "global_tables", "vector search": "vectors"}
"""Feature -> the capability that has its operations and can be deleted."""
DELETED = {feature for feature, capability in OF_CAPABILITIES.items() if capability not in INSTALLED}


def test_the_models_have_at_least_66_operations():
    assert len(OPERATIONS) >= 62 + 4


@each_row(
    "prefix, operation", [row for row in OPERATIONS if DELETED.isdisjoint(features_of("dynamodb", row[1]))]
)
def test_no_operation_is_unknown(service, prefix, operation):
    """With nothing in the request, so that most are refused: but not as unknown, and not as a mistake of ours."""
    answer = service.call(operation, {}, prefix)
    assert service.last.status < 500
    is_unknown = "UnknownOperation" in answer.get("__type", "")
    assert not is_unknown or operation in COMING
