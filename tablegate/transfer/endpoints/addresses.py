"""Addresses of tables on the command line.

`errors.py` has their forms. TABLE may be a pattern of `*` and `?`, and PATH one of `*`. A lone `*` selects all
tables.

Addresses are printed and stored in job files, so they never contain credentials. Those come from the environment
variables and files of each service (see the modules `..._client.py`). An address that seems to contain a secret is rejected
without being repeated. Opening an endpoint imports only the libraries of its own service.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from tablegate.gateway.configuration.secrets import is_secret_name
from tablegate.transfer.endpoints.batching import PATIENCE_S
from tablegate.transfer.endpoints.endpoint import Endpoint
from tablegate.transfer.errors import ADDRESS_FORMS, BadAddress, MissingSoftware, TransferError

_OPTIONS = {
    "dynamodb": ("region", "endpoint", "profile"),
    "azure-table": ("endpoint",),
    "tablestore": ("endpoint", "region"),
}
_WHERE_SECRETS_BELONG = {
    "dynamodb": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile of ~/.aws by &profile=NAME",
    "azure-table": "AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN",
    "tablestore": "TABLESTORE_ACCESS_KEY_ID and TABLESTORE_ACCESS_KEY_SECRET",
}
_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")


@dataclass(frozen=True, slots=True)
class CloudAddress:
    """A table or a pattern of tables of a cloud service or of a server with its API. Contains no secret."""

    scheme: str
    account: str
    table: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def is_pattern(self) -> bool:
        """True if the address may select several tables."""
        return "*" in self.table or "?" in self.table

    def option(self, name: str) -> str:
        return dict(self.options).get(name, "")

    def __str__(self) -> str:
        place = f"{self.account}/" if self.account else ""
        query = "&".join(f"{name}={quote(value, safe=':/.-_~[]')}" for name, value in self.options)
        return f"{self.scheme}://{place}{quote(self.table, safe='*.-_')}" + (f"?{query}" if query else "")


def open_endpoint(address: str, patience_s: float = PATIENCE_S) -> Endpoint:
    """Return the endpoint of an address without sending a request.

    `patience_s` limits retries without progress, in seconds, while the service is busy or unreachable. Raises
    BadAddress, MissingSoftware, and AccessRefused if there are no credentials.
    """
    scheme, rest = _scheme_of(address)
    if is_pattern(address):
        raise BadAddress(f"the address is a pattern. Name one table: {ADDRESS_FORMS[scheme]}")
    if scheme == "file":
        path, options = _path_and_options(rest)
        from tablegate.transfer.endpoints.files.opening import open_file

        return open_file(path, options)
    if scheme == "tablegate":
        return open_listing(address)
    parsed = parse_cloud_address(address)
    return _open(parsed, parsed.table, patience_s)


def tables_of(address: str) -> list[str]:
    """Return the sorted addresses of all tables that a pattern selects. An address without a pattern is returned
    unchanged.

    Raises BadAddress if no pattern is possible, and TransferError if there is no such table.
    """
    scheme, rest = _scheme_of(address)
    if scheme == "file":
        return _files_of(address)
    if scheme == "tablegate":
        url, _, place = rest.rpartition("#")
        namespace, slash, pattern = place.rpartition("/")
        if not _is_pattern(pattern):
            return [address]
        return [
            f"tablegate:{url}#{namespace}{slash}{name}" for name in _matching(open_listing(address), pattern)
        ]
    parsed = parse_cloud_address(address)
    if not parsed.is_pattern:
        return [str(parsed)]
    names = _matching(_open(parsed, ""), parsed.table)
    return [str(replace(parsed, table=name)) for name in names]


def open_listing(address: str) -> Endpoint:
    """Return an endpoint on which only `list_tables` may be called."""
    scheme, rest = _scheme_of(address)
    if scheme == "tablegate":
        from tablegate.transfer.endpoints.database import DatabaseEndpoint

        return DatabaseEndpoint(rest)
    return _open(parse_cloud_address(address), "")


def with_table(address: str, table: str) -> str:
    """Return an address with its pattern replaced by one table."""
    scheme, rest = _scheme_of(address)
    if scheme == "tablegate":
        url, _, place = rest.rpartition("#")
        namespace, slash, _ = place.rpartition("/")
        return f"tablegate:{url}#{namespace}{slash}{table}"
    if scheme == "file":
        path, options = _path_and_options(rest)
        if "*" not in path:
            raise BadAddress(
                "a file holds one table. Put `*` in place of the table's name: file:FOLDER/*.jsonl"
            )
        return _file_address(path.replace("*", quote(table, safe=" ")), options)
    return str(replace(parse_cloud_address(address), table=table))


def is_pipe(address: str) -> bool:
    scheme, rest = _scheme_of(address)
    return scheme == "file" and _path_and_options(rest)[0] == "-"


def is_pattern(address: str) -> bool:
    """True if an address may select several tables."""
    scheme, rest = _scheme_of(address)
    if scheme == "file":
        return "*" in _path_and_options(rest)[0]
    if scheme == "tablegate":
        return _is_pattern(rest.rpartition("#")[2].rpartition("/")[2])
    return parse_cloud_address(address).is_pattern


def parse_cloud_address(address: str) -> CloudAddress:
    """Parse an address of a cloud table. Raises BadAddress, which never repeats a possible secret."""
    scheme, rest = _scheme_of(address)
    form = ADDRESS_FORMS[scheme]
    if not rest.startswith("//"):
        raise BadAddress(f"the address needs two slashes: {form}")
    # A `?` is part of a pattern unless options follow it.
    place, options = _split_options(rest[2:], scheme)
    if "@" in place or ":" in place:
        raise _has_secret(scheme)
    account = ""
    if scheme != "dynamodb":
        account, slash, place = place.partition("/")
        if not slash or not _ACCOUNT.fullmatch(account):
            raise BadAddress(f"the address needs an account and a table: {form}")
    table = unquote(place.removesuffix("/"))
    if not table or "/" in table:
        raise BadAddress(f"the address needs one table name or a pattern: {form}")
    _check_options(scheme, options)
    if scheme == "tablestore" and "endpoint" not in options:
        raise BadAddress(f"the address needs the instance's URL: {form}")
    return CloudAddress(scheme, account, table, tuple(options.items()))


def _split_options(rest: str, scheme: str) -> tuple[str, dict[str, str]]:
    place, _, query = rest.rpartition("?")
    if not place or "=" not in query:
        return rest, {}
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if is_secret_name(name):
            raise _has_secret(scheme)
        if name in options:
            raise BadAddress(f"{name} is given twice: {ADDRESS_FORMS[scheme]}")
        options[name] = value
    return place, options


def _check_options(scheme: str, options: Mapping[str, str]) -> None:
    for name, value in options.items():
        if name not in _OPTIONS[scheme]:
            option_name = name if re.fullmatch(r"[A-Za-z_.-]{1,40}", name) else "name"
            raise BadAddress(f"unknown option {option_name}: {ADDRESS_FORMS[scheme]}")
        if not value:
            raise BadAddress(f"{name} is empty: {ADDRESS_FORMS[scheme]}")
    endpoint = options.get("endpoint")
    if endpoint is None:
        return
    try:
        parts = urlsplit(endpoint)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
        parts = urlsplit("")
    if "@" in endpoint or parts.query or parts.fragment:
        raise _has_secret(scheme)
    if not is_valid:
        raise BadAddress(
            f"the endpoint is not a URL. Use endpoint=https://HOST[:PORT] with a port from 1 to 65535: {ADDRESS_FORMS[scheme]}"
        )


def _has_secret(scheme: str) -> BadAddress:
    return BadAddress(
        f"addresses are printed and stored and must not contain credentials. Set {_WHERE_SECRETS_BELONG[scheme]} in the "
        f"environment and use {ADDRESS_FORMS[scheme]}"
    )


def _scheme_of(address: str) -> tuple[str, str]:
    """Return (scheme, rest after the colon). A plain path and `-` are files."""
    if address == "-":
        return "file", "-"
    scheme, colon, rest = address.partition(":")
    scheme = scheme.lower()
    if colon and scheme in ADDRESS_FORMS:
        if scheme in ("tablegate", "file") and not rest:
            raise BadAddress(f"the address is incomplete: {ADDRESS_FORMS[scheme]}")
        return scheme, rest
    forms = "\n  ".join([*ADDRESS_FORMS.values(), "-"])
    is_scheme = rest.startswith("//") and re.fullmatch(r"[a-z0-9+.-]{1,20}", scheme)
    # A longer text can be a secret.
    shown = f"{address} is " if re.fullmatch(r"[\w.*-]{1,30}", address) else ""
    problem = f"{scheme}: is not a kind of address" if is_scheme else f"{shown}not an address"
    raise BadAddress(f"{problem}. Use one of\n  {forms}")


def _path_and_options(rest: str) -> tuple[str, dict[str, str]]:
    path, mark, query = rest.rpartition("?")
    if not mark or "=" not in query:
        return rest, {}
    return path, dict(parse_qsl(query, keep_blank_values=True))


def _file_address(path: str, options: Mapping[str, str]) -> str:
    return f"file:{path}" + (f"?{urlencode(options)}" if options else "")


def _files_of(address: str) -> list[str]:
    """Return the addresses of all files that a pattern selects. An address without a pattern is returned unchanged."""
    path, options = _path_and_options(_scheme_of(address)[1])
    if "*" not in path:
        return [address]
    from tablegate.transfer.endpoints.files.opening import list_files

    names = list_files(path)
    if not names:
        raise TransferError(f"file:{path}: no such file")
    return [_file_address(name, options) for name in names]


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def _matching(endpoint: Endpoint, pattern: str) -> list[str]:
    try:
        names = sorted(
            name for name in endpoint.list_tables() if fnmatchcase(name, pattern.replace("[", "[[]"))
        )
    finally:
        endpoint.close()
    if not names:
        raise TransferError(f"{endpoint.shown}: no such table")
    return names


def _open(address: CloudAddress, table: str, patience_s: float = PATIENCE_S) -> Endpoint:
    text = str(address)
    with _requires_extra("clouds"):
        if address.scheme == "dynamodb":
            from tablegate.transfer.endpoints.dynamodb import DynamoDBEndpoint
            from tablegate.transfer.endpoints.dynamodb_client import Account as AWSAccount

            region, endpoint, profile = map(address.option, ("region", "endpoint", "profile"))
            return DynamoDBEndpoint(table, AWSAccount(region, endpoint, profile), text, patience_s)
        if address.scheme == "azure-table":
            from tablegate.transfer.endpoints.azure_table import AzureTableEndpoint
            from tablegate.transfer.endpoints.azure_table_client import Account as AzureAccount

            account = AzureAccount(address.account, address.option("endpoint"))
            return AzureTableEndpoint(table, account, text, patience_s)
        from tablegate.transfer.endpoints.table_store import TableStoreEndpoint
        from tablegate.transfer.endpoints.table_store_client import Account as TableStoreAccount

        instance = TableStoreAccount(address.account, address.option("endpoint"), address.option("region"))
        return TableStoreEndpoint(table, instance, text, patience_s)


@contextmanager
def _requires_extra(extra: str) -> Iterator[None]:
    """Convert an ImportError of an optional library to MissingSoftware with the name of its extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name in ("", "adapters", "gateway", "transfer"):
            raise
        raise MissingSoftware(
            f"Python package {name} is not installed. Install it with: pip install 'tablegate[{extra}]'"
        ) from None
