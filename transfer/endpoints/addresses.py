"""Addresses of tables: what people write on the command line becomes an endpoint.

    dynamodb://TABLE?region=REGION[&endpoint=URL][&profile=NAME]
    azure-table://ACCOUNT/TABLE[?endpoint=URL]
    tablestore://INSTANCE/TABLE?endpoint=URL[&region=REGION]
    tablegate:DATABASE-URL#[NAMESPACE/]TABLE
    file:PATH[?OPTION=VALUE...]        -  (standard input or output)

TABLE may be a pattern of `*` and `?`, PATH one of `*`; `*` stands for all tables. Credentials are never part of an address: each
service's own environment variables and files are asked (see `client.py` of each), and an address that seems to have some is
refused without being repeated, because addresses are shown, kept in job files and read by others. Only the endpoint's own
libraries are imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from tablegate.transfer.endpoints.endpoint import Endpoint
from tablegate.transfer.endpoints.retrying import PATIENCE_S
from tablegate.transfer.errors import BadAddress, MissingSoftware, TransferError

FORMS = {
    "dynamodb": "dynamodb://TABLE?region=REGION[&endpoint=URL][&profile=NAME]",
    "azure-table": "azure-table://ACCOUNT/TABLE[?endpoint=URL]",
    "tablestore": "tablestore://INSTANCE/TABLE?endpoint=URL[&region=REGION]",
    "tablegate": "tablegate:DATABASE-URL#[NAMESPACE/]TABLE",
    "file": "file:PATH",
}
_OPTIONS = {
    "dynamodb": ("region", "endpoint", "profile"),
    "azure-table": ("endpoint",),
    "tablestore": ("endpoint", "region"),
}
_SECRETS = re.compile(
    r"key|secret|token|passw|pwd|signature|^sig$|^sas$|credential|connection", re.IGNORECASE
)
_WHERE_SECRETS_BELONG = {
    "dynamodb": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile of ~/.aws by &profile=NAME",
    "azure-table": "AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN",
    "tablestore": "TABLESTORE_ACCESS_KEY_ID and TABLESTORE_ACCESS_KEY_SECRET",
}
_ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")


@dataclass(frozen=True, slots=True)
class CloudAddress:
    """A table, or a pattern of tables, of a cloud service or of a server that speaks its API. Holds no secret."""

    scheme: str
    account: str
    table: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def is_pattern(self) -> bool:
        """Whether it stands for any number of tables."""
        return "*" in self.table or "?" in self.table

    def option(self, name: str) -> str:
        """An option, "" if it is not given."""
        return dict(self.options).get(name, "")

    def __str__(self) -> str:
        place = f"{self.account}/" if self.account else ""
        query = "&".join(f"{name}={quote(value, safe=':/.-_~[]')}" for name, value in self.options)
        return f"{self.scheme}://{place}{quote(self.table, safe='*.-_')}" + (f"?{query}" if query else "")


def open_endpoint(address: str, patience_s: float = PATIENCE_S) -> Endpoint:
    """The end of a transfer that an address names. Nothing is asked of a service yet. `patience_s`: how long a service that
    is busy or cannot be reached is tried without any progress.

    Raises BadAddress, MissingSoftware, AccessRefused (there are no credentials).
    """
    scheme, rest = _scheme_of(address)
    if is_pattern(address):
        raise BadAddress(f"the address names several tables, and this needs one: {FORMS[scheme]}")
    if scheme == "file":
        path, options = _path_and_options(rest)
        from tablegate.transfer.endpoints.files.opening import open_file

        return open_file(path, options)
    if scheme == "tablegate":
        return open_listing(address)
    parsed = parse_cloud_address(address)
    return _open(parsed, parsed.table, patience_s)


def tables_of(address: str) -> list[str]:
    """The addresses of all tables that an address with a pattern names, in order; of one without, itself.

    Raises BadAddress where it can have no pattern, TransferError where it names none.
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
    """An endpoint of which only `list_tables` is asked."""
    scheme, rest = _scheme_of(address)
    if scheme == "tablegate":
        from tablegate.transfer.endpoints.database.endpoint import DatabaseEndpoint

        return DatabaseEndpoint(rest)
    return _open(parse_cloud_address(address), "")


def with_table(address: str, table: str) -> str:
    """An address whose pattern is replaced by one table: where a table of a source with a pattern goes."""
    scheme, rest = _scheme_of(address)
    if scheme == "tablegate":
        url, _, place = rest.rpartition("#")
        namespace, slash, _ = place.rpartition("/")
        return f"tablegate:{url}#{namespace}{slash}{table}"
    if scheme == "file":
        path, options = _path_and_options(rest)
        if "*" not in path:
            raise BadAddress(
                "a file takes one table: write `*` where the tables' names are to stand: file:FOLDER/*.jsonl"
            )
        return _file_address(path.replace("*", quote(table, safe=" ")), options)
    return str(replace(parse_cloud_address(address), table=table))


def is_pipe(address: str) -> bool:
    """True if an address is standard input or output."""
    scheme, rest = _scheme_of(address)
    return scheme == "file" and _path_and_options(rest)[0] == "-"


def is_pattern(address: str) -> bool:
    """Whether an address stands for any number of tables."""
    scheme, rest = _scheme_of(address)
    if scheme == "file":
        return "*" in _path_and_options(rest)[0]
    if scheme == "tablegate":
        return _is_pattern(rest.rpartition("#")[2].rpartition("/")[2])
    return parse_cloud_address(address).is_pattern


def parse_cloud_address(address: str) -> CloudAddress:
    """The parts of an address of a cloud's table. Raises BadAddress, which repeats nothing that may be a secret."""
    scheme, rest = _scheme_of(address)
    form = FORMS[scheme]
    if not rest.startswith("//"):
        raise BadAddress(f"an address of this kind has two slashes: {form}")
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
        raise BadAddress(f"the address needs the name of one table, or a pattern: {form}")
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
        if _SECRETS.search(name):
            raise _has_secret(scheme)
        if name in options:
            raise BadAddress(f"{name} is given twice: {FORMS[scheme]}")
        options[name] = value
    return place, options


def _check_options(scheme: str, options: Mapping[str, str]) -> None:
    for name, value in options.items():
        if name not in _OPTIONS[scheme]:
            shown = name if re.fullmatch(r"[A-Za-z_.-]{1,40}", name) else "that"
            raise BadAddress(f"there is no option {shown} here: {FORMS[scheme]}")
        if not value:
            raise BadAddress(f"{name} is empty: {FORMS[scheme]}")
    endpoint = options.get("endpoint")
    if endpoint is None:
        return
    try:
        parts = urlsplit(endpoint)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
        parts = urlsplit("")
    if "@" in endpoint or parts.query or parts.fragment:
        raise _has_secret(scheme)
    if not is_good:
        raise BadAddress(
            f"the endpoint is no URL: write endpoint=https://HOST[:PORT], with a port of 1 to 65535: {FORMS[scheme]}"
        )


def _has_secret(scheme: str) -> BadAddress:
    return BadAddress(
        f"an address holds no credentials, because it is shown and kept: set {_WHERE_SECRETS_BELONG[scheme]} in the "
        f"environment, and write {FORMS[scheme]}"
    )


def _scheme_of(address: str) -> tuple[str, str]:
    """(scheme, what follows its colon); a plain path and `-` are files."""
    if address == "-":
        return "file", "-"
    scheme, colon, rest = address.partition(":")
    scheme = scheme.lower()
    if colon and scheme in FORMS:
        if scheme in ("tablegate", "file") and not rest:
            raise BadAddress(f"the address is not complete: {FORMS[scheme]}")
        return scheme, rest
    known = "\n  ".join([*FORMS.values(), "-"])
    is_scheme = rest.startswith("//") and re.fullmatch(r"[a-z0-9+.-]{1,20}", scheme)
    named = f"{scheme}: is no kind of address" if is_scheme else "no address"
    raise BadAddress(f"{named}; there are\n  {known}")


def _path_and_options(rest: str) -> tuple[str, dict[str, str]]:
    path, mark, query = rest.rpartition("?")
    if not mark or "=" not in query:
        return rest, {}
    return path, dict(parse_qsl(query, keep_blank_values=True))


def _file_address(path: str, options: Mapping[str, str]) -> str:
    return f"file:{path}" + (f"?{urlencode(options)}" if options else "")


def _files_of(address: str) -> list[str]:
    """The addresses of all files that one with `*` names; of one without, itself."""
    path, options = _path_and_options(_scheme_of(address)[1])
    if "*" not in path:
        return [address]
    from tablegate.transfer.endpoints.files.opening import list_files

    names = list_files(path)
    if not names:
        raise TransferError(f"file:{path}: no file is called so")
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
        raise TransferError(f"{endpoint.shown}: no table is called so")
    return names


def _open(address: CloudAddress, table: str, patience_s: float = PATIENCE_S) -> Endpoint:
    shown = str(address)
    with _needing("clouds"):
        if address.scheme == "dynamodb":
            from tablegate.transfer.endpoints.dynamodb.client import Account as AWSAccount
            from tablegate.transfer.endpoints.dynamodb.endpoint import DynamoDBEndpoint

            region, endpoint, profile = map(address.option, ("region", "endpoint", "profile"))
            return DynamoDBEndpoint(table, AWSAccount(region, endpoint, profile), shown, patience_s)
        if address.scheme == "azure-table":
            from tablegate.transfer.endpoints.azure_table.client import Account as AzureAccount
            from tablegate.transfer.endpoints.azure_table.endpoint import AzureTableEndpoint

            account = AzureAccount(address.account, address.option("endpoint"))
            return AzureTableEndpoint(table, account, shown, patience_s)
        from tablegate.transfer.endpoints.table_store.client import Account as TableStoreAccount
        from tablegate.transfer.endpoints.table_store.endpoint import TableStoreEndpoint

        instance = TableStoreAccount(address.account, address.option("endpoint"), address.option("region"))
        return TableStoreEndpoint(table, instance, shown, patience_s)


@contextmanager
def _needing(extra: str) -> Iterator[None]:
    """What is imported here may not be installed, and comes with an extra of the wheel. Raises MissingSoftware."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name in ("", "adapters", "gateway", "transfer"):
            raise
        raise MissingSoftware(f"{name} is not installed: pip install 'tablegate[{extra}]'") from None
