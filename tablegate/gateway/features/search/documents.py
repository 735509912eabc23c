"""Documents: the values of a row in a search index, and their terms.

A document is JSON: {field: [value, ...]}. Values are integers (LONG, DATE in nanoseconds), floats, booleans, texts,
digits of addresses (addresses.py) and pairs of latitude and longitude. A value of a NESTED field is a document itself,
with the full names of its fields. A column whose value does not fit its field is left out.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from tablegate.gateway.features.search import field_values
from tablegate.gateway.features.search.analysis import tokens_of
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchSchema
from tablegate.gateway.model.values.values import INT64_MAX, INT64_MIN, Kind, Value

Document = Mapping[str, list[Any]]

# Limits of the service ("Search index limits"): elements of an array, objects of a nested field, bytes of a keyword.
ARRAY_MAX = 256
NESTED_MAX = 256
KEYWORD_MAX_BYTES = 4096
TERM_BYTES = 512
"""Maximum length of a stored term. Longer ones are stored by their beginning."""
WRITTEN_AT = ""
"""The name under which a document of an index with a time to live has the time of its row."""
WRITTEN_AT_NUMBER = -1
"""The number of that name in terms."""


def document_of(schema: SearchSchema, values: Mapping[str, Value]) -> dict[str, list[Any]]:
    """Return the document of a row, given the values of its columns as the dialect of the index shows them."""
    document = {}
    parsed: dict[str, Any] = {}
    for field in schema.fields:
        value = values.get(field.source)
        if value is None:
            continue
        if field.is_array or field.path or field.type is FieldType.NESTED:
            if field.source not in parsed:
                parsed[field.source] = _json_of(value)
            field_values = _values_of_json(field, parsed[field.source])
        else:
            one = _value_of_source(field, value.data) if value.kind is not Kind.BYTES else None
            field_values = [] if one is None else [one]
        if field_values:
            document[field.name] = field_values
    return document


def _json_of(value: Value) -> Any:
    """Return the JSON of a text. Other values are those of an empty list."""
    try:
        return orjson.loads(value.data) if value.kind is Kind.TEXT else []
    except orjson.JSONDecodeError:
        return []


def _at_path(data: Any, path: tuple[str, ...]) -> list[Any]:
    """Return what is at a path of members in JSON, in all elements of lists. Nothing if it is more than an array may
    have.
    """
    found = [data]
    for name in (None, *path):
        if name is not None:
            found = [each[name] for each in found if isinstance(each, dict) and each.get(name) is not None]
        elements = (element for each in found for element in (each if isinstance(each, list) else (each,)))
        found = list(itertools.islice(elements, ARRAY_MAX + 1))
        if len(found) > ARRAY_MAX:
            return []
    return [each for each in found if each is not None]


def _values_of_json(field: SearchField, elements: Any) -> list[Any]:
    """Return the values of a field for JSON, or none if they do not fit."""
    if field.path:
        elements = _at_path(elements, field.path)
    if field.type is FieldType.NESTED:
        objects = elements if isinstance(elements, list) else [elements]
        if len(objects) > NESTED_MAX or not all(isinstance(each, dict) for each in objects):
            return []
        return [_nested_document(field, each) for each in objects]
    if not isinstance(elements, list):
        elements = [elements]
    if len(elements) > ARRAY_MAX:
        return []
    values = [_value_of_source(field, each) for each in elements]
    return [] if None in values else values


def _nested_document(field: SearchField, members: Mapping[str, Any]) -> dict[str, list[Any]]:
    document = {}
    for inner in field.fields:
        if members.get(inner.source) is not None:
            values = _values_of_json(inner, members[inner.source])
            if values:
                document[inner.name] = values
    return document


def _value_of_source(field: SearchField, data: Any) -> Any:
    """Return a value of a field for the data of a column or an element of JSON. None if it does not fit.

    The source of a virtual field may have another type. Source: "Virtual columns" (Table Store, search index).
    """
    if field.is_virtual:
        if type(data) in (int, float) and field.type in (FieldType.KEYWORD, FieldType.TEXT):
            data = str(data)
        elif type(data) is str:
            data = _parsed(field, data)
        elif type(data) is not int or field.type not in (FieldType.DATE, FieldType.LONG, FieldType.DOUBLE):
            return None
    value = value_of(field, data)
    if field.type is FieldType.DATE and value is not None and not 0 <= value <= field_values.LAST_NS:
        return None
    return value


# Values


def value_of(field: SearchField, data: Any) -> Any:
    """Return a value of a field for the data of a column or an element of JSON. None if it does not fit."""
    return _CONVERTERS[field.type](field, data)


def query_value_of(field: SearchField, data: Any) -> Any:
    """Return a value of a field for a term of a query, which may be the text of a number or boolean. None if it does not
    fit. A time before or after those of dates becomes the nearest one of 64 bits.
    """
    if isinstance(data, str):
        data = _parsed(field, data)
    if isinstance(data, float) and field.type is FieldType.LONG and data.is_integer():
        data = int(data)
    value = value_of(field, data)
    if field.type is FieldType.DATE and value is not None:
        return max(INT64_MIN, min(value, INT64_MAX))
    return value


def _parsed(field: SearchField, text: str) -> Any:
    """Return the value of a text for a field of numbers or booleans, None if there is none. Otherwise the text."""
    parser = _PARSERS.get(field.type)
    try:
        return text if parser is None else parser(text)
    except (ValueError, KeyError):
        return None


_PARSERS: Mapping[FieldType, Callable[[str], Any]] = {
    FieldType.LONG: int,
    FieldType.DOUBLE: float,
    FieldType.BOOLEAN: lambda text: {"true": True, "false": False}[text.lower()],
}


def _long(field: SearchField, data: Any) -> int | None:
    return data if type(data) is int and INT64_MIN <= data <= INT64_MAX else None


def _double(field: SearchField, data: Any) -> float | None:
    # Numbers of other dialects without a fraction are shown as integers. Infinities and NaN have no JSON.
    if type(data) is int:
        data = float(data)
    return data if type(data) is float and abs(data) < float("inf") else None


def _boolean(field: SearchField, data: Any) -> bool | None:
    return data if type(data) is bool else None


def _keyword(field: SearchField, data: Any) -> str | None:
    return data if type(data) is str and len(data.encode()) <= KEYWORD_MAX_BYTES else None


def _text(field: SearchField, data: Any) -> str | None:
    return data if type(data) is str else None


def _date(field: SearchField, data: Any) -> int | None:
    if type(data) is int:
        return field_values.nanoseconds_of_number(data, field.date_formats)
    return field_values.nanoseconds_of(data, field.date_formats) if type(data) is str else None


def _geo_point(field: SearchField, data: Any) -> list[float] | None:
    point = field_values.point_of(data) if type(data) is str else None
    return None if point is None else list(point)


def _address(field: SearchField, data: Any) -> str | None:
    return field_values.address_digits(data) if type(data) is str else None


def _vector(field: SearchField, data: Any) -> list[float] | None:
    """Return the components of a vector, the text of a JSON list of numbers."""
    try:
        components = orjson.loads(data) if type(data) is str else None
    except orjson.JSONDecodeError:
        return None
    if not isinstance(components, list) or len(components) != field.dimensions:
        return None
    numbers = [_double(field, component) for component in components]
    return None if None in numbers else numbers  # type: ignore[return-value]


_CONVERTERS: Mapping[FieldType, Callable[[SearchField, Any], Any]] = {
    FieldType.LONG: _long,
    FieldType.DOUBLE: _double,
    FieldType.BOOLEAN: _boolean,
    FieldType.KEYWORD: _keyword,
    FieldType.TEXT: _text,
    FieldType.DATE: _date,
    FieldType.GEO_POINT: _geo_point,
    FieldType.VECTOR: _vector,
    FieldType.IP: _address,
    FieldType.NESTED: lambda field, data: None,
}


# Terms


def values_in(field: SearchField, document: Document) -> list[Any]:
    """Return what queries of terms compare in a document: the tokens of a TEXT, otherwise the values."""
    values = document.get(field.name, [])
    if field.type is not FieldType.TEXT or field.analyzer is None:
        return values
    return [token.text for text in values for token in tokens_of(field.analyzer, text)]


def documents_at(field: SearchField, document: Document) -> list[Document]:
    """Return the parts of a document that can have a field: itself, or all objects of the NESTED fields around it."""
    documents: list[Document] = [document]
    for name in field.ancestors:
        documents = [inner for outer in documents for inner in outer.get(name, ())]
    return documents


def term_bytes(field: SearchField, value: Any) -> bytes:
    """Return a value as bytes in the order of values. Long texts are clipped to TERM_BYTES."""
    match field.type:
        case FieldType.LONG | FieldType.DATE:
            return int(value - INT64_MIN).to_bytes(8, "big")
        case FieldType.DOUBLE:
            return _double_bytes(value)
        case FieldType.BOOLEAN:
            return b"\x01" if value else b"\x00"
        case FieldType.VECTOR:
            return b""
        case FieldType.GEO_POINT:
            return _double_bytes(value[0])
    return str(value).encode()[:TERM_BYTES]


def time_bytes(at_ms: int) -> bytes:
    """Return a time as the bytes of a term."""
    return (at_ms - INT64_MIN).to_bytes(8, "big")


def _double_bytes(value: float) -> bytes:
    data = struct.pack(">d", value + 0.0)  # -0.0 becomes 0.0
    return bytes(255 - each for each in data) if data[0] & 0x80 else bytes((data[0] | 0x80,)) + data[1:]


def terms_of(schema: SearchSchema, document: Document) -> set[tuple[int, bytes]]:
    """Return the terms under which a document is found: the number of the field and the bytes of a value.

    An object of a NESTED field has an empty term of that field, besides those of its own fields. The time of the row has
    a term of its own.
    """
    terms = {(WRITTEN_AT_NUMBER, time_bytes(at_ms)) for at_ms in document.get(WRITTEN_AT, ())}
    _add_terms(schema, schema.fields, document, terms)
    return terms


def _add_terms(
    schema: SearchSchema,
    fields: tuple[SearchField, ...],
    document: Document,
    terms: set[tuple[int, bytes]],
) -> None:
    for field in fields:
        number = schema.numbers[field.name]
        if field.type is FieldType.NESTED:
            for inner in document.get(field.name, ()):
                terms.add((number, b""))
                _add_terms(schema, field.fields, inner, terms)
        elif field.is_indexed:
            terms.update((number, term_bytes(field, value)) for value in values_in(field, document))
