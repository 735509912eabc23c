"""Inputs of the operations on tags and resource policies, as data."""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas.schema_parts import TEXT, Shapes, requests_of
from tablegate.adapters.dynamodb.validation.schemas.schema_types import Boolean, Sequence, Structure, Text

# Resources


_RESOURCE_ARN = Text(minimum=1, maximum=1283)
_REVISION = Text(minimum=1, maximum=255)
TAG = Structure("Tag", {"Key": TEXT, "Value": TEXT})
"""tags.py checks it, with its own error texts."""
_SHAPES: Shapes = {
    # resource_rules.py checks for missing ResourceArn, Tags and TagKeys, because the service checks the ARN
    # first.
    "TagResource": ({"ResourceArn": TEXT, "Tags": Sequence(TAG)}, ()),
    "UntagResource": ({"ResourceArn": TEXT, "TagKeys": Sequence(TEXT)}, ()),
    "ListTagsOfResource": ({"ResourceArn": TEXT, "NextToken": TEXT}, ()),
    "PutResourcePolicy": (
        {
            "ResourceArn": _RESOURCE_ARN,
            "Policy": TEXT,
            "ExpectedRevisionId": _REVISION,
            "ConfirmRemoveSelfResourceAccess": Boolean(),
        },
        ("ResourceArn", "Policy"),
    ),
    "DeleteResourcePolicy": (
        {"ResourceArn": _RESOURCE_ARN, "ExpectedRevisionId": _REVISION},
        ("ResourceArn",),
    ),
    "GetResourcePolicy": ({"ResourceArn": _RESOURCE_ARN}, ("ResourceArn",)),
}
RESOURCE_REQUESTS = requests_of(_SHAPES)
"""The inputs of these operations."""
