"""Batches as bytes, for tests."""

from __future__ import annotations

import json
from typing import Any

from tablegate.gateway.http.messages import Reply, Request
from tests.adapters.azuretable.client import ACCOUNT, HOST, AzureRequests


def part(method: str, path: str, body: Any = None, **headers: str) -> str:
    """One change: its request line, headers and JSON body."""
    sent = {"Content-Type": "application/json", "Prefer": "return-no-content"} if body is not None else {}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [
        f"{method} http://{HOST}/{ACCOUNT}{path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in sent.items()),
    ]
    return "\r\n".join(lines) + "\r\n\r\n" + (json.dumps(body) if body is not None else "")


def insert_part(table: str, partition_key: str, row_key: str, **properties: Any) -> str:
    return part("POST", f"/{table}", {"PartitionKey": partition_key, "RowKey": row_key, **properties})


def upsert_part(table: str, partition_key: str, row_key: str, **properties: Any) -> str:
    return part("PUT", f"/{table}(PartitionKey='{partition_key}',RowKey='{row_key}')", properties)


def batch_of(service: AzureRequests, parts: list[str], headers: dict[str, str] | None = None) -> Request:
    """A changeset of these changes."""
    changes = "".join(
        f"--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n"
        f"Content-ID: {number}\r\n\r\n{each}\r\n"
        for number, each in enumerate(parts)
    )
    body = (
        "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"
        f"{changes}--changeset_1--\r\n--batch_1--\r\n"
    )
    sent = {"Content-Type": "multipart/mixed; boundary=batch_1", **(headers or {})}
    return service.request("POST", "/$batch", body.encode(), sent)


def query_batch(service: AzureRequests, path: str) -> Request:
    """A batch of one GET."""
    body = (
        "--batch_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        f"GET http://{HOST}/{ACCOUNT}{path} HTTP/1.1\r\nAccept: application/json\r\n\r\n\r\n--batch_1--\r\n"
    )
    headers = {"Content-Type": "multipart/mixed; boundary=batch_1"}
    return service.request("POST", "/$batch", body.encode(), headers)


def statuses(reply: Reply) -> list[int]:
    """The status of every part of a reply."""
    assert reply.status == 202, reply
    lines = reply.body.decode().splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith("HTTP/1.1 ")]


def failure(reply: Reply) -> tuple[int, str, str]:
    """(status, code, index) of the single part of a batch that failed."""
    [status] = statuses(reply)
    start = reply.body.index(b'{"odata.error"')
    error = json.loads(reply.body[start : reply.body.index(b"\r\n", start)])["odata.error"]
    index, _, _ = error["message"]["value"].partition(":")
    return status, error["code"], index


FOREIGN = [
    "http://accb.table.core.windows.net/T",
    "http://accb.table.localhost:8000/T",
    "https://ACCB.TABLE.core.windows.net:443/T",
    "http://accb-secondary.table.core.windows.net/T",
    "http://accb.table.core.windows.net./T",
    "http://127.0.0.1:10002/accb/T",
    "http://127.0.0.1:10002/accb-secondary/T",
    "http://127.0.0.1:10002/accb-secondary/accb/T",
    "http://127.0.0.1:10002//accb/T",
    "http://127.0.0.1:10002/%61ccb/T",
    "http://127.0.0.1:10002/ACCB/T",
    "http://127.0.0.1:10002/acca/../accb/T",
    "http://127.0.0.1:10002/acca/%2e%2e/accb/T",
    "http://127.0.0.1:10002/acca%2F..%2Faccb/T",
    "/accb/T",
    "/accb-secondary/T",
    "/accb-secondary/accb/T",
    "/%61ccb/T",
    "/ACCB/T",
    "/accb%2FT",
    "/acca/accb/T",
    "/acca/../accb/T",
    "/acca/%2E%2E/accb/T",
    "../accb/T",
    "accb/T",
    # Ambiguous hosts
    "http://acca.table.core.windows.net@accb.table.core.windows.net/T",
    "http://accb.table.core.windows.net@acca.table.core.windows.net/T",
    "http://acca.table.core.windows.net:80@accb.table.core.windows.net/T",
    "http://acca.table.core.windows.net%40accb.table.core.windows.net/T",
    "http://acca.table.core.windows.net\\@accb.table.core.windows.net/T",
    "http://acca.table.core.windows.net\\.accb.table.core.windows.net/T",
    "http://acca.table.core.windows.net:accb/T",
    "http://accb.table.core.windows.net?x=/acca/T",
    "http://accb.table.core.windows.net#/acca/T",
    "http:///acca/T",
    "http://acca.table.core.windows.net",
    "http:/accb.table.core.windows.net/T",
    "http:accb.table.core.windows.net/T",
    "ftp://accb.table.core.windows.net/T",
    # Without a scheme.
    "//accb.table.core.windows.net/T",
    "//accb/T",
    "//127.0.0.1:10002/accb/T",
    "///accb/T",
    "/\\accb.table.core.windows.net/T",
    "\\\\accb.table.core.windows.net/T",
]
"""URLs of another account, or of nowhere, in the batch of `acca`."""
