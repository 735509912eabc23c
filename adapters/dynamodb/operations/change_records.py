"""What records of changes tell of a change, whoever reads them: keys, images, how large it all is, and what kind of change
it was.

(docs/protocols/dynamodb.md rule 38.)
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import orjson

from tablegate.adapters.dynamodb.values.composites import render, shown_key
from tablegate.adapters.dynamodb.values.values import render_values, view
from tablegate.gateway.model.tables.changes import Change
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.values import Value, size_bytes

EXPIRY_ACTOR = "expiry"
BOTH_IMAGES = frozenset({"NewImage", "OldImage"})


def event_name(change: Change) -> str:
    """INSERT, MODIFY or REMOVE, from the row before and after."""
    return "INSERT" if change.old is None else "REMOVE" if change.new is None else "MODIFY"


def images(schema: KeySchema, change: Change, shown: Container[str]) -> tuple[dict[str, Any], int]:
    """(the members Keys, NewImage and OldImage, as far as they are shown, with those images that there are; SizeBytes)."""
    keys = {name: view(value) for name, value in shown_key(schema, change.key_values).items()}
    size = _billed_bytes(keys)
    members: dict[str, Any] = {"Keys": render_values(keys)}
    for name, row in (("NewImage", change.new), ("OldImage", change.old)):
        if row is not None and name in shown:
            members[name] = orjson.Fragment(render(schema, row))
            size += _billed_bytes(row.latest)  # the log keeps no sizes
    return members, size


def _billed_bytes(attributes: Mapping[str, Value]) -> int:
    """SizeBytes counts the keys and each image that is shown (LocalStack's snapshots of the service, October 2025; the
    sample records of the developer guide)."""
    return sum(len(name.encode()) + size_bytes(value) for name, value in attributes.items())
