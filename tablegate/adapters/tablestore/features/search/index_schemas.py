"""Schemas of search indexes: validation of a request's schema, and its conversion to the gateway's.

Source: search.proto of the Java and Python SDKs, and "Create a search index".
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.names import is_column_name
from tablegate.adapters.tablestore.wire.parsing import parse
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.features.search import analysis
from tablegate.gateway.features.search.analysis import Analyzer, can_analyze
from tablegate.gateway.features.search.field_values import is_date_format
from tablegate.gateway.features.search.schema import FieldType, SearchField, SearchSchema
from tablegate.gateway.model.errors import NotInstalled

_TYPES = {
    messages.LONG: FieldType.LONG,
    messages.DOUBLE: FieldType.DOUBLE,
    messages.BOOLEAN: FieldType.BOOLEAN,
    messages.KEYWORD: FieldType.KEYWORD,
    messages.FUZZY_KEYWORD: FieldType.KEYWORD,  # only its speed differs, for patterns and suffixes
    messages.TEXT: FieldType.TEXT,
    messages.NESTED: FieldType.NESTED,
    messages.GEO_POINT: FieldType.GEO_POINT,
    messages.DATE: FieldType.DATE,
    messages.VECTOR: FieldType.VECTOR,
    messages.IP: FieldType.IP,
}
# Types that a virtual field can have. Source: "Virtual columns" (2026).
_VIRTUAL = frozenset(
    {
        FieldType.KEYWORD,
        FieldType.TEXT,
        FieldType.LONG,
        FieldType.DOUBLE,
        FieldType.DATE,
        FieldType.IP,
        FieldType.GEO_POINT,
    }
)
_METRICS = {
    messages.EUCLIDEAN: "euclidean",
    messages.COSINE: "cosine",
    messages.DOT_PRODUCT: "dot_product",
}
_OBJECT_JSON, _NESTED_JSON = 1, 2
_ANALYZERS = {analysis.SINGLE_WORD, analysis.SPLIT, analysis.FUZZY, *analysis.CHINESE_ANALYZERS}
_GRAM_MAX_CHARACTERS = 7


def schema_of(schema: messages.IndexSchema) -> SearchSchema:
    """Return the schema of an index. Raises ServiceError."""
    if not schema.field_schemas:
        raise invalid("The field schemas of the search index must not be empty.")
    paths = [path for path, _ in all_fields(schema.field_schemas)]
    if len(paths) > limits.SEARCH_FIELDS_MAX:
        raise invalid(f"The number of fields in search index exceeds the limit: {limits.SEARCH_FIELDS_MAX}.")
    search_schema = SearchSchema(_fields_of(schema.field_schemas, ()))
    vectors = [each for each in search_schema.fields if each.type is FieldType.VECTOR]
    if len(vectors) > limits.VECTOR_FIELDS_MAX:
        raise invalid(f"The number of vector fields exceeds the limit: {limits.VECTOR_FIELDS_MAX}.")
    if len(set(map(".".join, paths))) < len(paths):
        raise invalid("Duplicated field name in search index.")
    return search_schema


def normalized(schema: messages.IndexSchema) -> messages.IndexSchema:
    """Return a schema with its defaults, as DescribeSearchIndex returns it."""
    complete = messages.IndexSchema()
    complete.CopyFrom(schema)
    fields = [field for _, field in all_fields(complete.field_schemas)]
    for field in fields:
        _complete(field)
    complete.index_setting.SetInParent()
    if not all(
        each.HasField("pk_sort") or each.HasField("field_sort") for each in complete.index_sort.sorter
    ):
        raise invalid("index_sort only supports FieldSort and PrimaryKeySort.")
    has_nested = any(map(_is_nested, fields))
    if has_nested and complete.index_sort.sorter:
        raise invalid("index_sort is not supported by a search index with a nested field.")
    if has_nested:
        complete.index_sort.SetInParent()
    elif not complete.index_sort.sorter:
        complete.index_sort.sorter.add().pk_sort.order = messages.SORT_ORDER_ASC
    return complete


def encoded(schema: messages.IndexSchema) -> str:
    """Return a schema as a property of an index has it."""
    return base64.b64encode(schema.SerializeToString()).decode()


def _complete(field: messages.FieldSchema) -> None:
    if field.field_type in (messages.NESTED, messages.JSON):
        return
    if not field.HasField("index"):
        field.index = True
    field.store = _is_stored(field)
    if field.field_type == messages.TEXT and not field.analyzer:
        field.analyzer = analysis.SINGLE_WORD


def all_fields(
    fields: Sequence[messages.FieldSchema], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], messages.FieldSchema]]:
    """Yield all fields with their paths, also those inside other fields."""
    for field in fields:
        field_path = (*path, field.field_name)
        yield field_path, field
        yield from all_fields(field.field_schemas, field_path)


def _is_nested(field: messages.FieldSchema) -> bool:
    """Return True if the objects of a field are documents of their own. Source: "JSON" (search indexes, 2026)."""
    is_json = field.field_type == messages.JSON
    return field.field_type == messages.NESTED or (is_json and field.json_type == _NESTED_JSON)


def _fields_of(
    fields: Sequence[messages.FieldSchema], ancestors: tuple[str, ...], path: tuple[str, ...] = ()
) -> tuple[SearchField, ...]:
    """Return fields. `path`: the names of the JSON objects around them, inside the last ancestor."""
    found: list[SearchField] = []
    for field in fields:
        if not is_column_name(field.field_name):
            raise invalid(f"Invalid field name in search index: '{field.field_name}'.")
        if field.field_type == messages.JSON and field.json_type not in (_OBJECT_JSON, _NESTED_JSON):
            raise invalid(f"The JSON type of field '{field.field_name}' must be OBJECT or NESTED.")
        if field.field_type == messages.JSON and not _is_nested(field):
            _check_sub_fields(field, field.field_name, (*ancestors, *path))
            found += _fields_of(field.field_schemas, ancestors, (*path, field.field_name))
            continue
        made = _field_of(field, ancestors, ".".join([*ancestors[-1:], *path, field.field_name]))
        if path:
            if made.is_virtual or made.type is FieldType.VECTOR:
                raise invalid(f"The field of a JSON object can not be virtual or a vector: '{made.name}'.")
            is_array = made.type is not FieldType.NESTED
            made = dataclasses.replace(
                made, source=path[0], path=(*path[1:], field.field_name), is_array=is_array
            )
        found.append(made)
    return tuple(found)


def _check_sub_fields(field: messages.FieldSchema, full_name: str, around: tuple[str, ...]) -> None:
    if len(around) >= limits.NESTED_DEPTH_MAX:
        raise invalid(f"The depth of nested fields exceeds the limit: {limits.NESTED_DEPTH_MAX}.")
    if not field.field_schemas:
        raise invalid(f"The nested field '{full_name}' must have sub fields.")


def _field_of(field: messages.FieldSchema, ancestors: tuple[str, ...], full_name: str) -> SearchField:
    name = field.field_name
    type_of_field = FieldType.NESTED if _is_nested(field) else _TYPES.get(field.field_type)
    if type_of_field is None:
        kind = messages.FieldType.Name(field.field_type)
        raise invalid(f"The type of field '{name}' is not supported: {kind}.")
    source = _source_of(field, type_of_field, ancestors)
    if type_of_field is FieldType.NESTED:
        return _nested_field(field, full_name, ancestors)
    if field.field_schemas:
        raise invalid(f"Only a NESTED field can have sub fields: '{full_name}'.")
    return SearchField(
        full_name,
        type_of_field,
        source,
        is_array=field.is_array,
        is_indexed=field.index or not field.HasField("index"),
        is_stored=not field.is_virtual_field and _is_stored(field),
        is_virtual=field.is_virtual_field,
        analyzer=_analyzer_of(field) if type_of_field is FieldType.TEXT else None,
        date_formats=_date_formats_of(field) if type_of_field is FieldType.DATE else (),
        ancestors=ancestors,
        **(_vector_options(field, ancestors) if type_of_field is FieldType.VECTOR else {}),
    )


def _is_stored(field: messages.FieldSchema) -> bool:
    return field.store if field.HasField("store") else field.field_type != messages.TEXT


def _source_of(field: messages.FieldSchema, type_of_field: FieldType, ancestors: tuple[str, ...]) -> str:
    """Return the name of the column that the values of a field come from. Raises ServiceError."""
    name: str = field.field_name
    sources = field.source_field_names
    if not field.is_virtual_field:
        if sources:
            raise invalid(f"Only a virtual field can have source fields: '{name}'.")
        return name
    if type_of_field not in _VIRTUAL or ancestors:
        raise invalid(f"The field can not be virtual: '{name}'.")
    if len(sources) != 1 or not is_column_name(sources[0]):
        raise invalid(f"A virtual field must have one source field: '{name}'.")
    source: str = sources[0]
    return source


def _vector_options(field: messages.FieldSchema, ancestors: tuple[str, ...]) -> dict[str, Any]:
    options = field.vector_options
    if not 1 <= options.dimension <= limits.VECTOR_DIMENSIONS_MAX:
        raise invalid(f"The dimension of a vector must be in range: [1, {limits.VECTOR_DIMENSIONS_MAX}].")
    if ancestors or field.is_array:
        raise invalid(f"The vector field '{field.field_name}' must not be nested or an array.")
    return {"dimensions": options.dimension, "metric": _METRICS[options.metric_type]}


def _nested_field(field: messages.FieldSchema, full_name: str, ancestors: tuple[str, ...]) -> SearchField:
    _check_sub_fields(field, full_name, ancestors)
    inner = _fields_of(field.field_schemas, (*ancestors, full_name))
    return SearchField(full_name, FieldType.NESTED, field.field_name, ancestors=ancestors, fields=inner)


def _date_formats_of(field: messages.FieldSchema) -> tuple[str, ...]:
    formats = tuple(field.date_formats)
    for each in formats:
        if not is_date_format(each):
            raise invalid(f"The date format of field '{field.field_name}' is not supported: {each}.")
    return formats


def _analyzer_of(field: messages.FieldSchema) -> Analyzer:
    name = field.analyzer or analysis.SINGLE_WORD
    if name not in _ANALYZERS:
        raise invalid(f"The analyzer of field '{field.field_name}' is not supported: {name}.")
    analyzer = Analyzer(name)
    if not can_analyze(analyzer):
        raise NotInstalled("chinese")
    if not field.HasField("analyzer_parameter") or name in analysis.CHINESE_ANALYZERS:
        return analyzer
    kind: Any = {
        analysis.SINGLE_WORD: messages.SingleWordAnalyzerParameter,
        analysis.SPLIT: messages.SplitAnalyzerParameter,
        analysis.FUZZY: messages.FuzzyAnalyzerParameter,
    }[name]
    parameter = parse(kind, field.analyzer_parameter, "the analyzer parameter")
    analyzer = dataclasses.replace(analyzer, is_case_sensitive=parameter.case_sensitive)
    if name == analysis.SINGLE_WORD:
        return dataclasses.replace(analyzer, delimits_words=parameter.delimit_word)
    if name == analysis.SPLIT:
        return dataclasses.replace(analyzer, delimiter=parameter.delimiter)
    least = parameter.min_chars if parameter.HasField("min_chars") else 1
    most = parameter.max_chars if parameter.HasField("max_chars") else _GRAM_MAX_CHARACTERS
    if not 1 <= least <= most <= _GRAM_MAX_CHARACTERS:
        raise invalid(f"The characters of a fuzzy analyzer must be in range: [1, {_GRAM_MAX_CHARACTERS}].")
    return dataclasses.replace(analyzer, min_chars=least, max_chars=most)
