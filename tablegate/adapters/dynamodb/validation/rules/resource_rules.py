"""Rules about several members of tag and stream requests, in the service's order.

Sources: dynalite validations/*.js, nubo-db/dynamodb-conformance (May 2026).
"""

from __future__ import annotations

from typing import Any

from tablegate.adapters.dynamodb.validation.rules.rule_context import RuleContext
from tablegate.adapters.dynamodb.wire.resources import tagged_table

# Members of requests


Input = dict[str, Any]

# Tags. tags.py checks their contents, for CreateTable too.


def tag_resource(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a TagResource without a table's ARN, or without tags."""
    arn = _resource(data, context)
    if "Tags" not in data:
        raise context.refused("tags-missing")
    tagged_table(arn)
    if not data["Tags"]:
        raise context.refused("tags-none")


def untag_resource(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for an UntagResource without a table's ARN, or without tag keys."""
    arn = _resource(data, context)
    if "TagKeys" not in data:
        raise context.refused("tag-keys-missing")
    tagged_table(arn)
    if not data["TagKeys"]:
        raise context.refused("tag-keys-none")


def list_tags(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a ListTagsOfResource without a table's ARN."""
    tagged_table(_resource(data, context))


def _resource(data: Input, context: RuleContext) -> str:
    """Return the ARN. Raises ServiceError if it is missing."""
    if "ResourceArn" not in data:
        raise context.refused("arn-missing")
    return str(data["ResourceArn"])


# Streams


def get_shard_iterator(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a GetShardIterator with a missing or superfluous sequence number."""
    kind = data["ShardIteratorType"]
    needs_number = kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER")
    if needs_number and "SequenceNumber" not in data:
        raise context.refused("sequence-missing", type=kind)
    if not needs_number and "SequenceNumber" in data:
        raise context.refused("sequence-spare", type=kind)
