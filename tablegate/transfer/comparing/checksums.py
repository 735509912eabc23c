"""Checksums of tables: the canonical form of rows, sums of their hashes, and the signature of a table.

The canonical form is bytes that are equal if and only if the rows are equal. Each part has a tag and its length in front,
so that different rows never have equal bytes. Numbers become their kind and one canonical decimal. Members of sets and
maps, and attributes, are sorted by their bytes. Values are taken as both services show them. If one service stores a value
as text, the text is compared. If one service has one kind of number, such as DynamoDB, numbers have this kind. Values that
one of them lacks are omitted.

Sums are equal for equal rows in any order and pages. A row's bucket is the hash of its key modulo 4,096. A bucket has the
number of its rows and the sum of their 128-bit hashes modulo 2^128. Unlike XOR, a sum detects a duplicated row and two
rows with swapped values. These sums protect against accidents, not adversaries (Clarke et al., "Incremental Multiset Hash
Functions", ASIACRYPT 2003). If both ends are tablegate databases, or both are DynamoDB, and have the same key, the bytes
of rows are hashed (`fast_add_bodies`). Equal bytes are equal rows. Rows with different bytes are compared in canonical
form afterwards.

`tablegate signature X` prints one digest of the 4,096 sums, with which two sites compare tables by one line of text. If the
tables belong to different services, each site gives the other's service (`--for`). Then both sites compute values as both
services show them.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

import orjson
import xxhash

from tablegate.adapters.azuretable.values import view as azure_view
from tablegate.adapters.dynamodb.values.values import view as dynamodb_view
from tablegate.adapters.tablestore.views import view as tablestore_view
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import NUMBERS, SETS, Kind, Value, decimal_text, number_of_double
from tablegate.transfer.endpoints.endpoint import Endpoint, ScanPage, Service
from tablegate.transfer.errors import TransferError
from tablegate.transfer.mapping.identities import Identity, identifier, identity_bytes
from tablegate.transfer.mapping.mapping import MappingOptions
from tablegate.transfer.mapping.names import spelling_of
from tablegate.transfer.mapping.reading import TableEnd, read_all
from tablegate.transfer.progress import NO_PROGRESS, Progress

_VIEWS: dict[Service, Callable[[Value], Value]] = {
    Service.DYNAMODB: dynamodb_view,
    Service.AZURE_TABLE: azure_view,
    Service.TABLE_STORE: tablestore_view,
}
_WITHOUT_NULL = frozenset({Service.AZURE_TABLE, Service.TABLE_STORE})


class CanonicalForm:
    """The canonical form for rows of two services. Methods may be called from several threads.

    - `strict`: None compares values as both services show them, with their kinds. True compares values as stored, with
    their kinds. False (lenient) compares as None does, but without the kinds of numbers.
    - `ignored`: attributes that are not compared, by either name.
    - `versions`: stamps and older versions of cells are compared too.
    - `unspelled`: maps names in the rows to the gateway's names, which are compared.
    """

    def __init__(
        self,
        first: Service,
        second: Service,
        strict: bool | None = None,
        ignored: Collection[str] = (),
        versions: bool = False,
        unspelled: Callable[[str], str] = str,
    ) -> None:
        # A fixed order, so that two sites compute the same whichever end is first.
        services = sorted({first, second}, key=lambda service: service.value)
        self._views = [_VIEWS[service] for service in services if service in _VIEWS]
        self._has_null = not _WITHOUT_NULL & {*services}
        self.strict = strict
        self.ignored = frozenset(ignored)
        self.versions = versions
        self._unspelled = unspelled

    def common_view(self, value: Value) -> Value:
        """Return a value as both services show it."""
        if not self.strict:
            for view in self._views:
                value = view(value)
        return value

    def attributes(self, schema: KeySchema, row: Row) -> dict[str, Value]:
        """Return the compared attributes of a row without its key, as both services show them."""
        attributes = {}
        for name, value in row.latest.items():
            if not self._is_skipped(schema, name) and (self._has_null or value.kind is not Kind.NULL):
                attributes[name] = self.common_view(value)
        return attributes

    def _is_skipped(self, schema: KeySchema, name: str) -> bool:
        ignored = self.ignored
        return name in schema.names or (
            bool(ignored) and (name in ignored or self._unspelled(name) in ignored)
        )

    def value_bytes(self, value: Value) -> bytes:
        """Return the canonical bytes of a value that `common_view` has converted."""
        return _tagged(value, self.strict is not False)

    def row_bytes(self, schema: KeySchema, identity: Identity, row: Row) -> bytes:
        """Return the canonical bytes of a row."""
        parts = [identity_bytes(identity)]
        members = [
            (self._unspelled(name).encode(), self.value_bytes(value))
            for name, value in self.attributes(schema, row).items()
        ]
        members.sort()
        for name, value in members:
            parts += (_length(name), name, value)
        if self.versions:
            parts.append(self._versions(schema, row))
        return b"".join(parts)

    def _versions(self, schema: KeySchema, row: Row) -> bytes:
        parts = [b"V"]
        for name, cells in sorted(row.cells.items()):
            if not self._is_skipped(schema, name):
                name_bytes = self._unspelled(name).encode()
                parts += (_length(name_bytes), name_bytes, _count(len(cells)))
                for cell in cells:
                    parts += (b"@%d" % cell.stamp_ms, self.value_bytes(self.common_view(cell.value)))
        return b"".join(parts)


def digest(data: bytes) -> int:
    """Return the 128-bit hash of canonical bytes."""
    return xxhash.xxh3_128_intdigest(data)


def number_text(value: Value) -> str:
    """Return the canonical text of a number of any kind. A Double keeps the sign of zero."""
    kind, data = value
    if kind is not Kind.DOUBLE:
        return decimal_text(data)
    if not math.isfinite(data):
        return "NaN" if math.isnan(data) else "Infinity" if data > 0 else "-Infinity"
    if not data:
        return "-0" if math.copysign(1, data) < 0 else "0"
    return decimal_text(number_of_double(data))


def _tagged(value: Value, with_kinds: bool) -> bytes:
    """Return the canonical bytes of a value. `with_kinds`: numbers of different kinds have different bytes."""
    kind, data = value
    if kind is Kind.TEXT:
        return _sized(b"S", data.encode())
    if kind in NUMBERS:
        has_kind = with_kinds and kind is not Kind.DECIMAL
        return _sized(kind.value.encode() if has_kind else b"N", number_text(value).encode())
    if kind is Kind.BYTES:
        return _sized(b"B", data)
    if kind is Kind.BOOL:
        return b"T" if data else b"F"
    if kind is Kind.NULL:
        return b"0"
    if kind is Kind.DATETIME:
        return _sized(b"D", b"%d" % data)
    if kind is Kind.GUID:
        return _sized(b"G", data.bytes)
    if kind is Kind.LIST:
        return _counted(b"L", [_tagged(member, with_kinds) for member in data])
    if kind is Kind.MAP:
        return _counted(
            b"M",
            sorted(_sized(b"", name.encode()) + _tagged(member, with_kinds) for name, member in data.items()),
        )
    assert kind in SETS
    return _counted(kind.value.encode(), sorted(_set_member(kind, member) for member in data))


def _set_member(kind: Kind, member: object) -> bytes:
    if isinstance(member, bytes):
        return _sized(b"", member)
    return _sized(b"", str(member).encode())


def _sized(tag: bytes, data: bytes) -> bytes:
    return tag + _length(data) + data


def _counted(tag: bytes, parts: Iterable[bytes]) -> bytes:
    pieces = list(parts)
    return tag + _count(len(pieces)) + b"".join(pieces)


def _length(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big")


def _count(number: int) -> bytes:
    return number.to_bytes(4, "big")


BUCKETS = 4096
_MODULUS = 1 << 128


class TableSums:
    """The sums of a table or a part of it."""

    def __init__(self) -> None:
        self.sums = [0] * BUCKETS
        self.counts = [0] * BUCKETS

    def add(self, bucket: int, row_hash: int) -> None:
        self.sums[bucket] += row_hash
        self.counts[bucket] += 1

    def merge(self, other: TableSums) -> None:
        self.sums = [mine + yours for mine, yours in zip(self.sums, other.sums, strict=True)]
        self.counts = [mine + yours for mine, yours in zip(self.counts, other.counts, strict=True)]

    @property
    def rows(self) -> int:
        return sum(self.counts)

    def unequal(self, other: TableSums) -> frozenset[int]:
        """Return the buckets in which two tables differ."""
        return frozenset(
            bucket
            for bucket in range(BUCKETS)
            if self.counts[bucket] != other.counts[bucket]
            or (self.sums[bucket] - other.sums[bucket]) % _MODULUS != 0
        )

    def digest(self) -> str:
        """Return one digest of all buckets as 64 hexadecimal digits."""
        hashed = hashlib.sha256()
        for total, count in zip(self.sums, self.counts, strict=True):
            hashed.update((total % _MODULUS).to_bytes(16, "big") + count.to_bytes(8, "big"))
        return hashed.hexdigest()


def bucket_of(key: bytes) -> int:
    """Return the bucket of a row from the bytes of its identity."""
    return xxhash.xxh3_64_intdigest(key) & (BUCKETS - 1)


def fast_add_bodies(sums: TableSums, rows: Iterable[Row], with_kinds: bool, sorts_members: bool) -> None:
    """Add rows by the hash of their bytes, the fast path of hashing canonical forms.

    `with_kinds` includes stamps and older versions of cells. `sorts_members` hashes the JSON with sorted members.
    """
    totals, counts = sums.sums, sums.counts
    hash_of, bucket_hash, mask = xxhash.xxh3_128_intdigest, xxhash.xxh3_64_intdigest, BUCKETS - 1
    for row in rows:
        contents = row.contents
        partition, sort = row.position
        bucket = bucket_hash(partition + sort) & mask
        body = orjson.dumps(contents.members, option=orjson.OPT_SORT_KEYS) if sorts_members else contents.body
        if with_kinds and contents.kinds is not None:
            body += contents.kinds
        totals[bucket] += hash_of(body)
        counts[bucket] += 1


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
