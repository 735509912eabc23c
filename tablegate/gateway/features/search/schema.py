"""Search indexes and their schemas.

A search index copies some columns of the rows of a table into documents. A document maps the name of a field to the list
of its values. The fields of a NESTED field have dotted names ("path.name").
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tablegate.gateway.features.search.analysis import Analyzer


class FieldType(Enum):
    """The type of a field."""

    LONG = "long"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    KEYWORD = "keyword"
    TEXT = "text"
    DATE = "date"
    GEO_POINT = "geo_point"
    NESTED = "nested"
    VECTOR = "vector"
    IP = "ip"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class SearchField:
    """A field of a search index.

    - `name`: the full name, with the path of a nested field.
    - `source`: the column, or the member of a nested object, that the values come from.
    - `path`: the members inside the JSON of the source that have the values. A list stands for all its elements.
    - `is_indexed`: queries can use the field.
    - `is_stored`: the source column is returned with the columns of the index.
    - `is_virtual`: the values are converted from another type (documents.py), and the field is only searched.
    - `date_formats`: the accepted formats of a DATE (field_values.py).
    - `ancestors`: the names of the NESTED fields around it, the outermost first.
    - `dimensions`, `metric`: of a VECTOR. The metric is a value of Metric (features/vectors/vectors.py).
    - `fields`: the fields of a NESTED field.
    """

    name: str
    type: FieldType
    source: str
    is_array: bool = False
    is_indexed: bool = True
    is_stored: bool = True
    is_virtual: bool = False
    analyzer: Analyzer | None = None
    date_formats: tuple[str, ...] = ()
    ancestors: tuple[str, ...] = ()
    dimensions: int = 0
    metric: str = ""
    fields: tuple[SearchField, ...] = ()
    path: tuple[str, ...] = ()

    @classmethod
    def of_json(cls, members: Mapping[str, Any]) -> SearchField:
        """Return a field from the JSON of `SearchSchema.as_json`."""
        analyzer = members["analyzer"]
        return cls(
            **{
                **members,
                "type": FieldType(members["type"]),
                "analyzer": None if analyzer is None else Analyzer(**analyzer),
                "date_formats": tuple(members["date_formats"]),
                "ancestors": tuple(members["ancestors"]),
                "path": tuple(members.get("path", ())),
                "fields": tuple(cls.of_json(each) for each in members["fields"]),
            }
        )

    def as_json(self) -> dict[str, Any]:
        analyzer = None if self.analyzer is None else dataclasses.asdict(self.analyzer)
        members = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {
            **members,
            "type": self.type.value,
            "analyzer": analyzer,
            "fields": [each.as_json() for each in self.fields],
        }


@dataclass(frozen=True, slots=True)
class SearchSchema:
    """The fields of a search index. `numbers`: the number of each field and nested field, under which it is stored."""

    fields: tuple[SearchField, ...]
    by_name: Mapping[str, SearchField] = field(init=False, repr=False, compare=False)
    numbers: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_name = {each.name: each for each in _all_fields(self.fields)}
        object.__setattr__(self, "by_name", by_name)
        object.__setattr__(self, "numbers", {name: number for number, name in enumerate(by_name)})

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the table that the index copies."""
        return frozenset(each.source for each in self.fields)

    def top(self, field: SearchField) -> SearchField:
        """Return the field of a column to which a field belongs: itself, or the outermost NESTED field around it."""
        return next(each for each in self.fields if _contains(each, field.name))

    @classmethod
    def of_json(cls, members: list[Mapping[str, Any]]) -> SearchSchema:
        """Return a schema from its JSON."""
        return cls(tuple(SearchField.of_json(each) for each in members))

    def as_json(self) -> list[dict[str, Any]]:
        return [each.as_json() for each in self.fields]


def _contains(field: SearchField, name: str) -> bool:
    return field.name == name or any(_contains(each, name) for each in field.fields)


def _all_fields(fields: tuple[SearchField, ...]) -> Iterator[SearchField]:
    for each in fields:
        yield each
        yield from _all_fields(each.fields)


@dataclass(frozen=True, slots=True)
class SearchIndex:
    """A search index of a table. `dialect` created it, and its values are as that dialect shows them.

    - `properties`: what the dialect reports of it.
    - `lifetime_ms`: the time after the last write of a row when its document is removed. None keeps it.
    """

    id: int
    table_id: int
    name: str
    dialect: str
    schema: SearchSchema
    properties: Mapping[str, Any]
    created_at_ms: int
    lifetime_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SearchIndexState:
    """The progress of a search index: all changes of the table up to `synced_to_ms` are in it.

    - `is_filling`: the rows from before its creation are still being added.
    - `documents`, `document_bytes`: the number of documents, and the bytes of their contents.
    """

    index: SearchIndex
    table_name: str
    is_filling: bool
    synced_to_ms: int
    documents: int
    document_bytes: int
