"""Tags of tables: TagResource, UntagResource, ListTagsOfResource, and the Tags of CreateTable.

Tags are kept with the table's properties. They are asked for by ARN only (rule 40). Texts: measured on the service by
ack-api-quirks in October 2026 (findings 107, 110); the classic ones by dynalite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from adapters.dynamodb import DIALECT
from adapters.dynamodb.tables.properties import TableProperties
from adapters.dynamodb.wire import limits
from adapters.dynamodb.wire.calls import Answer, Call, check_place
from adapters.dynamodb.wire.errors import CLASSIC, ServiceError, validation
from adapters.dynamodb.wire.resources import table_of_arn
from gateway.engine.engine import one
from gateway.model.commands import AlterTable, Exchange, FindTable
from gateway.model.errors import TableMissing
from gateway.model.tables import Table

_CHARACTERS = re.compile(r"[\w\s_.:/=+\-@]*")
_RESERVED_PREFIX = "aws:"


def tag_resource(call: Call) -> Exchange[None]:
    """TagResource: give a table tags; those that are there get the new values. The answer has no body. Raises ServiceError,
    with which nothing is changed."""
    added = new_tags(call.input["Tags"])
    table = yield from _table(call)
    tags = {**TableProperties.of(table).tags, **added}
    if len(tags) > limits.TAGS:
        raise validation("Number of Tags exceed the current limit for the provided ResourceArn")
    yield from _save(table, tags)


def untag_resource(call: Call) -> Exchange[None]:
    """UntagResource: take tags away; keys that are not there are passed over. The answer has no body. Raises ServiceError."""
    keys = call.input["TagKeys"]
    for key in keys:
        if not 0 < len(key) <= limits.TAG_KEY_CHARACTERS:
            raise validation(f"The Tag Key provided is invalid, Key: {key}")
    if len(keys) > limits.TAGS:
        raise validation("Number of Tags exceed the current limit for the provided ResourceArn")
    table = yield from _table(call)
    known = TableProperties.of(table).tags
    yield from _save(table, {key: value for key, value in known.items() if key not in keys})


def list_tags(call: Call) -> Exchange[Answer]:
    """ListTagsOfResource: all tags of a table, in one page. A NextToken, which the service never gave, is passed over. Raises
    ServiceError."""
    table = yield from _table(call)
    tags = TableProperties.of(table).tags
    return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


def new_tags(given: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The tags of a request, by key. Raises ValidationException for one that may not be."""
    tags: dict[str, str] = {}
    for tag in given:
        key, value = tag.get("Key", ""), tag.get("Value")
        if key.startswith(_RESERVED_PREFIX):
            raise validation(f"Tag Key cannot be prefixed with aws:, Key: {key}")
        if not 0 < len(key) <= limits.TAG_KEY_CHARACTERS or not _CHARACTERS.fullmatch(key):
            raise validation(f"The Tag Key provided is invalid, Key: {key}")
        if value is None or len(value) > limits.TAG_VALUE_CHARACTERS or not _CHARACTERS.fullmatch(value):
            raise validation(
                f"The Tag Value provided is invalid, Value: {'null' if value is None else value}"
            )
        if key in tags:
            raise validation(f"Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}")
        tags[key] = value
    if len(tags) > limits.TAGS:
        raise validation("Number of Tags exceed the current limit for the provided ResourceArn")
    return tags


def _table(call: Call) -> Exchange[Table]:
    """The table that ResourceArn names."""
    arn, style = call.input["ResourceArn"], call.gateway.settings.message_style
    name = table_of_arn(arn, style)
    check_place(call, arn)
    try:
        return (yield from one(FindTable(call.caller.namespace, name)))
    except TableMissing:
        text = "Requested resource not found"
        if style != CLASSIC:
            text += f": ResourceArn: {arn} not found"
        elif call.operation != "UntagResource":
            text += f": ResourcArn: {arn} not found"  # the service's own spelling for ten years
        raise ServiceError("ResourceNotFoundException", text) from None


def _save(table: Table, tags: Mapping[str, str]) -> Exchange[None]:
    """Keep a table's tags, if they are other than before."""
    properties = TableProperties.of(table)
    if dict(properties.tags) != dict(tags):
        changed = replace(properties, tags=dict(tags)).document()
        yield from one(AlterTable(DIALECT, table, properties=changed, instant=True))
