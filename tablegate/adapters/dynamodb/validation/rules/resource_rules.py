"""Rules about several members of tag and stream requests, in the service's order.

Sources: dynalite validations/*.js, nubo-db/dynamodb-conformance (May 2026).
"""

from __future__ import annotations

import re
from typing import Any

from tablegate.adapters.dynamodb.validation.rules.rule_context import RuleContext
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.adapters.dynamodb.wire.resources import table_of_arn, tagged_table

Input = dict[str, Any]

# Tags. tags.py checks their contents, for CreateTable too.

_ANY_ARN = re.compile(r"(?:.[^:\n]*:){5}.[^/\n]*/.+")  # as .+:.+:.+:.+:.+:.+/.+, in linear time


def tag_resource(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a TagResource without a table's ARN, or without tags."""
    arn = _resource(data, context, "Tags")
    if "Tags" not in data:
        raise context.refused("tags-missing")
    _check_table(arn, context)
    if not data["Tags"]:
        raise context.refused("tags-none")


def untag_resource(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for an UntagResource without a table's ARN, or without tag keys."""
    arn = _resource(data, context, "TagKeys")
    if "TagKeys" not in data:
        raise context.refused("tag-keys-missing")
    _check_table(arn, context)
    if not data["TagKeys"]:
        raise context.refused("tag-keys-none")


def list_tags(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a ListTagsOfResource without a table's ARN."""
    _check_table(_resource(data, context), context)


def _resource(data: Input, context: RuleContext, partner: str = "") -> str:
    """Return the ARN. Raises ServiceError if it is missing.

    In the classic style, a text that does not look like an ARN is AccessDenied if the request lacks its tags or
    keys (dynalite). In a complete request it is invalid (nubo-db/dynamodb-conformance, May 2026), and today
    always. `_check_table` reports that.
    """
    arn = data.get("ResourceArn")
    if arn is None:
        raise context.refused("arn-missing")
    if context.is_classic and partner not in data and _ANY_ARN.fullmatch(arn) is None:
        text = (
            "User: arn:aws:iam::000000000000:root is not authorized to perform: "
            f"dynamodb:{context.operation} on resource: {arn or '*'}"
        )
        raise ServiceError("AccessDeniedException", text)
    return str(arn)


def _check_table(arn: str, context: RuleContext) -> None:
    """Raise ServiceError unless the ARN is a table's, or today a stream's."""
    if context.is_classic:
        table_of_arn(arn)
    else:
        tagged_table(arn)


# Streams


def get_shard_iterator(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a GetShardIterator with a missing or superfluous sequence number."""
    kind = data["ShardIteratorType"]
    needs_number = kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER")
    if needs_number and "SequenceNumber" not in data:
        raise context.refused("sequence-missing", type=kind)
    if not needs_number and "SequenceNumber" in data:
        raise context.refused("sequence-spare", type=kind)
