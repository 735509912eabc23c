"""`tablegate signature X`: one digest of a table's rows, so that two sites compare without meeting.

It is that of the 4,096 sums that `verify` would compare. Two sites whose tables are of different services each say which the
other's is (`--as`): then both count values as both services see them.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from functools import partial
from typing import NamedTuple

from gateway.model.rows import Row
from transfer.comparing.canonical import Terms, digest
from transfer.comparing.passes import Progress, read_both
from transfer.comparing.sides import End
from transfer.comparing.sums import Sums, bucket_of
from transfer.endpoints.endpoint import Definition, Endpoint, Service
from transfer.mapping.identities import identifier, identity_bytes
from transfer.mapping.mapping import Mapping, MappingOptions
from transfer.mapping.spelling import spelling_of


class Signature(NamedTuple):
    """`digest`: 64 hexadecimal digits; `rows`: of so many rows; `left_out`: rows that the other service cannot have."""

    digest: str
    rows: int
    left_out: int


def signature(
    endpoint: Endpoint,
    other: Service | None = None,
    ignored: Collection[str] = (),
    options: MappingOptions = MappingOptions(),
    workers: int = 4,
    progress: Progress = lambda phase, rows: None,
) -> Signature:
    """The signature of a table. `other`: the service of the table that it is to be compared with; None: the same.

    Equal tables have equal signatures; the command's exit status is 0. Raises TransferError (exit status 2).
    """
    definition = endpoint.describe()
    signed = _Signed(endpoint, definition, other or endpoint.service, ignored, options)
    total, left_out = Sums(), 0
    lock = threading.Lock()

    def add(end: End, at: int, pages: Iterator[list[Row]]) -> None:
        nonlocal left_out
        own, number = Sums(), 0
        for page in pages:
            number += sum(not signed.take(own, row) for row in page)
        with lock:
            total.merge(own)
            left_out += number

    read_both([End(endpoint, definition)], workers, partial(progress, "reading"), add)
    return Signature(total.digest(), total.rows, left_out)


class _Signed:
    """Takes in the rows of a table that the other service can have."""

    def __init__(
        self,
        endpoint: Endpoint,
        definition: Definition,
        other: Service,
        ignored: Collection[str],
        options: MappingOptions,
    ) -> None:
        self._schema = definition.key_schema
        self._terms = Terms(
            endpoint.service, other, ignored=ignored, unspelled=spelling_of(definition).unspelled
        )
        self._identity = identifier(definition.service, self._schema, options)
        is_same = other in (endpoint.service, Service.TABLEGATE)
        self._mapping = None if is_same else Mapping(definition, other, options=options)

    def take(self, sums: Sums, row: Row) -> bool:
        """Take a row in; False: it is left out."""
        if self._mapping is not None and self._mapping.map(row).row is None:
            return False
        latest = row.latest
        identity = self._identity([latest[name] for name in self._schema.names])
        row_bytes = self._terms.row_bytes(self._schema, identity, row)
        sums.add(bucket_of(identity_bytes(identity)), digest(row_bytes))
        return True
