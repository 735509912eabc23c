"""The conversion of rows to Table Store: values, cells with versions, and the limits of one write."""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.adapters.tablestore.capacity import request_size
from tablegate.adapters.tablestore.values.values import key_kind_shown
from tablegate.adapters.tablestore.values.views import view as tablestore_view
from tablegate.adapters.tablestore.wire import limits as tablestore_limits
from tablegate.adapters.tablestore.wire.names import is_column_name, is_name
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell, WireRow
from tablegate.gateway.model.tables.tables import azure_name_for
from tablegate.gateway.model.values.composites import name_of
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Cell, Contents
from tablegate.gateway.model.values.values import Kind, Value, size_bytes
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.mapping_target import Cells, MappingTarget
from tablegate.transfer.mapping.names import EscapeRules
from tablegate.transfer.mapping.rules import MappingFinding, MappingRule

_SCHEMA_ESCAPES = EscapeRules(r"[^A-Za-z0-9_]|\A[0-9]", takes_empty=False)
"""Escapes for names of key columns that Table Store does not allow."""


class ToTableStore(MappingTarget):
    """Table Store as a target. With `keeps_stamps`, the source's cells have stamps that are written."""

    def __init__(
        self, key_schema: KeySchema, keeps_stamps: bool, max_versions: int, defined: Mapping[str, Kind]
    ) -> None:
        """Set up the target. `key_schema` is the target table's. `defined` are the kinds of its defined columns."""
        self._key_names = key_schema.names
        self._keeps_stamps = keeps_stamps
        self._max_versions = max_versions
        self._defined = defined

    def check_key(self, column: KeyColumn, is_partition: bool, value: Value) -> MappingRule | None:
        return rules.KEY_TOO_LONG if size_bytes(value) > tablestore_limits.KEY_VALUE_MAX_BYTES else None

    def view(self, value: Value) -> Value:
        return tablestore_view(value)

    def check_name(self, name: str) -> MappingRule | None:
        return None if is_column_name(name) else rules.NAME_NOT_ALLOWED

    def check_value(self, name: str, value: Value) -> MappingRule | None:
        if value.kind in (Kind.TEXT, Kind.BYTES) and size_bytes(value) > tablestore_limits.VALUE_MAX_BYTES:
            return rules.VALUE_TOO_LONG
        if self._defined and self._defined.get(name, value.kind) is not value.kind:
            return rules.DEFINED_KIND
        return None

    def contents(
        self, key: Key, attributes: dict[str, Value], cells: Cells | None, findings: list[MappingFinding]
    ) -> Contents | None:
        key_values = dict(zip(self._key_names, key.values, strict=True))
        if cells is None or not self._keeps_stamps:
            new_contents = Contents.of_values({**key_values, **attributes})
            kept_cells: Cells = {name: (Cell(value, -1),) for name, value in attributes.items()}
        else:
            kept_cells = self._newest_versions(cells, findings)
            new_contents = Contents.of_cells(key_values, kept_cells)
        violated = self._violated_rule(new_contents, key_values, kept_cells)
        if violated is not None:
            findings.append(MappingFinding(violated, ""))
            return None
        return new_contents

    def _newest_versions(self, cells: Cells, findings: list[MappingFinding]) -> Cells:
        kept_cells = {}
        for name, versions in cells.items():
            kept_cells[name] = versions[: self._max_versions]
            if len(versions) > self._max_versions:
                findings.append(MappingFinding(rules.OLDER_VERSIONS, name))
        return kept_cells

    def _violated_rule(
        self, contents: Contents, key_values: Mapping[str, Value], cells: Cells
    ) -> MappingRule | None:
        """Return the rule that forbids the row as a whole."""
        number = len(cells) if not self._keeps_stamps else sum(map(len, cells.values()))
        if number > tablestore_limits.COLUMNS_MAX:
            return rules.TOO_MANY_ATTRIBUTES
        stamped = self._keeps_stamps
        if stamped and any(
            not 0 <= cell.stamp_ms < tablestore_limits.STAMP_END_MS
            for versions in cells.values()
            for cell in versions
        ):
            return rules.STAMP_OUT_OF_RANGE
        if contents.size_bytes > tablestore_limits.WRITE_MAX_BYTES // 2:
            wire = [
                WireCell(name, cell.value, cell.stamp_ms if stamped else None)
                for name, versions in cells.items()
                for cell in versions
            ]
            keys = [WireCell(name, value) for name, value in key_values.items()]
            if request_size(WireRow(keys, wire)) > tablestore_limits.WRITE_MAX_BYTES:
                return rules.ROW_TOO_LARGE
        return None


def column_schema(schema: KeySchema) -> KeySchema:
    """Return a schema of one to four columns with allowed names and kinds. The first column is the partition key."""
    columns = schema.columns
    if len(schema.partition) > 1:
        columns = (KeyColumn(name_of(schema.partition), Kind.TEXT), *schema.sort)
    is_plain = all(is_name(column.name) for column in columns)
    key_columns = tuple(
        KeyColumn(
            column.name if is_plain else _plain_name(column.name),
            key_kind_shown(column),
            column.auto_increment,
        )
        for column in columns
    )
    return KeySchema(key_columns[:1], key_columns[1:])


def _plain_name(name: str) -> str:
    escaped = _SCHEMA_ESCAPES.spelled(name)
    return escaped if is_name(escaped) else azure_name_for(name, lambda candidate: False)
