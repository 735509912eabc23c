"""Rows and searches in the form of this dialect, for the console (gateway/console).

A search is shown as a PartiQL statement, as code for boto3 and as a command of the AWS CLI.
"""

from __future__ import annotations

import base64
import pprint
import shlex
from collections.abc import Mapping
from typing import Any

import orjson

from tablegate.adapters.dynamodb import DIALECT
from tablegate.adapters.dynamodb.features.partiql.operations import run_statement
from tablegate.adapters.dynamodb.operations.items import put_write
from tablegate.adapters.dynamodb.values.keys import render_shown, shown_schema
from tablegate.adapters.dynamodb.values.values import is_too_large, item_of, render_value, render_values, view
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.dialects.adapter import RowDisplay
from tablegate.gateway.model.commands.row_search import (
    Condition,
    Endpoint,
    NotExpressible,
    Operator,
    RowSearch,
)
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.model.errors import BadKey, KeyTooLong
from tablegate.gateway.model.expressions.predicates import Path
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.rows import Row
from tablegate.gateway.model.values.values import Kind, Value, decimal_text

# Searches as code


TYPE_NAMES = {
    Kind.TEXT: "S", Kind.DECIMAL: "N", Kind.BYTES: "B", Kind.BOOL: "BOOL", Kind.NULL: "NULL", Kind.LIST: "L",
    Kind.MAP: "M", Kind.TEXT_SET: "SS", Kind.DECIMAL_SET: "NS", Kind.BYTES_SET: "BS",
}  # fmt: skip


def request_code(search: RowSearch, endpoint: Endpoint) -> dict[str, str]:
    """Return the search as code: name of the tool -> code. The keys are those of its environment, unless any are accepted."""
    request = _Request()
    operation, given = request.of(search)
    return {
        "boto3": _boto3(search, operation, given, endpoint),
        "AWS CLI": _cli(search, operation, given, endpoint),
    }


def _boto3(search: RowSearch, operation: str, given: Mapping[str, Any], endpoint: Endpoint) -> str:
    key, region = _place(search)
    keys = f"\n    aws_access_key_id={key!r}, aws_secret_access_key='any'," if endpoint.accepts_all else ""
    order = "# A Scan has no order.\n" if search.reverse and operation == "scan" else ""
    return f"""import boto3

client = boto3.client(
    "dynamodb", endpoint_url={endpoint.url!r}, region_name={region!r},{keys}
)
request = {pprint.pformat(_with_bytes(given), width=100, sort_dicts=False)}
{order}for page in client.get_paginator({operation!r}).paginate(**request):
    for item in page["Items"]:
        print(item)
"""


def _cli(search: RowSearch, operation: str, given: Mapping[str, Any], endpoint: Endpoint) -> str:
    key, region = _place(search)
    keys = [f"AWS_ACCESS_KEY_ID={shlex.quote(key)} AWS_SECRET_ACCESS_KEY=any"] if endpoint.accepts_all else []
    where = f"--endpoint-url {shlex.quote(endpoint.url)} --region {region}"
    parts = [*keys, f"aws dynamodb {operation}", where]
    for name, value in given.items():
        option = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name)
        if isinstance(value, bool):
            parts.append(f"-{'' if value else '-no'}{option}")
        else:
            text = value if isinstance(value, str) else orjson.dumps(value).decode()
            parts.append(f"-{option} {shlex.quote(text)}")
    return " \\\n    ".join(parts) + "\n"


def _place(search: RowSearch) -> tuple[str, str]:
    """Return an access key id and a region that reach a table, where the server accepts any key."""
    scheme, *place = search.table.namespace.split("/")
    return (place[0], place[1]) if scheme == "aws" and len(place) == 2 else ("any", "us-east-1")


class _Request:
    """The members of a Query or Scan, and the placeholders of its expressions."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def of(self, search: RowSearch) -> tuple[str, dict[str, Any]]:
        """Return (operation, request)."""
        table, index = search.table, search.search_index
        request: dict[str, Any] = {"TableName": table.name}
        if index is not None:
            request["IndexName"] = index.name
        schema = shown_schema(search.schema)
        key: list[Condition] = []
        others = list(search.filters)
        is_query = len(schema.partition) == 1 and bool(search.equal)
        for column, condition in search.key_conditions:
            (key if is_query and column.name in schema.names else others).append(condition)
        if key:
            request["KeyConditionExpression"] = " AND ".join(map(self._expression, key))
        if others:
            request["FilterExpression"] = " AND ".join(map(self._expression, others))
        if self._names:
            request["ExpressionAttributeNames"] = {place: name for name, place in self._names.items()}
        if self._values:
            request["ExpressionAttributeValues"] = self._values
        if is_query and search.reverse:
            request["ScanIndexForward"] = False
        return "query" if is_query else "scan", request

    def _expression(self, condition: Condition) -> str:
        path = self._path(condition.path)
        if condition.operator is Operator.TYPE:
            assert condition.kind is not None
            return f"attribute_type({path}, {self._value(Value(Kind.TEXT, TYPE_NAMES[condition.kind]))})"
        values = [self._value(value) for value in condition.values]
        return expression_text(condition, path, values)

    def _path(self, path: Path) -> str:
        parts = []
        for step in path:
            if isinstance(step, int):
                parts.append(f"[{step}]")
            else:
                parts.append("." + self._names.setdefault(step, f"#n{len(self._names)}"))
        return "".join(parts).removeprefix(".")

    def _value(self, value: Value) -> str:
        place = f":v{len(self._values)}"
        self._values[place] = render_value(value)
        return place


def expression_text(condition: Condition, path: str, values: list[str]) -> str:
    """Return a condition of any operator but TYPE in the language of expressions."""
    operator = condition.operator
    comparison = operator.comparison
    if comparison is not None:
        left = f"size({path})" if operator.is_of_size else path
        return f"{left} {comparison.value} {values[0]}"
    match operator:
        case Operator.BETWEEN:
            return f"{path} BETWEEN {values[0]} AND {values[1]}"
        case Operator.IN:
            return f"{path} IN ({', '.join(values)})"
        case Operator.EXISTS:
            return f"attribute_exists({path})"
        case Operator.NOT_EXISTS:
            return f"attribute_not_exists({path})"
    function = {Operator.BEGINS_WITH: "begins_with", Operator.CONTAINS: "contains"}[operator]
    return f"{function}({path}, {values[0]})"


def _with_bytes(document: Any) -> Any:
    """Return a request with bytes in place of base64, as boto3 takes them."""
    if isinstance(document, dict):
        if document.keys() == {"B"}:
            return {"B": base64.b64decode(document["B"])}
        if document.keys() == {"BS"}:
            return {"BS": [base64.b64decode(each) for each in document["BS"]]}
        return {name: _with_bytes(member) for name, member in document.items()}
    return [_with_bytes(each) for each in document] if isinstance(document, list) else document


# PartiQL


def statement_of(search: RowSearch) -> str:
    """Return a search as a PartiQL statement. Raises NotExpressible."""
    index = search.search_index
    source = [search.table.name] if index is None else [search.table.name, index.name]
    text = f"SELECT * FROM {'.'.join(map(_quoted, source))}"
    conditions = [condition for _, condition in search.key_conditions] + list(search.filters)
    if conditions:
        text += "\nWHERE " + "\n  AND ".join(map(_condition, conditions))
    sort = shown_schema(search.schema).sort
    if search.reverse and search.equal and sort:
        text += f"\nORDER BY {_quoted(sort[0].name)} DESC"
    return text


def _condition(condition: Condition) -> str:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{_quoted(step)}" for step in condition.path)
    path = path.removeprefix(".")
    if condition.operator is Operator.TYPE:
        assert condition.kind is not None
        return f"attribute_type({path}, '{TYPE_NAMES[condition.kind]}')"
    if condition.operator is Operator.EXISTS:
        return f"{path} IS NOT MISSING"
    if condition.operator is Operator.NOT_EXISTS:
        return f"{path} IS MISSING"
    return expression_text(condition, path, [_literal(value) for value in condition.values])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(value: Value) -> str:
    kind, data = view(value)
    match kind:
        case Kind.TEXT:
            return "'" + data.replace("'", "''") + "'"
        case Kind.DECIMAL:
            return decimal_text(data)
        case Kind.BOOL:
            return "true" if data else "false"
        case Kind.NULL:
            return "NULL"
    raise NotExpressible(f"PartiQL has no literal for a value of the type {TYPE_NAMES[kind]}.")


# Rows


def is_own(table: Table) -> bool:
    """Return True if this dialect created the table."""
    return DIALECT in table.properties


def shown_row(table: Table, row: Row) -> Any:
    """Return an item as a JSON document with typed values."""
    return orjson.loads(render_shown(table.key_schema, row))


def document_of(table: Table, values: Mapping[str, Value]) -> Any:
    """Return attributes as a JSON document with typed values."""
    return render_values(values)


def values_of(table: Table, document: Any) -> dict[str, Value]:
    """Return the attributes of a JSON document with typed values. Raises ValueError."""
    if not isinstance(document, dict):
        raise ValueError("the item is not a JSON object")
    try:
        return item_of(document).contents.latest
    except ServiceError as refusal:
        raise ValueError(refusal.message) from None


def write_of(table: Table, values: Mapping[str, Value], old: Row | None, now_ms: int) -> Write:
    """Return the write that puts an item with these attributes. Raises ValueError."""
    try:
        item = item_of(render_values(values))
        if is_too_large(item.size_bytes):
            raise ValueError("the item is larger than 400 KB")
        return put_write(table, item, None)
    except ServiceError as refusal:
        raise ValueError(refusal.message) from None
    except (BadKey, KeyTooLong):
        raise ValueError("a key attribute is missing, of a wrong type or too long") from None


DISPLAY = RowDisplay(
    "DynamoDB JSON", TYPE_NAMES, view, is_own, shown_row, document_of, values_of, write_of, request_code,
    statement_of, run_statement,
)  # fmt: skip
