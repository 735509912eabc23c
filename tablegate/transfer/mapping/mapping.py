"""The mapping of a table and its rows to another service, used by lint, copy and verify.

It selects the adapters' conversions (`values`, `keys`, `names`) and limits for a target. The conversions are in
to_*.py.
"""

from __future__ import annotations

from collections.abc import Mapping as Values
from dataclasses import dataclass
from typing import NamedTuple

from tablegate.adapters.azuretable.keys import OWN_SCHEMA
from tablegate.adapters.tablestore.values import DEFINED_KINDS
from tablegate.gateway.model.values.keys import Key, KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import NULL, Kind, Value
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.definitions import KeyMapping, defined_in, no_check
from tablegate.transfer.mapping.names import SPELLINGS, UNCHANGED, EscapeRules, spelling_of
from tablegate.transfer.mapping.rules import MappingFinding
from tablegate.transfer.mapping.targets import (
    AZURE_KEY_ESCAPES,
    DYNAMODB_KEY_ESCAPES,
    Cells,
    MappingTarget,
    ToAzureTable,
    ToDynamoDB,
    ToTableStore,
    column_schema,
    is_impossible,
    rule_of,
    shown_schema,
)


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """The user's options of a mapping. Copy and verify need the same options.

    With `escape_keys`, characters that the target forbids in keys are written `_xHHHH_`, and an empty key `_x_`. A
    mapping in the other direction restores them. Otherwise such rows are rejected.
    """

    escape_keys: bool = False


class MappedRow(NamedTuple):
    """A row in the form of the target, None if the target cannot hold it, with all rules that applied."""

    row: Row | None
    findings: tuple[MappingFinding, ...]


KEY_ESCAPES: Values[Service, EscapeRules] = {
    Service.DYNAMODB: DYNAMODB_KEY_ESCAPES,
    Service.AZURE_TABLE: AZURE_KEY_ESCAPES,
}
"""The escapes of each service's keys with `escape_keys`. The other services allow every text."""


class Mapping:
    """The mapping from the rows of a table to those of its copy. Pure. May be used from several threads."""

    definition: Definition
    """The definition of the copy."""
    notes: tuple[MappingFinding, ...]
    """Findings for the parts of the source's definition that the target does not support."""

    def __init__(
        self,
        source: Definition,
        target: Service,
        existing: Definition | None = None,
        options: MappingOptions = MappingOptions(),
    ) -> None:
        """Set up the mapping. `existing` is the target table if it exists. Raises SchemaChanged if its key cannot hold
        the source's."""
        schema = key_schema_in(target, source.key_schema) if existing is None else existing.key_schema
        name = None if existing is None else existing.name
        self.definition, self.notes = defined_in(source, target, schema, name)
        self._source = source
        self._key_names = frozenset(source.key_schema.names)
        self._target_names = frozenset(schema.names)
        self._target = _target(target, self.definition if existing is None else existing, source)
        escapes: Values[Service, EscapeRules] = KEY_ESCAPES if options.escape_keys else {}
        is_other = source.service is not target  # keys are unchanged within a service
        reads = escapes.get(source.service) if is_other else None
        self._keys = KeyMapping(
            source.key_schema,
            schema,
            no_check if self._target is None else self._target.check_key,
            reads,
            escapes.get(target) if is_other else None,
        )
        # A row that DynamoDB returned has names and values that DynamoDB allows.
        keeps_rows = self._target is None or source.service is target is Service.DYNAMODB
        self.is_identity = (
            keeps_rows and schema == source.key_schema and reads is None and spelling_of(source) is UNCHANGED
        )
        """True if each row stays the same. The target may still refuse its key or its size."""
        self.keeps_keys = self._keys.is_identity
        """True if each key stays the same, so that different rows have different keys in the target."""
        self._unspelled = spelling_of(source).unspelled
        self._spelled = SPELLINGS[target].spelled

    def map(self, row: Row) -> MappedRow:
        """Return the row in the form of the target."""
        if self.is_identity:
            return self._unchanged(row)
        latest = row.latest
        findings: list[MappingFinding] = []
        key = self._keys.of([latest[name] for name in self._source.key_schema.names], findings)
        if self._target is None:
            contents = self._renamed_contents(key, row, findings)
        else:
            contents = self._contents(self._target, key, row, findings)
        if key is None or contents is None:
            return MappedRow(None, tuple(findings))
        return MappedRow(Row(key.position, contents, row.modified_at, row.expires_at_ms), tuple(findings))

    def key(self, key: Key) -> Key | None:
        """Return the key of the row's copy, None if the target does not allow it."""
        return key if self._target is None and self.is_identity else self._keys.of(key.values, [])

    def _unchanged(self, row: Row) -> MappedRow:
        """Return the row, or None with findings if the target refuses it."""
        if self._target is None:
            return MappedRow(row, ())
        findings: list[MappingFinding] = []
        self._keys.of(self._source.key_schema.decode(row.position).values, findings)
        refused = self._target.refusal(row.contents)
        if refused is not None:
            findings.append(refused)
        return MappedRow(None if findings else row, tuple(findings))

    def _renamed_contents(self, key: Key | None, row: Row, findings: list[MappingFinding]) -> Contents | None:
        """Return the contents of a row under another key for a tablegate database, otherwise unchanged."""
        renamed: dict[str, str] = {}
        for name in row.latest:
            if name not in self._key_names:
                own = self._target_name(None, name, findings)
                if own in self._target_names or own in renamed.values():
                    findings.append(MappingFinding(rules.NAME_CLASH, name))
                renamed[name] = own
        if key is None or is_impossible(findings):
            return None
        key_values = dict(zip(self.definition.key_schema.names, key.values, strict=True))
        if self._source.rules.stamped:
            cells = row.cells
            return Contents.of_cells(key_values, {own: cells[name] for name, own in renamed.items()})
        latest = row.latest
        return Contents.of_values({**key_values, **{own: latest[name] for name, own in renamed.items()}})

    def _contents(
        self, target: MappingTarget, key: Key | None, row: Row, findings: list[MappingFinding]
    ) -> Contents | None:
        attributes: dict[str, Value] = {}
        origins: dict[str, str] = {}
        for name, value in row.latest.items():
            if name in self._key_names:
                continue
            if value.kind is Kind.NULL and not target.has_null():
                findings.append(MappingFinding(rules.NULL_ABSENT, name))
                continue  # an omitted attribute needs no name in the target
            target_name = self._target_name(target, name, findings)
            # tablegate's Azure Table maps `_x0052_owKey` and RowKey to one name, so both names are checked.
            names = {target_name, self._unspelled(name)}
            if target_name in attributes or names & self._target_names:
                findings.append(MappingFinding(rules.NAME_CLASH, name))
                continue
            attributes[target_name] = self._mapped_value(target, name, target_name, value, findings)
            origins[target_name] = name
        cells = self._cells(target, row, attributes, origins, findings)
        if key is None or is_impossible(findings):
            return None
        return target.contents(key, attributes, cells, findings)

    def _target_name(self, target: MappingTarget | None, name: str, findings: list[MappingFinding]) -> str:
        """Return the attribute's name in the target's rows."""
        own = self._unspelled(name)
        target_name = self._spelled(own)
        if target_name != name:
            findings.append(
                MappingFinding(rules.NAME_ESCAPED if target_name != own else rules.NAME_UNESCAPED, name)
            )
        violated = None if target is None else target.check_name(target_name)
        if violated is not None:
            findings.append(MappingFinding(violated, name))
        return target_name

    def _mapped_value(
        self, target: MappingTarget, name: str, target_name: str, value: Value, findings: list[MappingFinding]
    ) -> Value:
        """Return the value in the target."""
        viewed = target.view(value)
        rule = rule_of(value, viewed)
        if rule is not None:
            findings.append(MappingFinding(rule, name))
        violated = target.check_value(target_name, viewed)
        if violated is not None:
            findings.append(MappingFinding(violated, name))
        return viewed

    def _cells(
        self,
        target: MappingTarget,
        row: Row,
        attributes: dict[str, Value],
        origins: dict[str, str],
        findings: list[MappingFinding],
    ) -> Cells | None:
        """Return stamps and older versions of the attributes, None if the source has none."""
        if not self._source.rules.stamped:
            return None
        cells = row.cells
        if self.definition.service is not Service.TABLE_STORE:
            findings += [
                MappingFinding(rules.OLDER_VERSIONS, name)
                for name in origins.values()
                if len(cells.get(name, ())) > 1
            ]
            return None
        target_cells = {}
        for target_name, name in origins.items():
            newest, *older = cells[name]
            target_versions = [Cell(attributes[target_name], newest.stamp_ms)]
            for cell in older:
                viewed = target.view(cell.value)
                if viewed == NULL:
                    findings.append(MappingFinding(rules.OLDER_VERSIONS, name))
                    continue
                violated = target.check_value(target_name, viewed)
                if violated is not None:
                    findings.append(MappingFinding(violated, name))
                target_versions.append(Cell(viewed, cell.stamp_ms))
            target_cells[target_name] = tuple(target_versions)
        return target_cells


def key_schema_in(service: Service, schema: KeySchema) -> KeySchema:
    """Return the key schema of a new table of a service for rows with this key."""
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
    """Return the conversion for a table with this definition, None if there is none."""
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
                _defined_kinds(definition),
            )
        case _:
            return None


def _defined_kinds(definition: Definition) -> dict[str, Kind]:
    """Return the kinds of a Table Store table's defined columns and index key columns."""
    pairs = definition.properties.get("tablestore", {}).get("defined", ())
    defined = {name: DEFINED_KINDS[kind] for name, kind in pairs}
    for index in definition.indexes:
        defined.update({column.name: column.kind for column in index.key_schema.columns})
    return {name: kind for name, kind in defined.items() if name not in definition.key_schema.names}
