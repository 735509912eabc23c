"""Rendering of entities: rows -> JSON members at the requested metadata level, and the rule for written rows.

It covers OData's shapes (`odata.*`, `X@odata.type`), the limits of one entity, and the Accept header. orjson writes a
finite double with a fraction or an exponent, so that clients do not parse an integer. entity_parser.py parses the input of
clients.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import orjson

from tablegate.adapters.azuretable import keys, values
from tablegate.adapters.azuretable.entities import fast_pages
from tablegate.adapters.azuretable.values import UNIX_EPOCH_TICKS, timestamp_text, view
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.addresses import key_predicate, quoted
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.commands.writes import RowRule
from tablegate.gateway.model.errors import RowRuleViolated
from tablegate.gateway.model.tables.pages import Page
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value

# The rule for written rows


# Below this billed size, an entity is within the service's limit, although text may double as UTF-16, plus names.
_SURELY_SMALL_BYTES = limits.ENTITY_MAX_BYTES // 4


class EntityLimit(NamedTuple):
    """The maximum size of an entity, and the function that measures its contents."""

    max_bytes: int
    size_of: Callable[[Contents], int]


def _storage_size(contents: Contents) -> int:
    return entity_size_bytes(contents.latest)


def _billed_size(contents: Contents) -> int:
    return contents.size_bytes


STORAGE_LIMIT = EntityLimit(limits.ENTITY_MAX_BYTES, _storage_size)
COSMOS_LIMIT = EntityLimit(limits.COSMOS_ENTITY_MAX_BYTES, _billed_size)


@lru_cache(maxsize=256)
def rule_of(
    key_names: tuple[str, ...], are_counted: bool = False, limit: EntityLimit = STORAGE_LIMIT
) -> RowRule:
    """Return this dialect's rule for rows that it writes (gateway/model/commands/writes.py).

    `key_names`: the key columns.

    An attribute that equals its form in Azure keeps its stored kind. The rule raises RowRuleViolated: `properties`,
    `size`. `are_counted`: the contents come from a client, and their properties were counted by the parser
    (entity_parser.py).
    """

    def rule(old: Row | None, contents: Contents) -> Contents:
        stored_values = _stored_kinds(old, contents)
        if stored_values:
            contents = contents.replacing(stored_values, key_names)
        if not are_counted and len(latest := contents.latest) > limits.PROPERTIES_MAX:
            visible_names = [
                name
                for name, value in latest.items()
                if value.kind is not Kind.NULL and name not in key_names
            ]
            if len(visible_names) > limits.PROPERTIES_MAX:
                raise RowRuleViolated("properties", limit=limits.PROPERTIES_MAX, actual=len(visible_names))
        if not is_surely_small(contents):
            size = limit.size_of(contents)
            if size > limit.max_bytes:
                raise RowRuleViolated("size", limit_bytes=limit.max_bytes, actual_bytes=size)
        return contents

    return rule


def is_surely_small(contents: Contents) -> bool:
    """Return True if contents are within the service's limit on an entity, regardless of their kinds."""
    return contents.size_bytes <= _SURELY_SMALL_BYTES


# Azure shows values of these kinds in their stored form.
_OWN_TAGS = frozenset({"S", "BOOL", "I32", "I64", "D", "DT", "G", "B"})


def _stored_kinds(old: Row | None, contents: Contents) -> dict[str, Value]:
    """Return the stored values of attributes that were written back unchanged from their form in Azure."""
    if old is None or _OWN_TAGS.issuperset(chain.from_iterable(old.contents.members.values())):
        return {}
    before = old.latest
    return {
        name: before[name]
        for name, value in contents.latest.items()
        if name in before and before[name].kind is not value.kind and view(before[name]) == value
    }


def entity_size_bytes(latest: Mapping[str, Value]) -> int:
    """Return the size of an entity as the service counts it.

    It is 4 bytes, the keys as UTF-16, and 8 + name + value for each property.
    """
    size = 4
    for name, value in latest.items():
        if name in _KEYS:
            size += values.size_bytes(value) - 4
        else:
            size += property_size_bytes(keys.spelled(name), value)
    return size


_KEYS = frozenset(keys.OWN_SCHEMA.names)


def property_size_bytes(name: str, value: Value) -> int:
    """Return the bytes that a property with this Azure name counts towards the size of an entity."""
    return 8 + 2 * values.utf16_units(name) + values.size_bytes(value)


# Rendering


class MetadataLevel(Enum):
    """The amount of metadata in an answer."""

    NONE = "nometadata"
    MINIMAL = "minimalmetadata"
    FULL = "fullmetadata"


_CONTENT_TYPES = {
    level: f"application/json;odata={level.value};streaming=true;charset=utf-8" for level in MetadataLevel
}


def content_type(level: MetadataLevel) -> str:
    """Return the Content-Type of an OData answer."""
    return _CONTENT_TYPES[level]


@lru_cache(maxsize=64)
def level_of(accept: str) -> MetadataLevel:
    """Return the metadata level of an Accept header (or $format). Raises ServiceError for Atom and other types."""
    lowered = accept.lower()
    if not accept or "json" in lowered or "*/*" in lowered or "application/*" in lowered:
        if "odata=nometadata" in lowered:
            return MetadataLevel.NONE
        return MetadataLevel.FULL if "odata=fullmetadata" in lowered else MetadataLevel.MINIMAL
    raise ServiceError("AtomFormatNotSupported" if "xml" in lowered else "MediaTypeNotSupported")


def etag(row: Row) -> str:
    """Return the ETag of a row: W/"datetime'...'" around its percent-encoded Timestamp."""
    return _etag_of(row.modified_at)


@lru_cache(maxsize=64)
def _etag_of(modified_at: int) -> str:
    return f"W/\"datetime'{_moment_of(modified_at).replace(':', '%3A')}'\""


@lru_cache(maxsize=64)
def _moment_of(modified_at: int) -> str:
    """Return the modification time as text. Cached, since an answer has it twice and the rows of a batch share it."""
    return timestamp_text(modified_at + UNIX_EPOCH_TICKS)


_ETAG = re.compile(r"[Ww]/\"datetime'([^']*)'\"")


def revision_of(tag: str) -> int | None:
    """Return the revision (Row.modified_at) of a weak ETag, None for one that no row here can have.

    Raises ServiceError InvalidInput for a text that is no weak ETag. Source of its text: Azure/Azurite issue 1829.
    """
    if not re.fullmatch(r'[Ww]/"[^"]*"', tag):
        raise ServiceError(
            "InvalidInput",
            f"The etag value '{tag[: limits.ECHO_MAX_CHARACTERS]}' specified in one of the request headers is not "
            "valid. Please make sure only one etag value is specified and is valid.",
        )
    match = _ETAG.fullmatch(tag)
    ticks = values.parse_datetime(match.group(1).replace("%3A", ":").replace("%3a", ":")) if match else None
    return None if ticks is None else ticks - UNIX_EPOCH_TICKS


_SPLICED = fast_paths.choose((MetadataLevel.MINIMAL, MetadataLevel.NONE), ())
"""The metadata levels that fast_pages.py supports."""


@dataclass(frozen=True, slots=True)
class EntityFormat:
    """The format of entities of one table.

    `root` is the service's URL, `selected` the requested properties in the client's order (None for all).

    `projection` is their part of the address in the metadata: "&$select=b,a", in the client's order. `table_name` is
    that of the call's flavour, "" for the Azure name.
    """

    table: Table
    root: str
    account: str
    level: MetadataLevel
    selected: Mapping[str, None] | None = None
    projection: str = ""
    table_name: str = ""

    @property
    def metadata(self) -> str:
        """Return the address of the entity set in the service's metadata."""
        return f"{self.root}/$metadata#{self._name}"

    @property
    def _name(self) -> str:
        return quoted(self.table_name or self.table.azure_name)

    def one(self, row: Row) -> dict[str, Any]:
        """Return an entity as a reply of its own."""
        member = self._member(row.contents.members, row.modified_at)
        if self.level is MetadataLevel.NONE:
            return member
        return {"odata.metadata": f"{self.metadata}/@Element{self.projection}", **member}

    @property
    def is_spliced(self) -> bool:
        """True if fast_pages.py supports this format."""
        return self.selected is None and self.level in _SPLICED and keys.is_own(self.table.key_schema)

    def many(self, page: Page) -> bytes:
        """Return the JSON of a page of entities. Concatenated rows are only possible if `is_spliced`."""
        if self.is_spliced:
            entities = fast_pages.entities(page, self.level is MetadataLevel.MINIMAL, self._entity)
        else:
            entities = [orjson.dumps(self.member(row)) for row in page.rows]
        head = (
            b"{"
            if self.level is MetadataLevel.NONE
            else b'{"odata.metadata":%s,' % orjson.dumps(self.metadata + self.projection)
        )
        pieces = [b","] * (2 * len(entities) + 1)  # one join, as a page may have a megabyte
        pieces[1::2] = entities
        pieces[0], pieces[-1] = head + b'"value":[', b"]}"
        return b"".join(pieces) if entities else head + b'"value":[]}'

    def _entity(self, body: bytes, written_at: int) -> bytes:
        return orjson.dumps(self._member(orjson.loads(body), written_at))

    def member(self, row: Row) -> dict[str, Any]:
        return self._member(row.contents.members, row.modified_at)

    def _member(self, members: Mapping[str, dict[str, Any]], written_at: int) -> dict[str, Any]:
        partition_key, row_key = self._keys(members)
        moment = _moment_of(written_at)
        member: dict[str, Any] = {}
        if self.level is MetadataLevel.FULL:
            link = self._name + key_predicate(partition_key, row_key)
            member["odata.type"] = f"{self.account}.{self.table_name or self.table.azure_name}"
            member["odata.id"] = f"{self.root}/{link}"
            member["odata.etag"] = _etag_of(written_at)
            member["odata.editLink"] = link
        elif self.level is MetadataLevel.MINIMAL:
            member["odata.etag"] = _etag_of(written_at)
        selected = self.selected
        if selected is None or "PartitionKey" in selected:
            member["PartitionKey"] = partition_key
        if selected is None or "RowKey" in selected:
            member["RowKey"] = row_key
        if selected is None or "Timestamp" in selected:
            if self.level is MetadataLevel.FULL:
                member["Timestamp@odata.type"] = "Edm.DateTime"
            member["Timestamp"] = moment
        self._add_properties(member, members)
        return member

    def _keys(self, members: Mapping[str, dict[str, Any]]) -> tuple[str, str]:
        """Return (PartitionKey, RowKey) of a row."""
        schema = self.table.key_schema
        if keys.is_own(schema):
            return members["PartitionKey"]["S"], members["RowKey"]["S"]
        return keys.texts_of(schema, tuple(bodies.untagged(members[name]) for name in schema.names))

    def _add_properties(self, document: dict[str, Any], attributes: Mapping[str, dict[str, Any]]) -> None:
        """Add every requested property, from the row's body, which is rarely decoded for it.

        A requested property that the row lacks is null. Source: Azure/Azurite issue 2535.
        """
        selected, key_names = self.selected, self.table.key_schema.names
        annotated = self.level is not MetadataLevel.NONE
        for name, member in attributes.items():
            if name in key_names:
                continue
            ((tag, data),) = member.items()
            property_name = keys.spelled(name)
            if selected is not None and property_name not in selected:
                continue
            wire, edm = (data, None) if tag == "S" else values.spell_tagged(tag, data)
            if wire is None:
                continue
            if edm is not None and annotated:
                document[property_name + "@odata.type"] = edm
            document[property_name] = wire
        if selected is not None:
            for property_name in selected:
                document.setdefault(property_name, None)
