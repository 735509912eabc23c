"""Amazon resource names of tables, indexes, streams, backups and keys: formatting and parsing.

Nothing here checks that a resource exists.
"""

from __future__ import annotations

import hashlib
import re
from uuid import UUID

from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.adapters.dynamodb.wire.signature_claims import Caller

_TABLE_ARN = re.compile(r"arn:aws[a-z-]*:dynamodb:[^:/]+:[0-9]+:table/([A-Za-z0-9_.-]+)")
STREAM_ARN = re.compile(r"(arn:[^/]+/[A-Za-z0-9_.-]+)/stream/([0-9T:.-]+)")
"""The ARN of a table, and the label of its stream."""


REGIONS = (
    "ap-south-2", "ap-south-1", "eu-south-1", "eu-south-2", "me-central-1", "il-central-1", "ca-central-1", "ap-east-2",
    "mx-central-1", "eu-central-1", "eu-central-2", "us-west-1", "us-west-2", "af-south-1", "ap-east-1", "ap-northeast-1",
    "ap-northeast-2", "ap-northeast-3", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4", "ap-southeast-5",
    "ap-southeast-6", "ap-southeast-7", "ca-west-1", "eu-north-1", "eu-west-1", "eu-west-2", "eu-west-3", "me-south-1",
    "sa-east-1", "us-east-1", "us-east-2",
)  # fmt: skip
"""The regions of the service, as its errors list them: Amazon DynamoDB endpoints and quotas, AWS General Reference."""


def table_arn(caller: Caller, table: str) -> str:
    """Return the ARN of a table, with the account and region of the caller's signature."""
    return f"arn:{partition_of(caller.region)}:dynamodb:{caller.region}:{caller.account}:table/{table}"


def index_arn(caller: Caller, table: str, index: str) -> str:
    """Return the ARN of an index."""
    return f"{table_arn(caller, table)}/index/{index}"


def stream_arn(caller: Caller, table: str, label: str) -> str:
    """Return the ARN of a stream. `label`: the time at which it was enabled."""
    return f"{table_arn(caller, table)}/stream/{label}"


def backup_arn(caller: Caller, table: str, created_at_ms: int, digits: str) -> str:
    """Return the ARN of a backup, from its creation time and eight hexadecimal digits."""
    return f"{table_arn(caller, table)}/backup/{created_at_ms:014}-{digits}"


def key_arn(caller: Caller, key: str) -> str:
    """Return the ARN of an encryption key that was named by id, alias, or the ARN of either.

    It ends in the key's id, never in an alias (LocalStack's snapshot
    test_dynamodb_create_table_with_partial_sse_specification, January 2024). There is no KMS here, so the id of
    an aliased key is a hash of account, region and alias.
    """
    arn = key
    if not key.startswith("arn:"):
        name = key if key.startswith("alias/") else f"key/{key}"
        arn = f"arn:{partition_of(caller.region)}:kms:{caller.region}:{caller.account}:{name}"
    place, is_alias, _ = arn.partition(":alias/")
    return f"{place}:key/{stable_uuid(arn)}" if is_alias else arn


def stable_uuid(name: str) -> str:
    """Return a UUID that looks random and is always the same for a name."""
    return str(UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4))


def partition_of(region: str) -> str:
    """Return the ARN partition of a region."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def bare_name(name: str) -> str:
    """Return the table's name in a TableName member, for messages and comparison.

    The member may be an ARN of another account or region. Use call_context.own_name to look a table up.
    """
    return name.rpartition("/")[2] if name.startswith("arn:") else name


def table_name_of_arn(arn: str) -> str | None:
    """Return the table in a table's ARN. None for other ARNs."""
    match = _TABLE_ARN.fullmatch(arn)
    return match[1] if match else None


def table_of_arn(arn: str) -> str:
    """Return the table that the ResourceArn of a tag or policy operation names.

    Raises ValidationException for other ARNs (rule 40). ack-api-quirks measured the texts in October 2026.
    """
    match = _TABLE_ARN.fullmatch(arn)
    if match and limits.TABLE_NAME_MIN_CHARACTERS <= len(match[1]) <= limits.TABLE_NAME_CHARACTERS:
        return match[1]
    arn = arn[: limits.ECHO_CHARACTERS]
    if not arn.startswith("arn:"):
        text = f"{error_texts.INVALID}ARNs must start with 'arn:': {arn}"
    elif "/index/" in arn:
        reason = "Invalid resource arn provided, only table or stream is accepted. Provided resource arn:"
        text = f"{error_texts.INVALID}{reason} {arn}"
    elif "/backup/" in arn:
        text = f"{error_texts.INVALID}Provided Arn is not a DynamoDB resource arn: {arn}"
    else:
        text = f"Invalid TableArn: Invalid ResourceArn provided as input {arn}"
    raise validation(text)


def tagged_table(arn: str) -> tuple[str, str]:
    """Return the table in the ResourceArn of a tag operation, and the label if it names a stream.

    Raises ValidationException.
    """
    match = STREAM_ARN.fullmatch(arn)
    return (table_of_arn(match[1]), match[2]) if match else (table_of_arn(arn), "")
