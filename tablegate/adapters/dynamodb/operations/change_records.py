"""Common parts of change records: keys, images, size, and event name (docs/protocols/dynamodb.md rule 38)."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import orjson

from tablegate.adapters.dynamodb.values.composites import render, shown_key
from tablegate.adapters.dynamodb.values.values import render_values, view
from tablegate.gateway.model.tables.changes import Change
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.values import Value, size_bytes

# Parts of a record


EXPIRY_ACTOR = "expiry"
BOTH_IMAGES = frozenset({"NewImage", "OldImage"})


def event_name(change: Change) -> str:
    """Return INSERT, MODIFY or REMOVE, from the row before and after."""
    return "INSERT" if change.old is None else "REMOVE" if change.new is None else "MODIFY"


def images(schema: KeySchema, change: Change, image_names: Container[str]) -> tuple[dict[str, Any], int]:
    """Return the members Keys, NewImage and OldImage, and SizeBytes. Images not in `image_names` are left out."""
    keys = {name: view(value) for name, value in shown_key(schema, change.key_values).items()}
    size = _billed_bytes(keys)
    members: dict[str, Any] = {"Keys": render_values(keys)}
    for name, row in (("NewImage", change.new), ("OldImage", change.old)):
        if row is not None and name in image_names:
            members[name] = orjson.Fragment(render(schema, row))
            size += _billed_bytes(row.latest)  # the change log stores no sizes
    return members, size


def _billed_bytes(attributes: Mapping[str, Value]) -> int:
    """Return the part of SizeBytes for a key or for an image that is shown.

    Sources: LocalStack's snapshots of the service, October 2025; the sample records of the developer guide.
    """
    return sum(len(name.encode()) + size_bytes(value) for name, value in attributes.items())
