"""What a workload is, in any dialect: how its tables are made, its n-th request, and what an answer must hold.

The workloads themselves are in dynamodb.py, azuretable.py and tablestore.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.signing import Client


class Unsupported(Exception):
    """A server does not have what a workload needs; the text says what it answered."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of request.

    `request(port, number)` gives the bytes of a request; numbers never repeat on one server, so that a request may insert.
    `prepare(client)` makes what it needs, once per server; raises Unsupported. `holds(body)` looks at a sampled answer.
    `pool`: of a workload that only reads, how many requests are made and sent over and over; 0: each is made anew.
    `rows`: how many rows one request touches.
    """

    name: str
    title: str
    request: Callable[[int, int], bytes]
    prepare: Callable[[Client], None]
    holds: Callable[[bytes], bool]
    status: int = 200
    pool: int = 0
    rows: int = 1


def expect(client: Client, request: bytes, *statuses: int) -> bytes:
    """The body of the answer to a request that must succeed. Raises Unsupported."""
    status, body = client.send(request)
    if status not in (statuses or (200,)):
        raise Unsupported(f"{status} {body[:200].decode(errors='replace')}")
    return body
