"""Messages of search requests."""

from __future__ import annotations

import struct
from typing import Any

from google.protobuf.message import Message

from tablegate.adapters.tablestore.wire.plainbuffer import WireRow, decode_row
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tests.adapters.tablestore.client import TableStoreService


def variant(value: Any) -> bytes:
    """Return a scalar as clients encode it."""
    if isinstance(value, bool):
        return b"\x02" + bytes((value,))
    if isinstance(value, int):
        return b"\x00" + struct.pack("<q", value)
    if isinstance(value, float):
        return b"\x01" + struct.pack("<d", value)
    data = value.encode()
    return b"\x03" + struct.pack("<I", len(data)) + data


def field(name: str, kind: int, **members: Any) -> messages.FieldSchema:
    return messages.FieldSchema(field_name=name, field_type=kind, **members)


def schema(*fields: tuple[str, int] | messages.FieldSchema, **members: Any) -> messages.IndexSchema:
    """Return the schema of fields, or of pairs of a name and a type."""
    made = [each if isinstance(each, messages.FieldSchema) else field(*each) for each in fields]
    return messages.IndexSchema(field_schemas=made, **members)


def query(kind: int, message: Message) -> messages.Query:
    return messages.Query(type=kind, query=message.SerializeToString())


def match_all() -> messages.Query:
    return query(messages.MATCH_ALL_QUERY, messages.MatchAllQuery())


def term(name: str, value: Any) -> messages.Query:
    return query(messages.TERM_QUERY, messages.TermQuery(field_name=name, term=variant(value)))


def terms(name: str, *values: Any) -> messages.Query:
    return query(
        messages.TERMS_QUERY, messages.TermsQuery(field_name=name, terms=[variant(value) for value in values])
    )


def between(
    name: str, low: Any = None, high: Any = None, lower: bool = True, upper: bool = False
) -> messages.Query:
    """Return a RangeQuery. None leaves a bound open."""
    bounds = {}
    if low is not None:
        bounds["range_from"] = variant(low)
    if high is not None:
        bounds["range_to"] = variant(high)
    return query(
        messages.RANGE_QUERY,
        messages.RangeQuery(field_name=name, include_lower=lower, include_upper=upper, **bounds),
    )


def prefix(name: str, text: str) -> messages.Query:
    return query(messages.PREFIX_QUERY, messages.PrefixQuery(field_name=name, prefix=text))


def wildcard(name: str, text: str) -> messages.Query:
    return query(messages.WILDCARD_QUERY, messages.WildcardQuery(field_name=name, value=text))


def exists(name: str) -> messages.Query:
    return query(messages.EXISTS_QUERY, messages.ExistsQuery(field_name=name))


def bool_of(**members: Any) -> messages.Query:
    return query(messages.BOOL_QUERY, messages.BoolQuery(**members))


def nested(path: str, inner: messages.Query) -> messages.Query:
    return query(messages.NESTED_QUERY, messages.NestedQuery(path=path, query=inner))


def search_query(wanted: messages.Query, **members: Any) -> bytes:
    message: bytes = messages.SearchQuery(query=wanted, **members).SerializeToString()
    return message


def by_field(name: str, descending: bool = False) -> messages.Sort:
    order = messages.SORT_ORDER_DESC if descending else messages.SORT_ORDER_ASC
    return messages.Sort(
        sorter=[messages.Sorter(field_sort=messages.FieldSort(field_name=name, order=order))]
    )


def keys_of(answer: Any) -> list[Any]:
    """Return the first key column of each row of a search."""
    return [key_of(decode_row(data)) for data in answer.rows]


def key_of(row: WireRow) -> Any:
    value: Any = row.key[0].value
    return value.data


class Searches:
    """A table `t` with the search index `i`, in a service in this process."""

    def __init__(self, service: TableStoreService) -> None:
        self.service = service

    def create(self, *fields: tuple[str, int] | messages.FieldSchema, **members: Any) -> None:
        self.service.create()
        self.service.call(
            "CreateSearchIndex", table_name="t", index_name="i", schema=schema(*fields, **members)
        )

    def catch_up(self) -> None:
        """Bring the index up to date."""
        self.service.gateway.engine.background.catch_up()

    def search(self, wanted: messages.Query, **members: Any) -> Any:
        """Return the answer of a Search of up to 100 rows."""
        columns = members.pop("columns", messages.ColumnsToGet(return_type=messages.RETURN_NONE))
        if "token" not in members:
            members.setdefault("limit", 100)
        more = {"timeout_ms": members.pop("timeout_ms")} if "timeout_ms" in members else {}
        data = search_query(wanted, **members)
        return self.service.call(
            "Search", table_name="t", index_name="i", search_query=data, columns_to_get=columns, **more
        )

    def find(self, wanted: messages.Query, **members: Any) -> list[Any]:
        """Return the keys of the rows that match."""
        return keys_of(self.search(wanted, **members))
