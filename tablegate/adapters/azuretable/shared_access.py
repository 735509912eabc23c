"""Shared access signatures: parsing, verification of the signature, and the access they grant. Pure.

It covers service SAS (one table, optionally a range of keys), account SAS, and stored access policies as plain values.
Source: "Create a service SAS", "Create an account SAS", "Delegate access with SAS".
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from tablegate.adapters.azuretable.values import TICKS_PER_SECOND, UNIX_EPOCH_TICKS, parse_datetime
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.security.identities import Identity
from tablegate.gateway.security.signatures import hmac_digest

Bound = tuple[str, str | None]
"""(PartitionKey, RowKey), inclusive. RowKey None stands for the whole partition."""


class Action(Enum):
    """An action: (permissions of a service SAS, permissions of an account SAS, resource type of an account SAS).

    All letters are required, unless "|" separates alternatives. None means that no token of that kind suffices.
    """

    QUERY = ("r", "r", "o")
    INSERT = ("a", "a", "o")
    UPDATE = ("u", "u", "o")
    DELETE = ("d", "d", "o")
    UPSERT = ("au", "au", "o")
    LIST_TABLES = (None, "l", "c")
    CREATE_TABLE = (None, "c|w", "c")
    DELETE_TABLE = (None, "d", "c")
    READ_SERVICE = (None, "r", "s")
    WRITE_SERVICE = (None, "w", "s")
    ACCESS_POLICY = (None, None, "c")


@dataclass(frozen=True, slots=True)
class Policy:
    """A stored access policy. Times are service timestamps. An empty part counts as absent."""

    id: str
    start: str | None = None
    expiry: str | None = None
    permission: str | None = None


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """A token with a valid signature. `table` is lower-case, None for account tokens. Times are in seconds since 1970."""

    table: str | None
    permissions: str | None
    starts: float | None
    expires: float | None
    resource_types: str = ""
    policy_id: str | None = None
    lower: Bound | None = None
    upper: Bound | None = None

    def with_policy(self, policies: Iterable[Policy], now: float) -> SharedAccess:
        """Return the token completed by its stored policy. Raises ServiceError AuthenticationFailed."""
        if self.policy_id is None:
            return self
        for policy in policies:
            if policy.id == self.policy_id:
                break
        else:
            raise ServiceError("AuthenticationFailed")
        own = (self.permissions, self.starts, self.expires)
        stored = (policy.permission or None, time_of(policy.start), time_of(policy.expiry))
        if any(value is not None and default is not None for value, default in zip(own, stored, strict=True)):
            raise ServiceError("AuthenticationFailed")
        permissions, starts, expires = (
            value if value is not None else default for value, default in zip(own, stored, strict=True)
        )
        complete = replace(self, permissions=permissions, starts=starts, expires=expires, policy_id=None)  # type: ignore[arg-type]
        complete.check_times(now)
        return complete

    def check_times(self, now: float) -> None:
        """Check that the token has an expiry and is valid now. Raises ServiceError AuthenticationFailed."""
        if self.permissions is None or self.expires is None or now >= self.expires:
            raise ServiceError("AuthenticationFailed")
        if self.starts is not None and now < self.starts:
            raise ServiceError("AuthenticationFailed")

    def check(self, action: Action, table: str | None) -> None:
        """Check that the token permits an action. Raises ServiceError with the code of the failure."""
        of_table, of_account, resource_type = action.value
        permissions = self.permissions or ""
        if self.table is not None:
            if table is None or table.lower() != self.table or of_table is None:
                raise ServiceError("AuthorizationFailure")
            if not _has_letters(permissions, of_table):
                raise ServiceError("AuthorizationPermissionMismatch")
            return
        if of_account is None:
            raise ServiceError("AuthorizationFailure")
        if resource_type not in self.resource_types:
            raise ServiceError("AuthorizationResourceTypeMismatch")
        if not _has_letters(permissions, of_account):
            raise ServiceError("AuthorizationPermissionMismatch")

    def covers(self, partition_key: str, row_key: str) -> bool:
        """Return True if an entity is inside the token's range of keys."""
        key = (partition_key, row_key)
        if self.lower is not None and key < (self.lower[0], self.lower[1] or ""):
            return False
        if self.upper is None:
            return True
        partition, row = self.upper
        return partition_key <= partition if row is None else key <= (partition, row)


@dataclass(frozen=True, slots=True)
class Grant:
    """The grant of an authenticated caller: everything (account key, bearer token), or the access of a SAS token."""

    access: SharedAccess | None = None
    identity: Identity | None = None
    """The identity that a bearer token proves. None without one."""

    def check(self, action: Action, table: str | None = None) -> None:
        """Check that the grant permits an action. Raises ServiceError."""
        if self.access is not None:
            self.access.check(action, table)

    def check_key(self, partition_key: str, row_key: str) -> None:
        """Check that an entity is inside the token's range. Raises ServiceError AuthorizationFailure."""
        if self.access is not None and not self.access.covers(partition_key, row_key):
            raise ServiceError("AuthorizationFailure")

    def covers(self, partition_key: str, row_key: str) -> bool:
        return self.access is None or self.access.covers(partition_key, row_key)


def _has_letters(permissions: str, requirement: str) -> bool:
    return any(all(letter in permissions for letter in choice) for choice in requirement.split("|"))


# Reading a token

_VERSION_WITH_PREFIX = "2015-04-05"  # since then "/table" in the resource, sip, spr, and account SAS
_VERSION_WITH_SCOPE = "2020-12-06"  # since then account SAS also sign the encryption scope
_VERSION = re.compile(r"\d{4}-\d\d-\d\d")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,7})?)?(Z|[+-]\d\d:\d\d))?")


@dataclass(frozen=True, slots=True)
class Signer:
    """The name and keys of the account that must have signed."""

    account: str
    keys: tuple[bytes, ...]

    def has_signed(self, signature: str, text: str) -> bool:
        """Return True if one of the keys made this signature of the text. Takes constant time per key."""
        message = text.encode("utf-8", "surrogatepass")
        expected = signature.encode("utf-8", "surrogatepass")
        good = False
        for key in self.keys:
            good |= hmac.compare_digest(b64encode(hmac_digest(key, message, "sha256")), expected)
        return good


def read(options: Mapping[str, str], signer: Signer, client: str, secure: bool) -> SharedAccess:
    """Parse the token in a query. Raises ServiceError: 403 with the code of the failure.

    Times are not checked yet if a stored policy may set them.
    """
    version = options.get("sv", "")
    if not is_version(version) or not options.get("sig"):
        raise ServiceError("AuthenticationFailed")
    check_circumstances(options, client, secure)
    return (
        _read_service(options, signer, version)
        if "tn" in options
        else _read_account(options, signer, version)
    )


def is_version(text: str) -> bool:
    """Return True if a text has the form of a version of the service."""
    return _VERSION.fullmatch(text) is not None


def check_circumstances(options: Mapping[str, str], client: str, secure: bool) -> None:
    """Check the protocol and the address that a token demands. Raises ServiceError."""
    protocol = options.get("spr", "")
    if protocol not in ("", "https", "https,http", "http,https"):
        raise ServiceError("AuthenticationFailed")
    if protocol == "https" and not secure:
        raise ServiceError("AuthorizationProtocolMismatch")
    if options.get("sip") and not _is_within(client, options["sip"]):
        text = f"This request is not authorized to perform this operation using this source IP {client}."
        raise ServiceError("AuthorizationSourceIPMismatch", text)


def _is_within(client: str, range_text: str) -> bool:
    lowest, _, highest = range_text.partition("-")
    try:
        address = ipaddress.ip_address(client)
        bounds = ipaddress.ip_address(lowest), ipaddress.ip_address(highest or lowest)
    except ValueError:
        raise ServiceError("AuthenticationFailed") from None
    if not address.version == bounds[0].version == bounds[1].version:
        return False
    return int(bounds[0]) <= int(address) <= int(bounds[1])


def _read_service(options: Mapping[str, str], signer: Signer, version: str) -> SharedAccess:
    table = options["tn"].lower()
    sp, st, se, si = (options.get(name, "") for name in ("sp", "st", "se", "si"))
    bounds = [options.get(name, "") for name in ("spk", "srk", "epk", "erk")]
    if version >= _VERSION_WITH_PREFIX:
        resource = f"/table/{signer.account}/{table}"
        lines = [sp, st, se, resource, si, options.get("sip", ""), options.get("spr", ""), version, *bounds]
    else:
        lines = [sp, st, se, f"/{signer.account}/{table}", si, version, *bounds]
    if not signer.has_signed(options["sig"], "\n".join(lines)):
        raise ServiceError("AuthenticationFailed")
    return access_of(options)


def access_of(options: Mapping[str, str]) -> SharedAccess:
    """Return the access that a token for a table grants, after its signature was verified. Raises ServiceError."""
    sp, st, se, si = (options.get(name, "") for name in ("sp", "st", "se", "si"))
    spk, srk, epk, erk = (options.get(name) for name in ("spk", "srk", "epk", "erk"))
    if (srk and spk is None) or (erk and epk is None) or not set(sp) <= set("raud"):
        raise ServiceError("AuthenticationFailed")
    return SharedAccess(
        table=options["tn"].lower(),
        permissions=sp or None,
        starts=time_of(st),
        expires=time_of(se),
        policy_id=si or None,
        lower=None if spk is None else (spk, srk),
        upper=None if epk is None else (epk, erk),
    )


def _read_account(options: Mapping[str, str], signer: Signer, version: str) -> SharedAccess:
    names = ("sp", "ss", "srt", "st", "se", "sip", "spr")
    members = [options.get(name, "") for name in names]
    lines = [signer.account, *members, version]
    if version >= _VERSION_WITH_SCOPE:
        lines.append(options.get("ses", ""))
    if not signer.has_signed(options["sig"], "\n".join(lines) + "\n"):
        raise ServiceError("AuthenticationFailed")
    permissions, services, resource_types, starts, expires = members[:5]
    if version < _VERSION_WITH_PREFIX:
        raise ServiceError("AuthenticationFailed")
    if "t" not in services:
        raise ServiceError("AuthorizationServiceMismatch")
    return SharedAccess(
        table=None,
        permissions=permissions or None,
        starts=time_of(starts),
        expires=time_of(expires),
        resource_types=resource_types,
    )


def time_of(text: str | None) -> float | None:
    """Return a token's time in seconds since 1970, None if absent. Raises ServiceError AuthenticationFailed."""
    if not text:
        return None
    ticks = parse_datetime(text) if _TIME.fullmatch(text) else None
    if ticks is None:
        raise ServiceError("AuthenticationFailed")
    return (ticks - UNIX_EPOCH_TICKS) / TICKS_PER_SECOND
