"""What becomes of a table and of its rows in another service: one pure mapping, asked by lint, copy and verify alike.

Knows which of the adapters' own conversions (`values`, `keys`, `names`) and limits apply to a target; converts nothing itself."""

from __future__ import annotations

from collections.abc import Mapping as Values
from dataclasses import dataclass
from typing import NamedTuple

from tablegate.adapters.azuretable.values.keys import OWN_SCHEMA
from tablegate.adapters.tablestore.values.values import DEFINED_KINDS
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import NULL, Kind, Value
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.definitions import defined_in
from tablegate.transfer.mapping.escapes import EscapeRules
from tablegate.transfer.mapping.keys import KeyMapping
from tablegate.transfer.mapping.mapping_target import Cells, MappingTarget, is_impossible, rule_of
from tablegate.transfer.mapping.rules import MappingFinding, MappingRule
from tablegate.transfer.mapping.spelling import AS_IT_IS, SPELLINGS, spelling_of
from tablegate.transfer.mapping.to_azure_table import KEY_ESCAPES as AZURE_KEY_ESCAPES
from tablegate.transfer.mapping.to_azure_table import ToAzureTable
from tablegate.transfer.mapping.to_dynamodb import KEY_ESCAPES as DYNAMODB_KEY_ESCAPES
from tablegate.transfer.mapping.to_dynamodb import ToDynamoDB, shown_schema
from tablegate.transfer.mapping.to_table_store import ToTableStore, column_schema


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """What its user chooses about a mapping. The same options must be given to copy and to verify.

    `escape_keys`: characters that a target's keys cannot have are written `_xHHHH_`, an empty key where there is none `_x_`, and
    read back by a mapping the other way; otherwise such rows are rejected.
    """

    escape_keys: bool = False


class MappedRow(NamedTuple):
    """A row as the target is to hold it, None where it cannot; and every rule that changed or lost something of it, or
    rejected it."""

    row: Row | None
    findings: tuple[MappingFinding, ...]


KEY_ESCAPES: Values[Service, EscapeRules] = {
    Service.DYNAMODB: DYNAMODB_KEY_ESCAPES,
    Service.AZURE_TABLE: AZURE_KEY_ESCAPES,
}
"""How services have keys that they cannot have, with `escape_keys`. The others take every text."""


class Mapping:
    """From the rows of one table to those of its copy. Pure; may be used by several threads."""

    definition: Definition
    """The table to be made in the target."""
    notes: tuple[MappingFinding, ...]
    """What of the source's definition the target cannot have."""

    def __init__(
        self,
        source: Definition,
        target: Service,
        existing: Definition | None = None,
        options: MappingOptions = MappingOptions(),
    ) -> None:
        """`existing`: the target's table, if there is one. Raises SchemaChanged where its key cannot hold the source's."""
        schema = key_schema_in(target, source.key_schema) if existing is None else existing.key_schema
        name = None if existing is None else existing.name
        self.definition, self.notes = defined_in(source, target, schema, name)
        self._source = source
        self._key_names = frozenset(source.key_schema.names)
        self._target_names = frozenset(schema.names)
        self._target = _target(target, self.definition if existing is None else existing, source)
        escapes: Values[Service, EscapeRules] = KEY_ESCAPES if options.escape_keys else {}
        is_other = source.service is not target  # a table of the same service keeps its keys as they are
        reads = escapes.get(source.service) if is_other else None
        self._keys = KeyMapping(
            source.key_schema,
            schema,
            _no_check if self._target is None else self._target.check_key,
            reads,
            escapes.get(target) if is_other else None,
        )
        self.is_identity = (
            self._target is None
            and schema == source.key_schema
            and reads is None
            and spelling_of(source) is AS_IT_IS
        )
        self._unspelled = spelling_of(source).unspelled
        self._spelled = SPELLINGS[target].spelled

    def map(self, row: Row) -> MappedRow:
        """The row in the target."""
        if self.is_identity:
            return MappedRow(row, ())
        latest = row.latest
        found: list[MappingFinding] = []
        key = self._keys.of([latest[name] for name in self._source.key_schema.names], found)
        if self._target is None:
            contents = self._moved(key, row, found)
        else:
            contents = self._contents(self._target, key, row, found)
        if key is None or contents is None:
            return MappedRow(None, tuple(found))
        return MappedRow(Row(key.position, contents, row.modified_at, row.expires_at_ms), tuple(found))

    def key(self, key: Key) -> Key | None:
        """The key of the row's copy; None where the target cannot have it (such a row was rejected)."""
        return key if self.is_identity else self._keys.of(key.values, [])

    def _moved(self, key: Key | None, row: Row, found: list[MappingFinding]) -> Contents | None:
        """The contents of a row under another key, and otherwise as they are: the target is a database of tablegate."""
        renamed: dict[str, str] = {}
        for name in row.latest:
            if name not in self._key_names:
                own = self._named(None, name, found)
                if own in self._target_names or own in renamed.values():
                    found.append(MappingFinding(rules.NAME_CLASH, name))
                renamed[name] = own
        if key is None or is_impossible(found):
            return None
        key_values = dict(zip(self.definition.key_schema.names, key.values, strict=True))
        if self._source.rules.stamped:
            cells = row.cells
            return Contents.of_cells(key_values, {own: cells[name] for name, own in renamed.items()})
        latest = row.latest
        return Contents.of_values({**key_values, **{own: latest[name] for name, own in renamed.items()}})

    def _contents(
        self, target: MappingTarget, key: Key | None, row: Row, found: list[MappingFinding]
    ) -> Contents | None:
        attributes: dict[str, Value] = {}
        origins: dict[str, str] = {}
        for name, value in row.latest.items():
            if name in self._key_names:
                continue
            spelled = self._named(target, name, found)
            # Our own Azure Table has no `_x0052_owKey` beside RowKey: both are one name in the gateway.
            names = {spelled, self._unspelled(name)}
            if spelled in attributes or names & self._target_names:
                found.append(MappingFinding(rules.NAME_CLASH, name))
                continue
            seen = self._seen(target, name, spelled, value, found)
            if seen is not None:
                attributes[spelled] = seen
                origins[spelled] = name
        cells = self._cells(target, row, attributes, origins, found)
        if key is None or is_impossible(found):
            return None
        return target.contents(key, attributes, cells, found)

    def _named(self, target: MappingTarget | None, name: str, found: list[MappingFinding]) -> str:
        """The attribute's name in the target's rows."""
        own = self._unspelled(name)
        spelled = self._spelled(own)
        if spelled != name:
            found.append(MappingFinding(rules.NAME_ESCAPED if spelled != own else rules.NAME_UNESCAPED, name))
        broken = None if target is None else target.check_name(spelled)
        if broken is not None:
            found.append(MappingFinding(broken, name))
        return spelled

    def _seen(
        self, target: MappingTarget, name: str, spelled: str, value: Value, found: list[MappingFinding]
    ) -> Value | None:
        """The value as the target has it; None where it has none."""
        if value.kind is Kind.NULL and not target.has_null():
            found.append(MappingFinding(rules.NULL_ABSENT, name))
            return None
        seen = target.view(value)
        rule = rule_of(value, seen)
        if rule is not None:
            found.append(MappingFinding(rule, name))
        broken = target.check_value(spelled, seen)
        if broken is not None:
            found.append(MappingFinding(broken, name))
        return seen

    def _cells(
        self,
        target: MappingTarget,
        row: Row,
        attributes: dict[str, Value],
        origins: dict[str, str],
        found: list[MappingFinding],
    ) -> Cells | None:
        """Stamps and older versions of the attributes, where the source has them."""
        if not self._source.rules.stamped:
            return None
        cells = row.cells
        if self.definition.service is not Service.TABLE_STORE:
            found += [
                MappingFinding(rules.OLDER_VERSIONS, name)
                for name in origins.values()
                if len(cells.get(name, ())) > 1
            ]
            return None
        made = {}
        for spelled, name in origins.items():
            newest, *older = cells[name]
            kept = [Cell(attributes[spelled], newest.stamp_ms)]
            for cell in older:
                seen = target.view(cell.value)
                if seen == NULL:
                    found.append(MappingFinding(rules.OLDER_VERSIONS, name))
                    continue
                broken = target.check_value(spelled, seen)
                if broken is not None:
                    found.append(MappingFinding(broken, name))
                kept.append(Cell(seen, cell.stamp_ms))
            made[spelled] = tuple(kept)
        return made


def key_schema_in(service: Service, schema: KeySchema) -> KeySchema:
    """The key of a new table of a service for rows of such a key."""
    match service:
        case Service.DYNAMODB:
            return shown_schema(schema)
        case Service.AZURE_TABLE:
            return OWN_SCHEMA
        case Service.TABLE_STORE:
            return column_schema(schema)
        case _:
            return schema


def _target(service: Service, definition: Definition, source: Definition) -> MappingTarget | None:
    """What the target makes of rows for a table that is, or is to be, defined so. None: nothing."""
    match service:
        case Service.DYNAMODB:
            return ToDynamoDB(definition.key_schema, definition.indexes)
        case Service.AZURE_TABLE:
            return ToAzureTable()
        case Service.TABLE_STORE:
            return ToTableStore(
                definition.key_schema,
                source.rules.stamped,
                definition.rules.max_versions,
                _defined(definition),
            )
        case _:
            return None


def _defined(definition: Definition) -> dict[str, Kind]:
    """The kinds of a Table Store table's defined columns, those of its indexes' keys among them."""
    kept = definition.properties.get("tablestore", {}).get("defined", ())
    defined = {name: DEFINED_KINDS[kind] for name, kind in kept}
    for index in definition.indexes:
        defined.update({column.name: column.kind for column in index.key_schema.columns})
    return {name: kind for name, kind in defined.items() if name not in definition.key_schema.names}


def _no_check(column: KeyColumn, is_partition: bool, value: Value) -> MappingRule | None:
    return None
