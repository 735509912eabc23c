"""The canonical form of rows that both ends support, as bytes that are equal if and only if the rows are equal.

Each part has a tag and its length in front, so that different rows never have equal bytes. Numbers become their kind
and one canonical decimal. Members of sets and maps, and attributes, are sorted by their bytes. Values are taken
as both services show them. If one service stores a value as text, the text is compared. If one service has one kind of
number, such as DynamoDB, numbers have this kind. Values that one of them lacks are omitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable

import xxhash

from tablegate.adapters.azuretable.values.values import view as azure_view
from tablegate.adapters.dynamodb.values.values import view as dynamodb_view
from tablegate.adapters.tablestore.values.views import view as tablestore_view
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import NUMBERS, SETS, Kind, Value, decimal_text, number_of_double
from tablegate.transfer.endpoints.endpoint import Service
from tablegate.transfer.mapping.identities import Identity, identity_bytes

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
