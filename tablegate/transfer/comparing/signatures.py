"""`tablegate signature X`: one digest of a table's rows, with which two sites compare tables by one line of text.

It is the digest of the 4,096 sums that `verify` compares. If the tables belong to different services, each site
gives the other's service (`--for`). Then both sites compute values as both services show them.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from typing import NamedTuple

from tablegate.transfer.comparing.canonical import CanonicalForm, digest
from tablegate.transfer.comparing.sums import TableSums, bucket_of
from tablegate.transfer.endpoints.endpoint import Endpoint, ScanPage, Service
from tablegate.transfer.errors import TransferError
from tablegate.transfer.mapping.identities import identifier, identity_bytes
from tablegate.transfer.mapping.mapping import MappingOptions
from tablegate.transfer.mapping.reading import TableEnd, read_all
from tablegate.transfer.mapping.spelling import spelling_of
from tablegate.transfer.progress import NO_PROGRESS, Progress


class Signature(NamedTuple):
    """The signature of a table. `digest` has 64 hexadecimal digits. `rows` is the number of rows."""

    digest: str
    rows: int


def signature(
    endpoint: Endpoint,
    other: Service | None = None,
    ignored: Collection[str] = (),
    options: MappingOptions = MappingOptions(),
    workers: int = 4,
    progress: Progress = NO_PROGRESS,
) -> Signature:
    """Return the signature of a table.

    `other` is the service of the table to compare with. It is the same service if None. `options` are those of the
    copy. Tables that are equal for `verify` have equal signatures. Raises TransferError, for which the command ends
    with 2.
    """
    definition = endpoint.describe()
    schema = definition.key_schema
    unspelled = spelling_of(definition).unspelled
    terms = CanonicalForm(endpoint.service, other or endpoint.service, ignored=ignored, unspelled=unspelled)
    identity_of = identifier(definition.service, schema, options)
    total, lock = TableSums(), threading.Lock()

    def add(end: TableEnd, at: int, pages: Iterator[ScanPage]) -> None:
        own = TableSums()
        for page in pages:
            for unreadable in page.unreadable:
                key = " / ".join(identity_of(unreadable.key.values)).removesuffix(" / ")
                raise TransferError(f"{endpoint.shown}: the row {key!r} cannot be read: {unreadable.reason}")
            for row in page.rows:
                latest = row.latest
                identity = identity_of([latest[name] for name in schema.names])
                row_hash = digest(terms.row_bytes(schema, identity, row))
                own.add(bucket_of(identity_bytes(identity)), row_hash)
        with lock:
            total.merge(own)

    read_all([TableEnd(endpoint, definition)], workers, add, progress)
    return Signature(total.digest(), total.rows)
