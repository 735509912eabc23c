"""Tags of tables and streams: TagResource, UntagResource, ListTagsOfResource, and the Tags of CreateTable.

The table's properties hold the tags. Requests name their resource by ARN only (rule 40). Texts: measured on the service
by ack-api-quirks in October 2026 (findings 105 to 110, 372, 373).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.call import Answer, CallContext, check_place
from tablegate.adapters.dynamodb.tables.properties import TableProperties
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.arns import tagged_table
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.model.commands.stream_commands import FindStream
from tablegate.gateway.model.commands.table_commands import AlterTable, FindTable
from tablegate.gateway.model.errors import StreamMissing, TableMissing
from tablegate.gateway.model.tables.tables import BUSY_STATES, Table

_CHARACTERS = re.compile(r"[\w\s_.:/=+\-@]*")
_RESERVED_PREFIX = "aws:"


async def tag_resource(call: CallContext) -> None:
    """TagResource: add tags to a table, or change their values. The answer has no body.

    Raises ServiceError, and then changes nothing.
    """
    added = new_tags(call.input["Tags"])
    table, label = await _resource(call)
    tags = {**_tags(table, label), **added}
    _check_count(tags)
    size = sum(len(f"{key}{value}".encode()) for key, value in tags.items())
    if size > limits.TAGS_BYTES:
        raise validation(f"Tag set size {size} bytes is above max size limit of {limits.TAGS_BYTES} bytes")
    await _save(table, label, tags)


async def untag_resource(call: CallContext) -> None:
    """UntagResource: remove tags. Unknown keys are ignored. The answer has no body. Raises ServiceError."""
    keys = call.input["TagKeys"]
    for key in keys:
        _check_key(key)
    _check_count(keys)
    table, label = await _resource(call)
    tags = {key: value for key, value in _tags(table, label).items() if key not in keys}
    await _save(table, label, tags)


async def list_tags(call: CallContext) -> Answer:
    """ListTagsOfResource: all tags of a table, in one page. NextToken is ignored. Raises ServiceError."""
    table, label = await _resource(call)
    return {"Tags": [{"Key": key, "Value": value} for key, value in _tags(table, label).items()]}


def new_tags(members: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the tags of a request, by key. Raises ServiceError for an invalid one."""
    tags: dict[str, str] = {}
    for tag in members:
        key, value = tag.get("Key"), tag.get("Value")
        if key is None:
            raise validation("The Tag Key provided is invalid, Key: null")
        _check_key(key)
        if value is None or len(value) > limits.TAG_VALUE_CHARACTERS or not _CHARACTERS.fullmatch(value):
            raise validation(
                f"The Tag Value provided is invalid, Value: {'null' if value is None else value}"
            )
        if key in tags:
            raise validation(f"Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}")
        tags[key] = value
    _check_count(tags)
    return tags


def _check_key(key: str) -> None:
    if key[: len(_RESERVED_PREFIX)].lower() == _RESERVED_PREFIX:
        raise validation(f"Tag Key cannot be prefixed with aws:, Key: {key}")
    if not 0 < len(key) <= limits.TAG_KEY_CHARACTERS or not _CHARACTERS.fullmatch(key):
        raise validation(f"The Tag Key provided is invalid, Key: {key}")


def _check_count(tags: Collection[str]) -> None:
    if len(tags) > limits.TAGS:
        raise validation("Number of Tags exceed the current limit for the provided ResourceArn")


def _tags(table: Table, label: str) -> Mapping[str, str]:
    properties = TableProperties.of(table)
    return properties.stream_tags.get(label, {}) if label else properties.tags


async def _resource(call: CallContext) -> tuple[Table, str]:
    """Return the table of ResourceArn, and the label if it names a stream. Raises ServiceError, TableMissing."""
    arn = call.input["ResourceArn"]
    name, label = tagged_table(arn)
    check_place(call, arn)
    try:
        if label:
            await FindStream(call.caller.namespace, name, label)
        table = await FindTable(call.caller.namespace, name)
        if table.state_at(call.gateway.now_ms()) in BUSY_STATES:
            raise TableMissing(name)  # ack-api-quirks 101, 104
        return table, label
    except (StreamMissing, TableMissing):
        text = f"Requested resource not found: ResourceArn: {arn} not found"
        raise ServiceError("ResourceNotFoundException", text) from None


async def _save(table: Table, label: str, tags: dict[str, str]) -> None:
    """Store the tags of a table or stream, if they have changed."""
    if dict(_tags(table, label)) == tags:
        return
    properties = TableProperties.of(table)
    if label:
        current = table.rules.stream.label if table.rules.stream else ""
        others = {name: values for name, values in properties.stream_tags.items() if name == current}
        new_properties = replace(properties, stream_tags={**others, label: tags})
    else:
        new_properties = replace(properties, tags=tags)
    await AlterTable(DIALECT, table, properties=new_properties.document(), instant=True)
