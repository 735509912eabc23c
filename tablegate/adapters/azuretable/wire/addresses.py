"""Addresses: URL and Host -> account, primary or secondary, and resource.

They are parsed from the raw path, because signatures cover its exact bytes, and %2F inside a key is no separator.

    host style   ACCOUNT.table.SUFFIX /Customers(PartitionKey='a',RowKey='b')     also ACCOUNT-secondary.table.SUFFIX
    path style   any other host       /ACCOUNT/Customers(...)                     also /ACCOUNT-secondary/...
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote

from tablegate.adapters.azuretable.detection import ACCOUNT_IN_HOST, ACCOUNT_IN_PATH, account_in_host
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.errors import KEY_COUNT, NAME_LENGTH, ServiceError


@dataclass(frozen=True, slots=True)
class Service:
    """The service itself: properties, statistics."""


@dataclass(frozen=True, slots=True)
class TableSet:
    """/Tables: the set of all tables."""


@dataclass(frozen=True, slots=True)
class TableEntry:
    """/Tables('T'): a table as an entry of that set."""

    name: str


@dataclass(frozen=True, slots=True)
class EntitySet:
    """/T or /T(): the entities of a table."""

    table: str


@dataclass(frozen=True, slots=True)
class Entity:
    """/T(PartitionKey='p',RowKey='r'): one entity."""

    table: str
    partition_key: str
    row_key: str


@dataclass(frozen=True, slots=True)
class Batch:
    """/$batch."""


@dataclass(frozen=True, slots=True)
class Nested:
    """/T/something, from a client with an account URL that ends in a table's name. `inner` is the intended resource."""

    table: str
    inner: TableSet | TableEntry | Batch


Resource = Service | TableSet | TableEntry | EntitySet | Entity | Batch | Nested


@dataclass(frozen=True, slots=True)
class Address:
    """The destination of a request. `base` is the path before resources: "/ACCOUNT", or "" in host style."""

    account: str
    secondary: bool
    base: str
    resource: Resource


# Host and port only. A name and password before an @ would make the host ambiguous.
_AUTHORITY = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{0,5})?")
_TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_PREDICATE = re.compile(r"([^()]*)\((.*)\)", re.DOTALL)
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]*")
_QUOTED = r"'((?:[^']|'')*)'"
_BOTH_KEYS = re.compile(
    rf"\s*(PartitionKey|RowKey)\s*=\s*{_QUOTED}\s*,\s*(PartitionKey|RowKey)\s*=\s*{_QUOTED}\s*"
)
_ONE_NAME = re.compile(rf"\s*(?:TableName\s*=\s*)?{_QUOTED}\s*")


@lru_cache(maxsize=4096)
def parse(path: str, host: str) -> Address:
    """Return the address of a raw path (no query) and a Host header, "" if hosts name no account.

    Raises ServiceError: InvalidUri, InvalidInput and others.
    """
    by_host = account_in_host(host)
    if by_host is not None:
        account, secondary = by_host
        base, rest = "", path
    else:
        by_path = ACCOUNT_IN_PATH.match(path)
        if by_path is None:
            raise ServiceError("InvalidUri")
        account, secondary = by_path.group(1), by_path.group(2) is not None
        base, rest = by_path.group(0), path[by_path.end() :]
    return Address(account, secondary, base, parse_resource(rest.lstrip("/")))


def resolve(target: str, outer: Address, host: str) -> tuple[Address, str]:
    """Return (address, raw query) of an operation inside a batch.

    `outer`: the batch's address. `host`: its Host, or "".

    The target is an absolute URL, a path from the root, or a path from the account's (azure-cosmosdb-table writes POST
    /T under an endpoint that ends in the account). It must be in the account of the batch, which alone is
    authenticated. Raises ServiceError: InvalidInput for any other location, InvalidResourceName for a path with more
    parts than a table's.
    """
    scheme, separator, rest = target.partition("://")
    is_absolute = bool(separator) and scheme.lower() in ("http", "https")
    authority, path = host, target
    if is_absolute:
        authority, slash, path = rest.partition("/")
        path = slash + path
        if not slash or _AUTHORITY.fullmatch(authority) is None:
            raise ServiceError("InvalidInput")
    elif target.startswith(("//", "/\\")):  # a URL without a scheme, which begins with its host
        raise ServiceError("InvalidInput")
    path, _, query = path.partition("?")
    address = None
    if is_absolute or _names(path, outer):
        address = parse(path, authority if host else "")
    if address is None or (isinstance(address.resource, Service) and not is_absolute):
        resource = parse_resource(path.lstrip("/"))
        address = Address(outer.account, outer.secondary, outer.base, resource)
    if address.account != outer.account or isinstance(address.resource, Nested):
        raise ServiceError("InvalidInput")
    # A name that only ends in slashes is no longer path. The lookup reports that such a table does not exist.
    if isinstance(address.resource, EntitySet | Entity) and "/" in address.resource.table.rstrip("/"):
        raise ServiceError("InvalidInput")
    return address, query


def _names(path: str, outer: Address) -> bool:
    match = ACCOUNT_IN_PATH.match(path) if outer.base else None
    return match is not None and match.group(1) == outer.account


def account_of(path: str, host: str) -> str:
    """Return the account of any path. Raises ServiceError InvalidUri."""
    match = ACCOUNT_IN_HOST.match(host) or ACCOUNT_IN_PATH.match(path)
    if match is None:
        raise ServiceError("InvalidUri")
    return match.group(1).lower()


def parse_resource(raw: str) -> Resource:
    """Return the resource of the part after the base, percent-encoded, without a leading slash.

    Names are not checked yet.
    """
    if not raw:
        return Service()
    try:
        path = unquote(raw, errors="strict")
    except UnicodeDecodeError:
        raise ServiceError("InvalidUri", "URI is invalid") from None
    head, separator, tail = path.partition("/")
    if separator and "(" not in head:
        if not tail:
            return _of_segment(head)
        inner = _of_segment(tail)
        if isinstance(inner, TableSet | TableEntry | Batch):
            return Nested(head, inner)
    return _of_segment(path)


def _of_segment(path: str) -> Resource:
    if path.lower() == "$batch":
        return Batch()
    predicate = _PREDICATE.fullmatch(path)
    if predicate is None:
        if path.lower() == "tables":
            return TableSet()
        return EntitySet(path)
    name, arguments = predicate.groups()
    if name.lower() == "tables":
        return _table_entry(arguments)
    if not arguments.strip():
        return EntitySet(name)
    keys = _BOTH_KEYS.fullmatch(arguments)
    if keys is None or keys.group(1) == keys.group(3):
        raise ServiceError("InvalidInput", KEY_COUNT)
    key_texts = {keys.group(1): keys.group(2), keys.group(3): keys.group(4)}
    return Entity(name, _unquote(key_texts["PartitionKey"]), _unquote(key_texts["RowKey"]))


def _table_entry(arguments: str) -> Resource:
    if not arguments.strip():
        return TableSet()
    match = _ONE_NAME.fullmatch(arguments)
    if match is None:
        raise ServiceError("InvalidInput", KEY_COUNT)
    return TableEntry(_unquote(match.group(1)))


def _unquote(text: str) -> str:
    return text.replace("''", "'")


def signed_path(path: str) -> str:
    """Return the part of a raw path that signatures cover.

    It omits the secondary's prefix, which SDKs add after signing.
    """
    if "-secondary/" not in path:
        return path
    match = ACCOUNT_IN_PATH.match(path)
    if match is None or "/" not in (match.group(2) or ""):
        return path
    return path[match.group(0).index("/", 1) :]


def check_table_name(name: str) -> None:
    """Check that a table can have this name. Raises ServiceError InvalidResourceName or OutOfRangeInput.

    The Python SDK turns exactly these two codes and texts into ValueError.
    """
    if not limits.TABLE_NAME_MIN_CHARACTERS <= len(name) <= limits.TABLE_NAME_MAX_CHARACTERS:
        raise ServiceError("OutOfRangeInput", NAME_LENGTH)
    if _TABLE_NAME.fullmatch(name) is None:
        raise ServiceError("InvalidResourceName")


def check_new_table_name(name: str) -> None:
    """Check the name of a table to create. Raises ServiceError."""
    check_table_name(name)
    if name.lower() == "tables":
        raise ServiceError("InvalidResourceName")


def key_predicate(partition_key: str, row_key: str) -> str:
    """Return (PartitionKey='p',RowKey='r'), percent-encoded, as in Location and odata.id."""
    return f"(PartitionKey='{quoted(partition_key)}',RowKey='{quoted(row_key)}')"


def quoted(name: str) -> str:
    """Return the name of a table, or a key, as URLs have it between quotes. Table names of Storage stay as they are."""
    if _UNRESERVED.fullmatch(name):
        return name
    return quote(name.replace("'", "''"), safe="'")


def longest_segment(path: str) -> int:
    """Return the length of the longest segment of a raw path, in characters, as Http.sys measured it in 2009."""
    return max(len(segment) for segment in path.split("/"))
