"""The two flavours of the Table API, Azure Storage and Azure Cosmos DB for Table, and all their differences.

The general code asks the flavour of a call. The host name of a request selects it. At other addresses the setting
`azure_flavour` does.

Sources:
- docs/protocols/azure-table.md section 12
- the tests marked `_cosmos` of azure-data-tables 12.7.0, and its `_error.py`
- the FAQ of Cosmos DB for Table
- reports of users, which docs/protocols/azure-table.md section 12 names
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tablegate.adapters.azuretable.wire import addresses, limits
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.model.tables.tables import Table


@dataclass(frozen=True, slots=True)
class Flavour:
    """One flavour.

    - `name_of`: the name of a table in this flavour.
    - `by_azure_name`: tables are found by their Azure name, in any case. Otherwise by their own name.
    - `check_new_name`, `check_name`: check the name of a table to create, and of a table to find.
    - `page_of`: the maximum number of entities of a page for a value of $top. Raises ServiceError.
    - `codes`: codes of errors that differ, code of Storage -> code of this flavour.
    - `unknown_paths`: the error for an account URL that ends in a table's name. With None, each resource has its own.
    - `has_service_documents`: there are service properties, statistics and access policies.
    - `joined_names`: names, in lower case. All spellings of one are one property, and the first one counts.
    - `reserved_names`: names, in lower case, that no property can have.
    - `has_storage_sizes`: values and entities have the limits of Storage. Otherwise those of Cosmos DB.
    - `has_queryable_timestamp`: a comparison with Timestamp can be true.
    """

    check_new_name: Callable[[str], None]
    check_name: Callable[[str], None]
    name_of: Callable[[Table], str]
    by_azure_name: bool
    body_max_bytes: int
    page_of: Callable[[int], int]
    row_key_max_bytes: int | None = None
    codes: Mapping[str, str] = field(default_factory=dict)
    unknown_paths: tuple[str, str] | None = None
    secondary_takes_writes: bool = False
    has_service_documents: bool = True
    joined_names: frozenset[str] = frozenset()
    reserved_names: frozenset[str] = frozenset()
    has_storage_sizes: bool = True
    has_queryable_timestamp: bool = True
    takes_empty_keys: bool = True
    updates_take_typed_keys: bool = True

    def is_name_of(self, table: Table, name: str) -> bool:
        """Return True if a name is that of a table."""
        own = self.name_of(table)
        return own.lower() == name.lower() if self.by_azure_name else own == name

    def check_new_key(self, partition_key: str, row_key: str) -> None:
        """Check what only this flavour demands of the keys of a new entity. Raises ServiceError."""
        if not self.takes_empty_keys and not (partition_key and row_key):
            raise ServiceError("InvalidInput", "PartitionKey/RowKey cannot be empty")
        if self.row_key_max_bytes is not None and len(row_key.encode()) > self.row_key_max_bytes:
            raise ServiceError("PropertyValueTooLarge")

    def refusal_of(self, error: ServiceError) -> ServiceError:
        """Return an error with the code that this flavour has for it."""
        code = self.codes.get(error.code)
        return error if code is None else ServiceError(code, error.text, error.headers)


def _storage_page(top: int) -> int:
    if top > limits.PAGE_MAX_ENTITIES:
        raise ServiceError("InvalidInput")
    return top


_COSMOS_FORBIDDEN = re.compile(r"[/\\#?]")


def _check_cosmos_name(name: str) -> None:
    if _COSMOS_FORBIDDEN.search(name):
        raise ServiceError("InvalidInput", "The table name contains an invalid character.")
    if not name or name.endswith(" "):
        raise ServiceError("InvalidInput", "Table name cannot end with a space.")
    if "\0" in name:
        raise ServiceError("InvalidInput", "One of the input values is invalid.")


def _check_cosmos_name_to_find(name: str) -> None:
    _check_cosmos_name(name)
    if len(name) > limits.COSMOS_TABLE_NAME_MAX_CHARACTERS:
        raise ServiceError("ResourceNotFound")


def _check_new_cosmos_name(name: str) -> None:
    _check_cosmos_name(name)
    if len(name) > limits.COSMOS_TABLE_NAME_MAX_CHARACTERS:
        raise ServiceError("BadRequest", "The input name is invalid.")


STORAGE = Flavour(
    check_new_name=addresses.check_new_table_name,
    check_name=addresses.check_table_name,
    name_of=lambda table: table.azure_name,
    by_azure_name=True,
    body_max_bytes=limits.BODY_MAX_BYTES,
    page_of=_storage_page,
)
COSMOS = Flavour(
    check_new_name=_check_new_cosmos_name,
    check_name=_check_cosmos_name_to_find,
    name_of=lambda table: table.name,
    by_azure_name=False,
    body_max_bytes=limits.COSMOS_BODY_MAX_BYTES,
    page_of=lambda top: min(top, limits.COSMOS_PAGE_MAX_ENTITIES),
    row_key_max_bytes=limits.COSMOS_ROW_KEY_MAX_BYTES,
    codes={
        "AuthorizationPermissionMismatch": "Forbidden",
        "RequestBodyTooLarge": "RequestEntityTooLarge",
        "EntityTooLarge": "RequestEntityTooLarge",
    },
    unknown_paths=("InvalidInput", "Request url is invalid."),
    secondary_takes_writes=True,
    has_service_documents=False,
    joined_names=frozenset({"etag"}),
    reserved_names=frozenset({"id", "rid", "resourceid", "ttl"}),
    has_storage_sizes=False,
    has_queryable_timestamp=False,
    takes_empty_keys=False,
    updates_take_typed_keys=False,
)

_BY_NAME: Mapping[str, Flavour] = {"storage": STORAGE, "cosmos": COSMOS}
_HOSTS: tuple[tuple[re.Pattern[str], Flavour], ...] = (
    (re.compile(r"[^.]+\.table\.cosmos(db)?\.", re.IGNORECASE), COSMOS),
    (re.compile(r"[^.]+\.table\.core\.", re.IGNORECASE), STORAGE),
)


class Flavours:
    """The flavours of the accounts of one server, from the setting `azure_flavour`."""

    def __init__(self, entries: Iterable[str]) -> None:
        """Read the entries FLAVOUR and ACCOUNT=FLAVOUR. Raises BadSetting."""
        self._default = STORAGE
        self._by_account: dict[str, Flavour] = {}
        for entry in entries:
            account, separator, name = entry.rpartition("=")
            flavour = _BY_NAME.get(name)
            if flavour is None or bool(separator) != bool(account):
                known = " or ".join(_BY_NAME)
                raise BadSetting(f"{{}}: {entry!r} is not {known}, or ACCOUNT={known}", "azure_flavour")
            if account:
                self._by_account[account.lower()] = flavour
            else:
                self._default = flavour

    def find(self, host: str, account: str) -> Flavour | None:
        """Return the flavour of an account at a host, "" if hosts name no account.

        The result is None at a host of the service for an account that the settings do not have.
        """
        own = self._by_account.get(account)
        for pattern, flavour in _HOSTS:
            if host and pattern.match(host):
                return flavour if own in (None, flavour) else None
        return own or self._default
