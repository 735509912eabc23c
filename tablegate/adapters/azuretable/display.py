"""Rows and searches in the form of this dialect, and searches as code for azure-data-tables, for the console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tablegate.adapters.azuretable import keys, values
from tablegate.adapters.azuretable.entities.entity_parser import parse_entity
from tablegate.adapters.azuretable.entities.entity_renderer import EntityFormat, MetadataLevel, rule_of
from tablegate.adapters.azuretable.values import spell, view
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.dialects.adapter import RowDisplay
from tablegate.gateway.model.commands.row_search import (
    Condition,
    Endpoint,
    NotExpressible,
    Operator,
    RowSearch,
)
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.errors import BadKey, Busy
from tablegate.gateway.model.expressions.predicates import Comparison
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.composites import text_of
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value
from tablegate.gateway.security.credentials import DEV_AZURE_ACCOUNT, DEV_AZURE_KEY

TYPE_NAMES = {
    Kind.TEXT: "Edm.String", Kind.INT32: "Edm.Int32", Kind.INT64: "Edm.Int64", Kind.DOUBLE: "Edm.Double",
    Kind.BOOL: "Edm.Boolean", Kind.DATETIME: "Edm.DateTime", Kind.GUID: "Edm.Guid", Kind.BYTES: "Edm.Binary",
}  # fmt: skip
_SDK = "azure-data-tables"
_OPERATORS = {
    Comparison.EQ: "eq", Comparison.NE: "ne", Comparison.LT: "lt", Comparison.LE: "le", Comparison.GT: "gt",
    Comparison.GE: "ge",
}  # fmt: skip


def request_code(search: RowSearch, endpoint: Endpoint) -> dict[str, str]:
    """Return the search as code: name of the SDK -> code. Raises NotExpressible."""
    if search.search_index is not None:
        raise NotExpressible("Azure Table has no indexes.")
    parts = _key_parts(search) + [_filter_part(search, each) for each in search.filters]
    call = f"query_entities({' and '.join(parts)!r})" if parts else "list_entities()"
    scheme, _, account = search.table.namespace.partition("/")
    account = account if scheme == "azure" and account else DEV_AZURE_ACCOUNT
    key = DEV_AZURE_KEY if endpoint.accepts_all else "your key"
    order = "# Azure Table returns entities in ascending order only.\n" if search.reverse else ""
    return {
        _SDK: f"""from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient

credential = AzureNamedKeyCredential({account!r}, {key!r})
table = TableClient({f"{endpoint.url}/{account}"!r}, {search.table.azure_name!r}, credential=credential)
{order}for entity in table.{call}:
    print(entity)
"""
    }


def _key_parts(search: RowSearch) -> list[str]:
    """Return the parts of a $filter for the conditions on key columns."""
    schema = search.table.key_schema
    if not search.key_conditions:
        return []
    if len(schema.partition) > 1 or len(schema.sort) > 1:
        raise NotExpressible(
            "Azure Table shows several key columns as one text, which cannot be compared by column."
        )
    parts = []
    for name, (column, condition) in zip(("PartitionKey", "RowKey"), search.key_conditions, strict=False):
        if column.kind is not Kind.TEXT and condition.operator is not Operator.EQ:
            raise NotExpressible(f"Azure Table shows {column.name} as text, which has another order.")
        literals = [Value(Kind.TEXT, text_of(value)) for value in condition.values]
        parts.append(_comparison(condition._replace(values=tuple(literals)), name))
    return parts


def _filter_part(search: RowSearch, condition: Condition) -> str:
    name, *nested = condition.path
    if nested:
        raise NotExpressible("A $filter of Azure Table has no paths into documents.")
    if name in search.table.key_schema.names:
        if not keys.is_own(search.table.key_schema):
            raise NotExpressible("Write conditions on key columns into the fields of the key.")
        return _comparison(condition, str(name))
    return _comparison(condition, keys.spelled(str(name)))


def _comparison(condition: Condition, name: str) -> str:
    operator = condition.operator
    literals = [_literal(value) for value in condition.values]
    if operator.comparison is not None and not operator.is_of_size:
        return f"{name} {_OPERATORS[operator.comparison]} {literals[0]}"
    match operator:
        case Operator.BETWEEN:
            return f"({name} ge {literals[0]} and {name} le {literals[1]})"
        case Operator.IN:
            return f"({' or '.join(f'{name} eq {each}' for each in literals)})"
        case Operator.BEGINS_WITH if condition.values[0].kind is Kind.TEXT and condition.values[0].data:
            return f"({name} ge {literals[0]} and {name} lt {_literal(_next_text(condition.values[0].data))})"
    raise NotExpressible(f"A $filter of Azure Table has no operator '{operator.value}'.")


def _next_text(prefix: str) -> Value:
    """Return the lowest text above all texts with a prefix."""
    stem = prefix.rstrip(chr(0x10FFFF))
    if not stem:
        raise NotExpressible("This prefix has no upper bound.")
    following = ord(stem[-1]) + 1
    return Value(Kind.TEXT, stem[:-1] + chr(0xE000 if following == 0xD800 else following))


def _literal(value: Value) -> str:
    kind, data = values.view(value)
    match kind:
        case Kind.TEXT:
            return "'" + data.replace("'", "''") + "'"
        case Kind.BOOL:
            return "true" if data else "false"
        case Kind.INT32:
            return str(data)
        case Kind.INT64:
            return f"{data}L"
        case Kind.DOUBLE:
            return repr(data)
        case Kind.DATETIME:
            return f"datetime'{values.datetime_text(data)}'"
        case Kind.GUID:
            return f"guid'{data}'"
        case Kind.BYTES:
            return f"X'{data.hex()}'"
    raise NotExpressible("A $filter of Azure Table has no null.")


def is_own(table: Table) -> bool:
    """Return True if the table has the key of Azure Table."""
    return keys.is_own(table.key_schema)


def shown_row(table: Table, row: Row) -> Any:
    """Return an entity as a JSON document with the types of its properties, without addresses."""
    return EntityFormat(table, "", "", MetadataLevel.MINIMAL).member(row)


def document_of(table: Table, values: Mapping[str, Value]) -> Any:
    """Return attributes as an entity with the types of its properties, without ETag and Timestamp."""
    schema = table.key_schema
    document: dict[str, Any] = {}
    if all(name in values for name in schema.names):
        texts = keys.texts_of(schema, tuple(values[name] for name in schema.names))
        document = dict(zip(("PartitionKey", "RowKey"), texts, strict=True))
    for name, value in values.items():
        wire, edm = (None, None) if name in schema.names else spell(value)
        if wire is None:
            continue
        if edm is not None:
            document[f"{keys.spelled(name)}@odata.type"] = edm
        document[keys.spelled(name)] = wire
    return document


def values_of(table: Table, document: Any) -> dict[str, Value]:
    """Return the attributes of an entity as a JSON document. Raises ValueError."""
    try:
        entity = parse_entity(orjson.dumps(document))
    except (ServiceError, Busy) as refusal:
        raise ValueError(str(refusal)) from None
    if entity.partition_key is None or entity.row_key is None:
        raise ValueError("PartitionKey or RowKey is missing")
    key = keys.key_of(table.key_schema, entity.partition_key, entity.row_key)
    if key is None:
        raise ValueError("PartitionKey and RowKey are no key of this table")
    if not entity.members.keys().isdisjoint(table.key_schema.names):
        raise ValueError("a property has the name of a key column")
    return {**dict(zip(table.key_schema.names, key.values, strict=True)), **entity.attributes}


def write_of(table: Table, values: Mapping[str, Value], old: Row | None, now_ms: int) -> Write:
    """Return the write that replaces an entity. NULL, which Azure does not show, is kept. Raises ValueError."""
    schema = table.key_schema
    try:
        key = schema.key(values)
        keys.check_new_key(*keys.texts_of(schema, key.values))
    except BadKey as error:
        raise ValueError(
            f"the key column {error.facts['column'].name} is missing or of a wrong type"
        ) from None
    except ServiceError as refusal:
        raise ValueError(refusal.text) from None
    checked = values_of(table, document_of(table, values))
    nulls = {name: value for name, value in values.items() if value.kind is Kind.NULL}
    contents = Contents.of_values({**checked, **nulls})
    return Write(table, key, Replace(contents), view=view, rule=rule_of(schema.names, are_counted=True))


DISPLAY = RowDisplay(
    "OData", TYPE_NAMES, view, is_own, shown_row, document_of, values_of, write_of, request_code,
)  # fmt: skip
