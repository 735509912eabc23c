"""Counts of wrong secrets, by the client's address and by the name of the credential.

Every secret is compared first, and a right one is always accepted. So wrong secrets of other clients cannot lock out the owner,
even behind one address. A wrong secret takes one attempt from three allowances. Each fills again with time:

- of this address for this name: 5 attempts, then one every 5 seconds
- of this address for all names: 20 attempts, then one every second
- of this name from all addresses: 20 attempts, then one every second

While one of them is empty, a wrong secret is answered with TooManyAttempts. That slows down clients with an old secret. It does
not protect a secret that can be guessed, so secrets must be long and random.

The state is bounded and in the memory of one server process. Signatures of the wire protocols are not counted.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple, TypeVar

from tablegate.gateway.model.errors import TooManyAttempts


class _AttemptRate(NamedTuple):
    """The size of an allowance, and the seconds until it regains one attempt."""

    attempts: int
    period_s: float


_OF_PAIR, _OF_ADDRESS, _OF_NAME = _AttemptRate(5, 5.0), _AttemptRate(20, 1.0), _AttemptRate(20, 1.0)
_MAX_ALLOWANCES = 10_000
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

    def judge(self, address: str, name: str, proof: Callable[[], T | None]) -> T | None:
        """Return the result of `proof`, which is None for a wrong secret. Raises TooManyAttempts if too many were wrong."""
        proven = proof()
        if proven is None:
            client, name = _network_of_client(address), name[:_MAX_NAME_CHARACTERS]
            with self._lock:
                self._take(
                    {
                        ("pair", client, name): _OF_PAIR,
                        ("address", client): _OF_ADDRESS,
                        ("name", name): _OF_NAME,
                    }
                )
        return proven

    def _take(self, allowances: Mapping[Hashable, _AttemptRate]) -> None:
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
            self._full_at_s[allowance] = full_at_s[allowance] + rate.period_s
            self._full_at_s.move_to_end(allowance)
        while len(self._full_at_s) > _MAX_ALLOWANCES:
            self._full_at_s.popitem(last=False)


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
