"""The definition of a workload in any dialect: preparation, n-th request, and check of replies.

The workloads are in dynamodb.py, azuretable.py and tablestore.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.signing import Client


class Unsupported(Exception):
    """A server does not support a workload. The text has its reply."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of request.

    - `request(port, number)` returns the bytes of a request. Numbers never repeat on one server, so that a request
    may insert.
    - `prepare(client)` creates tables and rows once for each server. Raises Unsupported.
    - `holds(body)` checks a sampled reply.
    - `pool`: number of requests that a read-only workload sends repeatedly. 0 creates each request anew.
    - `rows`: number of rows of one request.
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
    """Send a request that must succeed and return the body of the reply. Raises Unsupported."""
    status, body = client.send(request)
    if status not in (statuses or (200,)):
        raise Unsupported(f"{status} {body[:200].decode(errors='replace')}")
    return body
