"""The identity of a row under any key schema: the texts of its partition columns and of its sort columns.

Escapes of a mapping are removed, so that a row and its copy have the same identity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tablegate.gateway.model.values.composites import composite_text, text_of
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.endpoints.endpoint import Service
from tablegate.transfer.mapping.mapping import KEY_ESCAPES, MappingOptions

Identity = tuple[str, str]
"""(text of the partition columns, text of the sort columns)"""


def identifier(
    service: Service, schema: KeySchema, options: MappingOptions
) -> Callable[[Sequence[Value]], Identity]:
    """Return a function from the key values of a row, in the schema's order, to its identity."""
    width = len(schema.partition)
    escapes = KEY_ESCAPES.get(service) if options.escape_keys else None
    read = [
        escapes.unspelled
        if escapes is not None and [column.kind for column in columns] == [Kind.TEXT]
        else None
        for columns in (schema.partition, schema.sort)
    ]

    def identity(values: Sequence[Value]) -> Identity:
        partition, sort = composite_text(values[:width]), composite_text(values[width:])
        return (
            partition if read[0] is None else read[0](partition),
            sort if read[1] is None else read[1](sort),
        )

    def of_pair(values: Sequence[Value]) -> Identity:
        return text_of(values[0]), text_of(values[1])

    return of_pair if width == 1 and len(schema.sort) == 1 and read == [None, None] else identity


def identity_bytes(identity: Identity) -> bytes:
    """Return the identity as bytes that no other identity has."""
    partition, sort = identity[0].encode(), identity[1].encode()
    return len(partition).to_bytes(4, "big") + partition + len(sort).to_bytes(4, "big") + sort
