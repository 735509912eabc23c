"""Quotas: the limits of an owner, the remaining rates, and the bounds that the engine checks.

Pure: the time is an argument. Commands say what they cost (model/commands/command.py). gateway/security/quotas.py
decides which quotas apply.

In all dialects, a read unit is 4 KiB and a write unit is 1 KiB of a row, rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import NamedTuple

import orjson

from tablegate.gateway.model.errors import QuotaExceeded

REQUESTS, READ_UNITS, WRITE_UNITS, BYTES, TABLES = "requests", "read_units", "write_units", "bytes", "tables"
RATES = (REQUESTS, READ_UNITS, WRITE_UNITS)
READ_UNIT_BYTES, WRITE_UNIT_BYTES = 4096, 1024
# Unused units are kept for this time. A longer time would let clients exceed a rate for longer.
BURST_S = 0.25


PRINCIPALS_OF_TOKENS = ("entra/", "group/")
"""The beginnings of identities and of groups, in grants and in owners of quotas."""


class Cost(NamedTuple):
    """The units and totals that a finished command has taken from quotas."""

    read_units: float = 0.0
    write_units: float = 0.0
    added_bytes: int = 0


NO_COST = Cost()


def read_units(sizes: Iterable[int]) -> float:
    """Return the units of reads of these sizes, each rounded up. A read takes at least one unit."""
    return float(sum(max(1, math.ceil(size / READ_UNIT_BYTES)) for size in sizes))


def write_units(sizes: Iterable[int]) -> float:
    """Return the units of writes of rows of these sizes, each rounded up. A write takes at least one unit."""
    return float(sum(max(1, math.ceil(size / WRITE_UNIT_BYTES)) for size in sizes))


class TableLimit(NamedTuple):
    """The maximum number of tables in a scope, checked in the transaction that creates a table. `owner`: owner of the
    quota."""

    owner: str
    scope: str
    limit: int


def covers(scope: str, namespace: str) -> bool:
    """Return True if a namespace belongs to a scope.

    A scope is a namespace, or a prefix of several: `aws/ACCOUNT` covers all regions of an account.
    """
    return namespace == scope or namespace.startswith(f"{scope}/")


def account_of(namespace: str) -> str:
    """Return the scope of the account or instance that a namespace belongs to."""
    return "/".join(namespace.split("/", 2)[:2])


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of an owner: rates in units per second, and totals. None means unlimited."""

    requests: float | None = None
    read_units: float | None = None
    write_units: float | None = None
    bytes: int | None = None
    tables: int | None = None

    @classmethod
    def of(cls, document: str) -> Quota:
        """Parse a quota from JSON. Members of a later release are ignored."""
        members = orjson.loads(document)
        return cls(**{item.name: members.get(item.name) for item in fields(cls)})

    def document(self) -> str:
        return orjson.dumps(
            {name: value for name, value in asdict(self).items() if value is not None}
        ).decode()


def credential_owner(scheme: str, access_id: str) -> str:
    """Return the owner of the quota of a credential, an identity or a group, as it is stored."""
    return access_id if access_id.startswith(PRINCIPALS_OF_TOKENS) else f"{scheme}/{access_id}"


def namespace_owner(namespace: str) -> str:
    """Return the owner of the quota of a namespace or a scope, as it is stored."""
    return f"namespace/{namespace}"


class RateBucket:
    """The remaining units of a rate. A negative amount is a debt. `share`: fraction of the rate for this process."""

    __slots__ = ("_at", "left", "rate", "requested", "share")

    def __init__(self, rate: float, share: float, now: float) -> None:
        self.rate = rate
        self.share = share
        self.requested = 0.0
        self.left = self._capacity()
        self._at = now

    def _capacity(self) -> float:
        return max(1.0, self.rate * self.share * BURST_S)

    def can_take(self, now: float) -> bool:
        """Return True if at least one unit is left."""
        self.left = min(self._capacity(), self.left + (now - self._at) * self.rate * self.share)
        self._at = now
        return self.left >= 1.0

    def take(self, amount: float) -> None:
        """Take units, even if fewer are left."""
        self.left -= amount
        self.requested += amount


class Allowance:
    """A quota in force: its owner and its buckets."""

    def __init__(self, owner: str, quota: Quota, share: float, now: float) -> None:
        self.owner = owner
        self.quota = quota
        self.buckets = {
            name: RateBucket(rate, share, now) for name in RATES if (rate := getattr(quota, name)) is not None
        }

    def check(self, kind: str, now: float) -> None:
        """Raise QuotaExceeded if a rate is used up."""
        bucket = self.buckets.get(kind)
        if bucket is not None and not bucket.can_take(now):
            bucket.requested += 1
            raise self.error(kind)

    def take(self, kind: str, amount: float) -> None:
        bucket = self.buckets.get(kind)
        if bucket is not None:
            bucket.take(amount)

    def error(self, kind: str) -> QuotaExceeded:
        """Return the error for a limit."""
        return QuotaExceeded(kind, getattr(self.quota, kind), self.owner)
