"""Entities as clients send them: JSON with OData types -> keys, and attributes as a row's body has them.

Knows the tolerance of input and the limits that an entity can break by itself. Knows nothing of rows or of operations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from tablegate.adapters.azuretable.values import names, values
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model.errors import Busy
from tablegate.gateway.model.values import bodies
from tablegate.gateway.model.values.values import Value, size_bytes
from tablegate.gateway.request_bodies import Undecodable, failure_of, has_at_most


class ParsedEntity(NamedTuple):
    """An entity as a client sent it: keys if given, and attributes by their names in the gateway. Nulls are gone.

    `members` are tagged as in a body (gateway/model/values/bodies.py), of `size_bytes` with their names; `is_native`: of kinds
    that DynamoDB has. `has_typed_keys`: a key was annotated with another type than Edm.String, which only an insert refuses.
    """

    partition_key: str | None
    row_key: str | None
    members: dict[str, dict[str, Any]]
    size_bytes: int
    is_native: bool
    has_typed_keys: bool = False

    @property
    def attributes(self) -> dict[str, Value]:
        """The values of the members."""
        return bodies.untagged_all(self.members)


# JSON


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object, in order, repeats kept."""


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_decoder = json.JSONDecoder(object_pairs_hook=_Members, parse_constant=lambda name: _refuse_constant(name))


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def parse_object(body: bytes) -> list[tuple[str, Any]]:
    """The members of a JSON object, in order, repeats kept. Raises ServiceError InvalidInput for anything else, and unread for
    what has more members than any entity."""
    _refuse_many_nodes(body)
    try:
        text = body.decode("utf-8-sig")
        document = _decoder.decode(text)
        if _SURROGATE.search(body):
            orjson.dumps(_plain(document))  # raises on half a surrogate pair, which no text can hold
    except (ValueError, RecursionError, TypeError, MemoryError) as error:
        raise _unreadable(error) from None
    if not isinstance(document, _Members):
        raise ServiceError("InvalidInput")
    return document


def _plain(document: Any) -> Any:
    return dict(document) if isinstance(document, _Members) else document


def document_of(body: bytes) -> dict[str, Any]:
    """The members of a JSON object, of a repeated one the last, by a fast reader, to which whole numbers that fit no 64 bits
    are floats. Raises ServiceError InvalidInput for anything else, and unread for what has more members than any
    entity."""
    _refuse_many_nodes(body)
    try:
        found = orjson.loads(body.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, SystemError, MemoryError) as error:
        raise _unreadable(error) from None
    if type(found) is not dict:
        raise ServiceError("InvalidInput")
    return found


def _refuse_many_nodes(body: bytes) -> None:
    if len(body) > limits.JSON_NODES_MAX and not has_at_most(limits.JSON_NODES_MAX, body):
        raise ServiceError("InvalidInput")


def _unreadable(error: Exception) -> ServiceError | Busy:
    """What to raise for what a decoder raised."""
    failure = failure_of(error)
    return ServiceError("InvalidInput") if isinstance(failure, Undecodable) else failure


def _members_of(body: bytes) -> dict[str, Any]:
    """The members of a JSON object that repeats none. Raises ServiceError InvalidInput, DuplicatePropertiesSpecified."""
    members = parse_object(body)
    found = dict(members)
    if len(found) < len(members):
        raise ServiceError("DuplicatePropertiesSpecified")
    return found


def _is_passed_over(name: str) -> bool:
    """Whether a member is no property: an annotation, which is looked up where it belongs, or what the server itself adds to
    entities, which clients may send back and which is ignored."""
    return "@" in name or name.startswith("odata.") or name in names.SYSTEM_NAMES


# Entities


def parse_entity(body: bytes) -> ParsedEntity:
    """An entity. Raises ServiceError: InvalidInput, DuplicatePropertiesSpecified, PropertyNameInvalid and the limits."""
    found = _members_of(body)
    is_annotated = b"@" in body or b"\\" in body
    members: dict[str, dict[str, Any]] = {}
    size, is_native = 0, True
    for name, wire in found.items():
        # Of nulls and annotations there may be any number.
        if wire is None and name.isidentifier() and len(name) <= limits.PROPERTY_NAME_MAX_CHARACTERS:
            continue
        if is_annotated and "@" in name:
            continue
        if len(members) > limits.PROPERTIES_MAX:
            raise ServiceError("TooManyProperties")
        edm = found.get(name + "@odata.type") if is_annotated else None
        try:
            attribute, name_size = _known_attribute(name) if len(name) < _KNOWN_MAX else _attribute(name)
        except ServiceError:
            values.read(wire, edm)  # whose error comes first
            raise
        if attribute is None:
            continue
        # The commonest kinds at once; what they are and how they count is said by values.read, bodies and size_bytes.
        kind = type(wire) if edm is None else None
        if kind is str and len(wire) <= limits.STRING_MAX_UNITS // 2:
            members[attribute] = {"S": wire}
            size += name_size + (len(wire) if wire.isascii() else len(wire.encode()))
        elif kind is bool:
            members[attribute] = {"BOOL": wire}
            size += name_size + 1
        elif kind is int and -(2**31) <= wire < 2**31:
            members[attribute] = {"I32": str(wire)}
            size += name_size + 4
            is_native = False
        elif (value := values.read(wire, edm)) is not None:
            members[attribute] = bodies.tagged(value)
            size += name_size + size_bytes(value)
            is_native = is_native and not bodies.is_foreign(value)
    if len(members) > limits.PROPERTIES_MAX:
        raise ServiceError("TooManyProperties")
    typed = is_annotated and _has_typed_keys(found)
    return ParsedEntity(_key(found, "PartitionKey"), _key(found, "RowKey"), members, size, is_native, typed)


def _has_typed_keys(found: Mapping[str, Any]) -> bool:
    types = (found.get("PartitionKey@odata.type"), found.get("RowKey@odata.type"))
    return any(edm not in (None, "Edm.String") for edm in types)


def _key(found: Mapping[str, Any], name: str) -> str | None:
    wire = found.get(name)
    if wire is None:
        return None
    if not isinstance(wire, str):
        raise ServiceError("InvalidInput")
    return wire


def _attribute(name: str) -> tuple[str | None, int]:
    """The attribute that a property name stands for, and the bytes its name counts. None: a member to be passed over.

    Raises ServiceError PropertyNameTooLong, PropertyNameInvalid.
    """
    if _is_passed_over(name):
        return None, 0
    if len(name) > limits.PROPERTY_NAME_MAX_CHARACTERS:
        raise ServiceError("PropertyNameTooLong")
    if not names.is_legal(name):
        raise ServiceError("PropertyNameInvalid")
    attribute = names.unspelled(name)
    return attribute, len(attribute.encode())


_KNOWN_MAX = limits.PROPERTY_NAME_MAX_CHARACTERS + len(
    "@odata.type"
)  # so that nobody fills the memory with names
_known_attribute = lru_cache(maxsize=4096)(_attribute)
