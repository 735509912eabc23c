"""Both ends of a comparison in shared terms: rows of the first as the mapping promises them, of the second as they are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema, Position
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Value
from tablegate.transfer.comparing.canonical import CanonicalForm, digest
from tablegate.transfer.comparing.sums import TableSums, bucket_of, fast_add_bodies
from tablegate.transfer.endpoints.endpoint import Definition, Endpoint, ScanPage, Service, UnreadableRow
from tablegate.transfer.errors import SchemaChanged
from tablegate.transfer.mapping.identities import Identity, identifier, identity_bytes
from tablegate.transfer.mapping.keys import KeyMapping
from tablegate.transfer.mapping.mapping import KEY_ESCAPES, Mapping, MappingOptions
from tablegate.transfer.mapping.reading import TableEnd
from tablegate.transfer.mapping.rules import MappingFinding, MappingRule
from tablegate.transfer.mapping.spelling import spelling_of

_HASHES_BODIES = fast_paths.ARE_ON


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """How two tables are compared.

    `strict`: kinds count, and stamps and older versions of cells where both ends have them. `ignored`: attributes that do not
    count. `tolerance`: numbers that are no farther apart count as equal. `mapping`: the options that the copy was made with.
    """

    strict: bool = False
    ignored: Collection[str] = ()
    tolerance: float = 0.0
    mapping: MappingOptions = field(default_factory=MappingOptions)


class ComparedRow(NamedTuple):
    """A row that is compared: which it is, its key at its own end, and the row as the second end has or should have it; None
    where it cannot be there. `findings` says what the mapping did."""

    identity: Identity
    key: Key
    row: Row | None
    findings: tuple[MappingFinding, ...] = ()


class ComparedSide(TableEnd):
    """One end of a comparison."""

    def __init__(
        self, endpoint: Endpoint, definition: Definition, pair: TablePair, mapping: Mapping | None
    ) -> None:
        """`mapping`: from this end to the other; None at the second end."""
        super().__init__(endpoint, definition)
        self._pair = pair
        self._mapping = mapping
        self._own_identity = identifier(definition.service, definition.key_schema, MappingOptions())

    def seen(self, row: Row) -> ComparedRow:
        """A row in the terms of the comparison."""
        schema = self.definition.key_schema
        latest = row.latest
        values = tuple([latest[name] for name in schema.names])
        key = Key(values, row.position)
        if self._mapping is None:
            return ComparedRow(self._own_identity(values), key, row)
        made, findings = self._mapping.map(row)
        if made is None:
            return ComparedRow(self._own_identity(values), key, None, findings)
        return ComparedRow(self._pair.identity(self._pair.key_values(made)), key, made, findings)

    def identity(self, key: Key) -> Identity:
        """Which row a key names, in the terms of the comparison."""
        own = self._own_identity(key.values)
        if self._mapping is None:
            return own
        mapped = self._mapping.key(key)
        return own if mapped is None else self._pair.identity(mapped.values)

    def unread_hash(self, row: UnreadableRow) -> int:
        """The hash of a row that cannot be read: no row of the other end has it."""
        return digest((b"second" if self._mapping is None else b"first") + row.wire)

    def row_bytes(self, seen: ComparedRow) -> bytes:
        """The canonical bytes of a row that can be there."""
        assert seen.row is not None
        return self._pair.terms.row_bytes(self._pair.schema, seen.identity, seen.row)

    def sum_page(self, sums: TableSums, page: ScanPage) -> list[ComparedRow]:
        """Take a page's rows in. Gives those that cannot be at the other end."""
        for unreadable in page.unreadable:
            bucket = self.bucket(self.identity(unreadable.key), unreadable.position)
            sums.add(bucket, self.unread_hash(unreadable))
        if self._pair.hashes_bodies:
            fast_add_bodies(sums, page.rows, self._pair.terms.versions)
            return []
        return self.sum_page_generally(sums, page.rows)

    def sum_page_generally(self, sums: TableSums, rows: Sequence[Row]) -> list[ComparedRow]:
        """The same, each row in its canonical form."""
        impossible = []
        for row in rows:
            seen = self.seen(row)
            if seen.row is None:
                impossible.append(seen)
                continue
            sums.add(bucket_of(identity_bytes(seen.identity)), digest(self.row_bytes(seen)))
        return impossible

    def bucket(self, identity: Identity, position: Position) -> int:
        """The bucket into which `sum_page` takes a row. `position`: where it stands at this end."""
        if self._pair.hashes_bodies:
            return bucket_of(position.partition + position.sort)
        return bucket_of(identity_bytes(identity))


class TablePair:
    """Two tables that are to hold the same. Raises SchemaChanged where the key of one cannot be that of the other."""

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
        versions = keeps_versions and (options.strict or min(rule.max_versions for rule in rules) > 1)
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
            and first.service is second.service is Service.TABLEGATE
            and self.mapping.is_identity
            and not options.ignored
        )

    def key_values(self, row: Row) -> list[Value]:
        """The key values of a row as the second end has it."""
        latest = row.latest
        return [latest[name] for name in self.schema.names]

    def other_key(self, key: Key, is_first: bool) -> Key | None:
        """The key of a row's counterpart; None: it can have none. `is_first`: the row is at the first end."""
        if is_first:
            return self.mapping.key(key)
        return None if self._back is None else self._back.of(key.values, [])


def _keys_back(
    schema: KeySchema, service: Service, first: Definition, options: MappingOptions
) -> KeyMapping | None:
    """From the keys of the second table to those of the first; None: none of them can be."""
    is_other = options.escape_keys and first.service is not service
    escapes = [KEY_ESCAPES.get(each) if is_other else None for each in (service, first.service)]

    def no_check(column: KeyColumn, is_partition: bool, value: Value) -> MappingRule | None:
        return None

    try:
        return KeyMapping(schema, first.key_schema, no_check, *escapes)
    except SchemaChanged:
        return None
