"""Quotas as values: the limits of an owner, what is left of its rates, and the bounds that the engine checks.

Pure, but for the moment that a caller gives. Which quotas are in force, and what commands take, is in gateway/security/quotas.py.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import NamedTuple

import orjson

from tablegate.gateway.model.errors import QuotaExceeded

REQUESTS, READ_UNITS, WRITE_UNITS, BYTES, TABLES = "requests", "read_units", "write_units", "bytes", "tables"
RATES = (REQUESTS, READ_UNITS, WRITE_UNITS)
READ_UNIT_BYTES, WRITE_UNIT_BYTES = 4096, 1024
# What has not been used for so long is kept; more would let a rate be exceeded for longer.
BURST_S = 0.25


class TableLimit(NamedTuple):
    """The largest number of tables in a scope, checked in the transaction that makes a table. `owner`: of the quota."""

    owner: str
    scope: str
    most: int


def covers(scope: str, namespace: str) -> bool:
    """True if a namespace belongs to a scope, which is a namespace or the first parts of several: `aws/ACCOUNT` has the
    namespaces of all regions of an account."""
    return namespace == scope or namespace.startswith(f"{scope}/")


def account_of(namespace: str) -> str:
    """The scope of the account, or of the instance, that a namespace belongs to."""
    return "/".join(namespace.split("/", 2)[:2])


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits of an owner: rates in units a second, the others in total. None: unlimited."""

    requests: float | None = None
    read_units: float | None = None
    write_units: float | None = None
    bytes: int | None = None
    tables: int | None = None

    @classmethod
    def of(cls, document: str) -> Quota:
        """Read a quota from its JSON. Members of a later release are ignored."""
        given = orjson.loads(document)
        return cls(**{item.name: given.get(item.name) for item in fields(cls)})

    def document(self) -> str:
        """Return the limits as JSON."""
        return orjson.dumps(
            {name: value for name, value in asdict(self).items() if value is not None}
        ).decode()


def credential_owner(scheme: str, access_id: str) -> str:
    """The owner of a credential's quota, as it is stored."""
    return f"{scheme}/{access_id}"


def namespace_owner(namespace: str) -> str:
    """The owner of the quota of a namespace or a scope, as it is stored."""
    return f"namespace/{namespace}"


class RateBucket:
    """The rest of a rate at a moment. Below zero it is a debt. `share`: the part of the rate that this process has."""

    __slots__ = ("_at", "asked", "left", "rate", "share")

    def __init__(self, rate: float, share: float, now: float) -> None:
        self.rate = rate
        self.share = share
        self.asked = 0.0
        self.left = self._most()
        self._at = now

    def _most(self) -> float:
        return max(1.0, self.rate * self.share * BURST_S)

    def may_take(self, now: float) -> bool:
        """True if at least one unit is left."""
        self.left = min(self._most(), self.left + (now - self._at) * self.rate * self.share)
        self._at = now
        return self.left >= 1.0

    def take(self, amount: float) -> None:
        """Take units, even if fewer are left."""
        self.left -= amount
        self.asked += amount


class Allowance:
    """A quota in force: its owner and its buckets."""

    def __init__(self, owner: str, quota: Quota, share: float, now: float) -> None:
        self.owner = owner
        self.quota = quota
        self.buckets = {
            name: RateBucket(rate, share, now) for name in RATES if (rate := getattr(quota, name)) is not None
        }

    def check(self, kind: str, now: float) -> None:
        """Raises QuotaExceeded if a rate is used up."""
        bucket = self.buckets.get(kind)
        if bucket is not None and not bucket.may_take(now):
            bucket.asked += 1
            raise self.exceeded(kind)

    def take(self, kind: str, amount: float) -> None:
        """Take units of a rate."""
        bucket = self.buckets.get(kind)
        if bucket is not None:
            bucket.take(amount)

    def exceeded(self, kind: str) -> QuotaExceeded:
        """The error of a limit that is reached."""
        return QuotaExceeded(kind, getattr(self.quota, kind), self.owner)
