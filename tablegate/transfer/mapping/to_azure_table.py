"""The conversion of rows to Azure Table: PartitionKey and RowKey, values, and the limits of an entity."""

from __future__ import annotations

from tablegate.adapters.azuretable.entities.entity_renderer import entity_size_bytes, property_size_bytes
from tablegate.adapters.azuretable.values import keys as azure_keys
from tablegate.adapters.azuretable.values import values as azure_values
from tablegate.adapters.azuretable.values.keys import OWN_SCHEMA
from tablegate.adapters.azuretable.wire import limits as azure_limits
from tablegate.gateway.model.values.keys import Key, KeyColumn
from tablegate.gateway.model.values.rows import Contents
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.transfer.mapping import rules
from tablegate.transfer.mapping.mapping_target import Cells, MappingTarget
from tablegate.transfer.mapping.names import EscapeRules
from tablegate.transfer.mapping.rules import MappingFinding, MappingRule

KEY_ESCAPES = EscapeRules(azure_keys.FORBIDDEN.pattern, takes_empty=True)


class ToAzureTable(MappingTarget):
    """The Table service as a target."""

    def check_key(self, column: KeyColumn, is_partition: bool, value: Value) -> MappingRule | None:
        text = value.data
        if azure_values.utf16_units(text) > azure_limits.KEY_MAX_UNITS:
            return rules.KEY_TOO_LONG
        return rules.KEY_FORBIDDEN if azure_keys.FORBIDDEN.search(text) else None

    def view(self, value: Value) -> Value:
        return azure_values.view(value)

    def check_name(self, name: str) -> MappingRule | None:
        return rules.NAME_NOT_ALLOWED if len(name) > azure_limits.PROPERTY_NAME_MAX_CHARACTERS else None

    def check_value(self, name: str, value: Value) -> MappingRule | None:
        kind, data = value
        if kind is Kind.TEXT:
            if (
                len(data) > azure_limits.STRING_MAX_UNITS // 2
                and azure_values.utf16_units(data) > azure_limits.STRING_MAX_UNITS
            ):
                return rules.VALUE_TOO_LONG
        elif kind is Kind.BYTES:
            if len(data) > azure_limits.BINARY_MAX_BYTES:
                return rules.VALUE_TOO_LONG
        elif kind is Kind.DATETIME and azure_values.parse_datetime(azure_values.datetime_text(data)) is None:
            return rules.DATETIME_OUT_OF_RANGE
        return None

    def contents(
        self, key: Key, attributes: dict[str, Value], cells: Cells | None, findings: list[MappingFinding]
    ) -> Contents | None:
        if len(attributes) > azure_limits.PROPERTIES_MAX:
            findings.append(MappingFinding(rules.TOO_MANY_ATTRIBUTES, ""))
            return None
        key_values = dict(zip(OWN_SCHEMA.names, key.values, strict=True))
        new_contents = Contents.of_values({**key_values, **attributes})
        if new_contents.size_bytes > _SURELY_SMALL_BYTES:
            properties = [property_size_bytes(name, value) for name, value in attributes.items()]
            if entity_size_bytes(key_values) + sum(properties) > azure_limits.ENTITY_MAX_BYTES:
                findings.append(MappingFinding(rules.ROW_TOO_LARGE, ""))
                return None
        return new_contents


# An entity exceeds the gateway's size by a few bytes a property and at most twice the size of texts.
_SURELY_SMALL_BYTES = azure_limits.ENTITY_MAX_BYTES // 8
