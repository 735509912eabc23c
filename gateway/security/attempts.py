"""Limits on attempts with wrong secrets, by the client's address and by the name of the credential.

A wrong secret takes one attempt from three allowances, each of which fills again with time:

- of this address for this name: 5 attempts, then one every 5 seconds
- of this address for all names: 20 attempts, then one every second
- of this name from all addresses: 20 attempts, then one every second

While one of them is empty, secrets are refused without a check. A correct secret takes nothing. After it, only the first
allowance applies to this address and name. So attempts from other addresses, or for other names, cannot lock out the owner.

The state is bounded and in the memory of one server process. Signatures of the wire protocols are not limited. Their secrets
are long, and one client with an old secret would block all others behind its address.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import NamedTuple, TypeVar

from tablegate.gateway.model.errors import TooManyAttempts


class _AttemptRate(NamedTuple):
    """The size of an allowance, and the seconds until it regains one attempt."""

    attempts: int
    period_s: float


_OF_PAIR, _OF_ADDRESS, _OF_NAME = _AttemptRate(5, 5.0), _AttemptRate(20, 1.0), _AttemptRate(20, 1.0)
_MAX_ALLOWANCES = 10_000
_MAX_PROVEN = 1_000
_MAX_NAME_CHARACTERS = 256
_IPV6_PREFIX_BITS = 64  # the network of one client
T = TypeVar("T")


class AttemptLimiter:
    """The allowances, for use by several threads. `now_s` is a monotonic clock."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self.now_s = now_s
        self._lock = threading.Lock()
        # The time at which an allowance is full again. Allowances not listed are full.
        self._full_at_s: OrderedDict[Hashable, float] = OrderedDict()
        self._proven: OrderedDict[Hashable, None] = OrderedDict()

    def judge(self, address: str, name: str, proof: Callable[[], T | None]) -> T | None:
        """Return the result of `proof`, which is None for a wrong secret. Raises TooManyAttempts without calling `proof`."""
        client, name = _network_of_client(address), name[:_MAX_NAME_CHARACTERS]
        pair = ("pair", client, name)
        with self._lock:
            allowances: dict[Hashable, _AttemptRate] = {pair: _OF_PAIR}
            if pair not in self._proven:
                allowances |= {("address", client): _OF_ADDRESS, ("name", name): _OF_NAME}
            self._take(allowances)
        proven = proof()
        if proven is None:
            return None
        with self._lock:
            for allowance, rate in allowances.items():
                if allowance in self._full_at_s:
                    self._full_at_s[allowance] -= rate.period_s
            _keep(self._proven, pair, None, _MAX_PROVEN)
        return proven

    def _take(self, allowances: dict[Hashable, _AttemptRate]) -> None:
        """Take one attempt from each allowance, or raise and take nothing."""
        now_s = self.now_s()
        full_at_s = {allowance: max(self._full_at_s.get(allowance, now_s), now_s) for allowance in allowances}
        wait_s = max(
            full_at_s[allowance] - now_s - (rate.attempts - 1) * rate.period_s
            for allowance, rate in allowances.items()
        )
        if wait_s > 0:
            raise TooManyAttempts(math.ceil(wait_s))
        for allowance, rate in allowances.items():
            _keep(self._full_at_s, allowance, full_at_s[allowance] + rate.period_s, _MAX_ALLOWANCES)


def _keep(members: OrderedDict[Hashable, T], key: Hashable, value: T, limit: int) -> None:
    """Set a member as the newest. Above `limit` members the oldest is removed."""
    members[key] = value
    members.move_to_end(key)
    if len(members) > limit:
        members.popitem(last=False)


def _network_of_client(address: str) -> str:
    """Return an IPv4 address, or the IPv6 network of one client."""
    try:
        parsed_address = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:_MAX_NAME_CHARACTERS]
    if parsed_address.version == 4:
        return str(parsed_address)
    if parsed_address.ipv4_mapped is not None:
        return str(parsed_address.ipv4_mapped)
    return str(ipaddress.ip_network((parsed_address, _IPV6_PREFIX_BITS), strict=False))
