"""Workloads of Azure Table in the account of the storage emulators, with entities of about 900 bytes of JSON.

Each workload has its own tables, so that workloads do not depend on each other.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import quote

from benchmarks.dynamodb import partition_of
from benchmarks.signing import AZURE_ACCOUNT, HOST, Client, azure
from benchmarks.workloads import Workload, expect

_QUERIED = 1000
_BATCH = 100
_FILLER = "x" * 780


def entity(partition: str, number: int) -> dict[str, Any]:
    """Return an entity as clients send it."""
    return {
        "PartitionKey": partition,
        "RowKey": f"{number:010d}",
        "Name": f"customer {number % 1000:03d}",
        "Visits": number % 1000,
        "Active": number % 2 == 0,
        "Text": _FILLER,
    }


def _make_table(client: Client, name: str) -> None:
    body = json.dumps({"TableName": name}).encode()
    expect(client, azure(client.port, "POST", "/Tables", body), 201, 204)


def _empty(name: str) -> Callable[[Client], None]:
    return lambda client: _make_table(client, name)


def _prepare_read(client: Client) -> None:
    _make_table(client, "Read")
    for start in range(0, _QUERIED, _BATCH):
        entities = [entity("part0000", number) for number in range(start, start + _BATCH)]
        expect(client, changeset(client.port, "Read", entities), 202)


def _insert(port: int, number: int) -> bytes:
    return azure(port, "POST", "/Insert", json.dumps(entity(partition_of(number), number)).encode())


def _get(port: int, number: int) -> bytes:
    row = number * 7919 % _QUERIED
    return azure(port, "GET", f"/Read(PartitionKey='part0000',RowKey='{row:010d}')")


def _batch(port: int, number: int) -> bytes:
    first = number * _BATCH
    return changeset(
        port,
        "Batch",
        [entity(partition_of(number), entity_number) for entity_number in range(first, first + _BATCH)],
    )


def changeset(port: int, table: str, entities: list[dict[str, Any]]) -> bytes:
    """Return an entity group transaction of inserts as the SDKs frame it."""
    base = f"http://{HOST}:{port}/{AZURE_ACCOUNT}"
    lines = ["--batch_bench", "Content-Type: multipart/mixed; boundary=changeset_bench", ""]
    for number, document in enumerate(entities):
        lines += [
            "--changeset_bench",
            "Content-Type: application/http",
            "Content-Transfer-Encoding: binary",
            f"Content-ID: {number}",
            "",
            f"POST {base}/{table} HTTP/1.1",
            "Content-Type: application/json;odata=nometadata",
            "Accept: application/json;odata=minimalmetadata",
            "Prefer: return-no-content",
            "DataServiceVersion: 3.0",
            "",
            json.dumps(document),
        ]
    lines += ["--changeset_bench--", "", "--batch_bench--", ""]
    body = "\r\n".join(lines).encode()
    return azure(port, "POST", "/$batch", body, "multipart/mixed; boundary=batch_bench")


def _query(port: int, number: int) -> bytes:
    condition = "PartitionKey eq 'part0000'"
    return azure(port, "GET", f"/Read()?$filter={quote(condition)}")


def _filter(port: int, number: int) -> bytes:
    """Return a query with one match in a partition of a thousand entities."""
    condition = f"PartitionKey eq 'part0000' and Visits eq {number % _QUERIED}"
    return azure(port, "GET", f"/Read()?$filter={quote(condition)}")


def _has_entity(body: bytes) -> bool:
    return bool(json.loads(body)["Text"] == _FILLER)


def _has(count: int, body: bytes) -> bool:
    return len(json.loads(body)["value"]) == count


def _wrote_all(body: bytes) -> bool:
    return body.count(b"HTTP/1.1 204") == _BATCH


WORKLOADS = (
    Workload("insert", "Insert Entity", _insert, _empty("Insert"), lambda body: not body, 204),
    Workload("get", "get an entity", _get, _prepare_read, _has_entity, pool=1000),
    Workload("batch", "batch of 100 inserts", _batch, _empty("Batch"), _wrote_all, 202, rows=_BATCH),
    Workload(
        "query", "query of 1,000", _query, _prepare_read, partial(_has, _QUERIED), pool=1, rows=_QUERIED
    ),
    Workload(
        "filter",
        "filtered query, 0.1 % of 1,000",
        _filter,
        _prepare_read,
        partial(_has, 1),
        pool=100,
        rows=_QUERIED,
    ),
)
