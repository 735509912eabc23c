"""Parsing of entities: JSON with OData types -> keys, and attributes in the form of a row's body.

It applies the service's tolerance of input and the limits of a single entity. It is independent of rows and operations.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from tablegate.adapters.azuretable import keys, values
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.http.request_bodies import Undecodable, failure_of, has_at_most
from tablegate.gateway.model.errors import Busy
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.values import Value, size_bytes


class ParsedEntity(NamedTuple):
    """An entity from a client: keys if given, and attributes by their names in the gateway. Nulls are removed.

    `members` are tagged as in a body (gateway/model/values/bodies.py). `size_bytes` includes their names. `is_native`:
    DynamoDB has all their kinds. `has_typed_keys`: a key is annotated with another type than Edm.String, which only an
    insert rejects.
    """

    partition_key: str | None
    row_key: str | None
    members: dict[str, dict[str, Any]]
    size_bytes: int
    is_native: bool
    has_typed_keys: bool = False

    @property
    def attributes(self) -> dict[str, Value]:
        return bodies.untagged_all(self.members)


# JSON


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object in order, including repeated ones."""


_BYTE_ORDER_MARK, _JSON_SPACE = codecs.BOM_UTF8, " \t\n\r"
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_decoder = json.JSONDecoder(object_pairs_hook=_Members, parse_constant=lambda name: _refuse_constant(name))


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def parse_object(body: bytes) -> list[tuple[str, Any]]:
    """Return the members of a JSON object in order, including repeated ones. Raises ServiceError InvalidInput.

    An object with more members than any entity is rejected without parsing.
    """
    _refuse_many_nodes(body)
    try:
        text = body.removeprefix(_BYTE_ORDER_MARK).decode().strip(_JSON_SPACE)
        document, end = _decoder.raw_decode(text)
        if end < len(text):
            raise ValueError("data after the document")
        if _SURROGATE.search(body):
            orjson.dumps(_plain(document))  # raises for half a surrogate pair, which no text can hold
    except (ValueError, RecursionError, TypeError, MemoryError) as error:
        raise _unreadable(error) from None
    if not isinstance(document, _Members):
        raise ServiceError("InvalidInput")
    return document


def _plain(document: Any) -> Any:
    return dict(document) if isinstance(document, _Members) else document


def document_of(body: bytes) -> dict[str, Any]:
    """Return the members of a JSON object. Raises ServiceError InvalidInput.

    The last of repeated members counts. The fast parser turns integers beyond 64 bits into floats. An object with more
    members than any entity is rejected without parsing.
    """
    _refuse_many_nodes(body)
    try:
        document = orjson.loads(body.removeprefix(_BYTE_ORDER_MARK))
    except (ValueError, SystemError, MemoryError) as error:
        raise _unreadable(error) from None
    if type(document) is not dict:
        raise ServiceError("InvalidInput")
    return document


def _refuse_many_nodes(body: bytes) -> None:
    if len(body) > limits.JSON_NODES_MAX and not has_at_most(limits.JSON_NODES_MAX, body):
        raise ServiceError("InvalidInput")


def _unreadable(error: Exception) -> ServiceError | Busy:
    failure = failure_of(error)
    return ServiceError("InvalidInput") if isinstance(failure, Undecodable) else failure


def _members_of(body: bytes, joined_names: frozenset[str]) -> dict[str, Any]:
    """Return the members of a JSON object without repetitions, and of each of `joined_names` only the first spelling.

    Raises ServiceError InvalidInput, DuplicatePropertiesSpecified.
    """
    pairs = parse_object(body)
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ServiceError("DuplicatePropertiesSpecified")
    if not joined_names:
        return members
    first = {name.lower(): name for name in reversed(members) if name.lower() in joined_names}
    return {name: wire for name, wire in members.items() if first.get(name.lower(), name) == name}


def _is_ignored(name: str) -> bool:
    """Return True if a member is no property.

    It is an annotation, which is read with its property, or a member that the server adds to entities and that clients
    may send back.
    """
    return "@" in name or name.startswith("odata.") or name in keys.SYSTEM_NAMES


# Entities


def parse_entity(
    body: bytes, joined_names: frozenset[str] = frozenset(), read: values.Read = values.read
) -> ParsedEntity:
    """Parse an entity. `joined_names`: names, in lower case. Only the first spelling of each counts.

    `read`: the reader of values. Raises ServiceError: InvalidInput, DuplicatePropertiesSpecified, PropertyNameInvalid
    and the limits.
    """
    members = _members_of(body, joined_names)
    is_annotated = b"@" in body or b"\\" in body
    attributes: dict[str, dict[str, Any]] = {}
    size, is_native = 0, True
    for name, wire in members.items():
        # The number of nulls and annotations is unlimited.
        if wire is None and name.isidentifier() and len(name) <= limits.PROPERTY_NAME_MAX_CHARACTERS:
            continue
        if is_annotated and "@" in name:
            continue
        if len(attributes) > limits.PROPERTIES_MAX:
            raise ServiceError("TooManyProperties")
        edm = members.get(name + "@odata.type") if is_annotated else None
        try:
            attribute, name_size = _known_attribute(name) if len(name) < _KNOWN_MAX else _attribute(name)
        except ServiceError:
            read(wire, edm)  # its error comes first
            raise
        if attribute is None:
            continue
        # Common kinds first. `read`, bodies and size_bytes define the same in general.
        kind = type(wire) if edm is None else None
        if kind is str and len(wire) <= limits.STRING_MAX_UNITS // 2:
            attributes[attribute] = {"S": wire}
            size += name_size + (len(wire) if wire.isascii() else len(wire.encode()))
        elif kind is bool:
            attributes[attribute] = {"BOOL": wire}
            size += name_size + 1
        elif kind is int and -(2**31) <= wire < 2**31:
            attributes[attribute] = {"I32": str(wire)}
            size += name_size + 4
            is_native = False
        elif (value := read(wire, edm)) is not None:
            attributes[attribute] = bodies.tagged(value)
            size += name_size + size_bytes(value)
            is_native = is_native and not bodies.is_foreign(value)
    if len(attributes) > limits.PROPERTIES_MAX:
        raise ServiceError("TooManyProperties")
    keys = _key(members, "PartitionKey"), _key(members, "RowKey")
    return ParsedEntity(*keys, attributes, size, is_native, is_annotated and _has_typed_keys(members))


def _has_typed_keys(members: Mapping[str, Any]) -> bool:
    types = (members.get("PartitionKey@odata.type"), members.get("RowKey@odata.type"))
    return any(edm not in (None, "Edm.String") for edm in types)


def _key(members: Mapping[str, Any], name: str) -> str | None:
    wire = members.get(name)
    if wire is None:
        return None
    if not isinstance(wire, str):
        raise ServiceError("InvalidInput")
    return wire


def _attribute(name: str) -> tuple[str | None, int]:
    """Return the attribute of a property name and the billed bytes of the name. None for a member to be ignored.

    Raises ServiceError PropertyNameTooLong, PropertyNameInvalid.
    """
    if _is_ignored(name):
        return None, 0
    if len(name) > limits.PROPERTY_NAME_MAX_CHARACTERS:
        raise ServiceError("PropertyNameTooLong")
    if not keys.is_legal(name):
        raise ServiceError("PropertyNameInvalid")
    attribute = keys.unspelled(name)
    return attribute, len(attribute.encode())


_KNOWN_MAX = limits.PROPERTY_NAME_MAX_CHARACTERS + len("@odata.type")  # bounds the memory for names
_known_attribute = lru_cache(maxsize=4096)(_attribute)
