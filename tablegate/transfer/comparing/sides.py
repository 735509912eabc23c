"""Both ends of a comparison in a common form: their rows, and the differences between their definitions.

Rows of the first are as the mapping converts them, rows of the second are unchanged.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.values.keys import Key, KeySchema, Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value
from tablegate.transfer.comparing.checksums import (
    CanonicalForm,
    TableSums,
    bucket_of,
    digest,
    fast_add_bodies,
)
from tablegate.transfer.comparing.differences import TableDifference
from tablegate.transfer.comparing.rejected_rows import RejectedRows
from tablegate.transfer.endpoints.endpoint import Definition, Endpoint, ScanPage, Service, UnreadableRow
from tablegate.transfer.errors import SchemaChanged
from tablegate.transfer.mapping.definitions import KeyMapping, no_check
from tablegate.transfer.mapping.identities import Identity, identifier, identity_bytes
from tablegate.transfer.mapping.mapping import KEY_ESCAPES, Mapping, MappingOptions
from tablegate.transfer.mapping.names import spelling_of
from tablegate.transfer.mapping.reading import TableEnd
from tablegate.transfer.mapping.rules import MappingFinding

_HASHES_BODIES = fast_paths.ARE_ON


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options of a comparison.

    - `strict`: None compares the kinds that both services have. True compares values as stored with their kinds, and
    stamps and older versions of cells if both ends have them. False (lenient) compares numbers without their kinds.
    - `ignored`: attributes that are not compared.
    - `tolerance`: largest difference between numbers that count as equal.
    - `mapping`: the options of the copy.
    - `allow_empty`: a first table without rows can be equal.
    - `rejected`: rows of the first table that may be missing in the second.
    """

    strict: bool | None = None
    ignored: Collection[str] = ()
    tolerance: float = 0.0
    mapping: MappingOptions = field(default_factory=MappingOptions)
    allow_empty: bool = True
    rejected: RejectedRows = field(default_factory=RejectedRows)


class ComparedRow(NamedTuple):
    """A row to compare: its identity, its key at its own end, and the row in the form of the second end.

    `row` is None if the second end cannot hold it. `findings` are the mapping rules that applied. `is_excepted`: the second
    end cannot hold it, and it is one of `CompareOptions.rejected`.
    """

    identity: Identity
    key: Key
    row: Row | None
    findings: tuple[MappingFinding, ...] = ()
    is_excepted: bool = False


class ComparedSide(TableEnd):
    """One end of a comparison."""

    def __init__(
        self, endpoint: Endpoint, definition: Definition, pair: TablePair, mapping: Mapping | None
    ) -> None:
        """Set up a side. `mapping` converts to the other end's form. It is None at the second end."""
        super().__init__(endpoint, definition)
        self._pair = pair
        self._mapping = mapping
        self._own_identity = identifier(definition.service, definition.key_schema, MappingOptions())

    def compared_row(self, row: Row) -> ComparedRow:
        """Return a row in the form of the comparison."""
        schema = self.definition.key_schema
        latest = row.latest
        values = tuple([latest[name] for name in schema.names])
        key = Key(values, row.position)
        if self._mapping is None:
            return ComparedRow(self._own_identity(values), key, row)
        mapped, findings = self._mapping.map(row)
        if mapped is None:
            is_excepted = row in self._pair.options.rejected
            return ComparedRow(self._own_identity(values), key, None, findings, is_excepted)
        return ComparedRow(self._pair.identity(self._pair.key_values(mapped)), key, mapped, findings)

    def identity(self, key: Key) -> Identity:
        """Return the identity of a key in the form of the comparison."""
        own = self._own_identity(key.values)
        if self._mapping is None:
            return own
        mapped = self._mapping.key(key)
        return own if mapped is None else self._pair.identity(mapped.values)

    def unreadable_hash(self, row: UnreadableRow) -> int:
        """Return the hash of an unreadable row, which differs from all hashes of the other end."""
        return digest((b"second" if self._mapping is None else b"first") + row.wire)

    def row_bytes(self, compared: ComparedRow) -> bytes:
        """Return the canonical bytes of a row that the second end can hold."""
        assert compared.row is not None
        return self._pair.terms.row_bytes(self._pair.schema, compared.identity, compared.row)

    def sum_page(self, sums: TableSums, page: ScanPage) -> list[ComparedRow]:
        """Add a page's rows to the sums. Return the rows that the other end cannot hold."""
        for unreadable in page.unreadable:
            bucket = self.bucket(self.identity(unreadable.key), unreadable.position)
            sums.add(bucket, self.unreadable_hash(unreadable))
        if not self._pair.hashes_bodies:
            return self.sum_page_generally(sums, page.rows)
        refused = self._refused(page.rows)
        rows = [row for row in page.rows if row.position not in refused] if refused else page.rows
        fast_add_bodies(sums, rows, self._pair.terms.versions, self._pair.sorts_bodies)
        return [*refused.values()]

    def _refused(self, rows: Sequence[Row]) -> dict[Position, ComparedRow]:
        """Return the rows that the other end cannot hold. The others are equal at both ends."""
        if self._mapping is None:
            return {}
        return {row.position: self.compared_row(row) for row in rows if self._mapping.map(row).row is None}

    def sum_page_generally(self, sums: TableSums, rows: Sequence[Row]) -> list[ComparedRow]:
        """Add rows to the sums by their canonical form. Return the rows that the other end cannot hold."""
        impossible = []
        for row in rows:
            compared = self.compared_row(row)
            if compared.row is None:
                impossible.append(compared)
                continue
            sums.add(bucket_of(identity_bytes(compared.identity)), digest(self.row_bytes(compared)))
        return impossible

    def bucket(self, identity: Identity, position: Position) -> int:
        """Return the bucket of a row in `sum_page`. `position` is its position at this end."""
        if self._pair.hashes_bodies:
            return bucket_of(position.partition + position.sort)
        return bucket_of(identity_bytes(identity))


class TablePair:
    """Two tables to compare. Raises SchemaChanged if their keys do not match."""

    def __init__(self, first: Endpoint, second: Endpoint, options: CompareOptions) -> None:
        definitions = first.describe(), second.describe()
        self.options = options
        self.mapping = Mapping(definitions[0], second.service, definitions[1], options.mapping)
        self.schema = definitions[1].key_schema
        rules = [definition.rules for definition in definitions]
        keeps_versions = all(
            rule.stamped and end.service in (Service.TABLE_STORE, Service.TABLEGATE)
            for rule, end in zip(rules, (first, second), strict=True)
        )
        versions = keeps_versions and (bool(options.strict) or min(rule.max_versions for rule in rules) > 1)
        self.terms = CanonicalForm(
            first.service,
            second.service,
            options.strict,
            options.ignored,
            versions,
            spelling_of(definitions[1]).unspelled,
        )
        self.identity = identifier(definitions[1].service, self.schema, MappingOptions())
        self.sides = (
            ComparedSide(first, definitions[0], self, self.mapping),
            ComparedSide(second, definitions[1], self, None),
        )
        self._back = _keys_back(self.schema, second.service, definitions[0], options.mapping)
        self.hashes_bodies = (
            _HASHES_BODIES
            and first.service is second.service
            and first.service in (Service.TABLEGATE, Service.DYNAMODB)
            and self.mapping.is_identity
            and not options.ignored
        )
        self.sorts_bodies = first.service is Service.DYNAMODB
        """True if members are sorted before bodies are hashed. DynamoDB returns attributes in any order."""

    def key_values(self, row: Row) -> list[Value]:
        """Return the key values of a row in the form of the second end."""
        latest = row.latest
        return [latest[name] for name in self.schema.names]

    def other_key(self, key: Key, is_first: bool) -> Key | None:
        """Return the key of a row's counterpart, None if there can be none. `is_first`: the row is at the first end."""
        if is_first:
            return self.mapping.key(key)
        return None if self._back is None else self._back.of(key.values, [])


def _keys_back(
    schema: KeySchema, service: Service, first: Definition, options: MappingOptions
) -> KeyMapping | None:
    """Return the mapping of keys from the second table to the first, None if there is none."""
    is_other = options.escape_keys and first.service is not service
    escapes = [KEY_ESCAPES.get(one_service) if is_other else None for one_service in (service, first.service)]

    try:
        return KeyMapping(schema, first.key_schema, no_check, *escapes)
    except SchemaChanged:
        return None


def table_differences(pair: TablePair, strict: bool) -> list[TableDifference]:
    """Return a name that differs only in case, and indexes, expiry and streams that a copy would have had.

    The latter make the tables different only if `strict`.
    """
    first, second = (side.definition for side in pair.sides)
    differences = []
    is_cased = all(side.endpoint.service is not Service.AZURE_TABLE for side in pair.sides)
    if first.name != second.name and first.name.lower() == second.name.lower() and is_cased:
        differences.append(TableDifference("case of the name", first.name, second.name, True))
    target = pair.sides[1].endpoint.service
    renamed = dataclasses.replace(first, name=second.name)
    expected = Mapping(renamed, target, None, pair.options.mapping).definition
    for aspect, describe in _DESCRIBED.items():
        first_text, second_text = describe(expected), describe(second)
        if first_text != second_text:
            differences.append(TableDifference(aspect, first_text, second_text, strict))
    return differences


def _indexes(definition: Definition) -> str:
    names = [index.name for index in definition.indexes]
    names += [index.name for index in definition.other_indexes]
    return ", ".join(sorted(names)) or "none"


def _expiry(definition: Definition) -> str:
    rule = definition.rules.expiry
    if rule is None:
        return "none"
    return rule.attribute if rule.attribute is not None else f"after {rule.age_ms} ms"


def _stream(definition: Definition) -> str:
    rule = definition.rules.stream
    return "on" if rule is not None and rule.enabled else "off"


_DESCRIBED: dict[str, Callable[[Definition], str]] = {
    "indexes": _indexes,
    "expiry": _expiry,
    "stream": _stream,
}
