"""Requests of clients whose account URL ends in a table's name: /T/Tables, /T/$batch and their like.

The service has no such resources, and refuses each in its own way; SDKs recognise code and text and tell their users what
is wrong with the URL.
"""

from __future__ import annotations

from adapters.azuretable.calls import Answer, Call, find_table
from adapters.azuretable.wire.addresses import Batch, Nested, TableEntry, TableSet
from adapters.azuretable.wire.errors import KEY_COUNT, ServiceError
from gateway.model.commands import Exchange


def run(call: Call, resource: Nested) -> Exchange[Answer]:
    """Always raises ServiceError."""
    if call.options.get("restype") == "service":
        raise ServiceError("InvalidQueryParameterValue")
    match resource.inner:
        case Batch():
            raise ServiceError("MediaTypeNotSupported")
        case TableSet():
            yield from find_table(call, resource.table)
            raise ServiceError("PropertiesNeedValue" if call.method == "POST" else "InvalidInput")
        case TableEntry():
            yield from find_table(call, resource.table)
            raise ServiceError("InvalidInput", KEY_COUNT)
