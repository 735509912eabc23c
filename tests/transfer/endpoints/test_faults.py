"""Services that are busy, lost or do not accept the caller: each endpoint continues, or ends with a clear message.

Sources of the answers: "Error handling with DynamoDB"; "Table service error codes"; "Error codes" of Table Store.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.transfer.endpoints import batching
from tablegate.transfer.endpoints.addresses import open_endpoint
from tablegate.transfer.endpoints.endpoint import Definition, Endpoint, Service
from tablegate.transfer.errors import AccessRefused, ServiceUnavailable, TransferError
from tests.conftest import Serve
from tests.support.running import Running, free_port
from tests.transfer.endpoints.conftest import OPENERS, open_azure, open_dynamodb, open_table_store
from tests.transfer.endpoints.faulty_proxy import Answer, Asked, Script, faulty_proxy
from tests.transfer.endpoints.places import SCHEMAS, key_of, numbered_rows, read_all

THROTTLED: dict[Service, Answer] = {
    Service.DYNAMODB: (
        400,
        [("Content-Type", "application/x-amz-json-1.0")],
        (
            b'{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",'
            b'"message":"The level of configured provisioned throughput for the table was exceeded."}'
        ),
    ),
    Service.AZURE_TABLE: (
        503,
        [("Content-Type", "application/json")],
        b'{"odata.error":{"code":"ServerBusy","message":{"lang":"en-US","value":"The server is busy.\\nRequestId:1"}}}',
    ),
    Service.TABLE_STORE: (
        503,
        [],
        messages.Error(code="OTSServerBusy", message="Server is busy.").SerializeToString(),
    ),
}
_NAMES = (f"faulty{number}" for number in itertools.count())


@pytest.fixture(autouse=True)
def short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests are about what happens after the rests."""
    monkeypatch.setattr(batching, "_FIRST_WAIT_S", 0.001)


@pytest.fixture(params=list(Service)[:3], ids=lambda service: service.value)
def service(request: pytest.FixtureRequest) -> Any:
    return request.param


def made(ours: Running, service: Service) -> str:
    name = next(_NAMES)
    OPENERS[service](ours.url, name).create(Definition(name, service, SCHEMAS[service]))
    return name


def all_work(endpoint: Endpoint, service: Service) -> None:
    """Write, read and delete, and see that it was done."""
    schema, rows = SCHEMAS[service], numbered_rows(service, 30)
    assert endpoint.write(rows) == []
    assert {row.position for row in read_all(endpoint, 2)} == {row.position for row in rows}
    assert all(endpoint.get([key_of(row, schema) for row in rows]))
    endpoint.delete([key_of(row, schema) for row in rows])
    assert read_all(endpoint) == []


def now_and_then(fault: Callable[[Asked], Answer | None]) -> Script:
    """Two faults before each request that goes well."""
    numbers = itertools.count(1)
    return lambda asked: asked.forward(asked.body) if next(numbers) % 3 == 0 else fault(asked)


def test_throttling_passes(ours: Running, service: Service) -> None:
    name = made(ours, service)
    with faulty_proxy(ours.url, now_and_then(lambda _: THROTTLED[service])) as url:
        all_work(OPENERS[service](url, name), service)


def test_lost_connections_are_made_again(ours: Running, service: Service) -> None:
    name = made(ours, service)
    with faulty_proxy(ours.url, now_and_then(lambda _: None)) as url:
        all_work(OPENERS[service](url, name), service)


def test_a_write_without_an_answer_is_repeated(ours: Running, service: Service) -> None:
    def lost(asked: Asked) -> None:
        asked.forward(asked.body)

    name = made(ours, service)
    with faulty_proxy(ours.url, now_and_then(lost)) as url:
        all_work(OPENERS[service](url, name), service)


@pytest.mark.extended
def test_patience_ends_with_the_service_s_own_reason(ours: Running, service: Service) -> None:
    name = made(ours, service)
    is_busy = False

    def script(asked: Asked) -> Answer:
        return THROTTLED[service] if is_busy else asked.forward(asked.body)

    with faulty_proxy(ours.url, script) as url:
        endpoint = OPENERS[service](url, name, 0.5)
        endpoint.describe()
        is_busy = True
        for work in (
            lambda: endpoint.write(numbered_rows(service, 60)),
            lambda: read_all(endpoint),
            endpoint.describe,
        ):
            with pytest.raises(ServiceUnavailable) as caught:
                work()
            text = str(caught.value)
            assert endpoint.shown in text and "tried for 0.5 seconds" in text
            assert any(word in text for word in ("throughput", "busy"))


def test_an_unreachable_server_is_reported(service: Service) -> None:
    endpoint = OPENERS[service](f"http://127.0.0.1:{free_port()}", "nowhere", 0.3)
    with pytest.raises(ServiceUnavailable, match="no reply"):
        endpoint.describe()


def test_some_items_of_a_batch_are_left_over(ours: Running) -> None:
    """UnprocessedItems and UnprocessedKeys come with status 200."""
    name = made(ours, Service.DYNAMODB)
    shares = itertools.count(1)

    def script(asked: Asked) -> Answer:
        request = json.loads(asked.body)
        if not asked.operation.startswith("Batch"):
            return asked.forward(asked.body)
        is_write = asked.operation == "BatchWriteItem"
        holder = request["RequestItems"] if is_write else request["RequestItems"][name]
        entries = holder[name] if is_write else holder["Keys"]
        done = next(shares) % 3 * len(entries) // 3  # nothing, a third, two thirds
        done = max(done, int(len(entries) == 1))
        left = entries[done:]
        status, headers, content = 200, [("Content-Type", "application/x-amz-json-1.0")], b"{}"
        if done:
            holder[name if is_write else "Keys"] = entries[:done]
            status, headers, content = asked.forward(json.dumps(request).encode())
        answer = json.loads(content)
        if left:
            answer["UnprocessedItems" if is_write else "UnprocessedKeys"] = {
                name: left if is_write else {"Keys": left}
            }
        kept = [(key, value) for key, value in headers if key.lower() != "x-amz-crc32"]
        return status, kept, json.dumps(answer).encode()

    with faulty_proxy(ours.url, script) as url:
        all_work(open_dynamodb(url, name), Service.DYNAMODB)


def test_a_busy_entity_makes_its_whole_batch_come_again(ours: Running) -> None:
    name = made(ours, Service.AZURE_TABLE)
    numbers = itertools.count(1)
    busy = THROTTLED[Service.AZURE_TABLE][2]

    def script(asked: Asked) -> Answer:
        if "$batch" not in asked.path or next(numbers) % 2 == 0:
            return asked.forward(asked.body)
        part = b"--b\r\nContent-Type: application/http\r\n\r\nHTTP/1.1 503 Service Unavailable\r\n\r\n" + busy
        return 202, [("Content-Type", "multipart/mixed; boundary=b")], part + b"\r\n--b--\r\n"

    with faulty_proxy(ours.url, script) as url:
        all_work(open_azure(url, name), Service.AZURE_TABLE)
    assert next(numbers) > 6


def test_busy_rows_of_a_batch_come_again(ours: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row of BatchWriteRow and BatchGetRow has its own is_ok. (The answer is signed, so it is changed behind the SDK.)"""
    endpoint = open_table_store(ours.url, made(ours, Service.TABLE_STORE))
    real = endpoint._client.call
    numbers = itertools.count()

    def call(operation: str, request: Any, answer: Any) -> Any:
        if not operation.startswith("Batch"):
            return real(operation, request, answer)
        [table] = request.tables
        rows = table.rows if operation == "BatchWriteRow" else table.primary_key
        is_busy = [next(numbers) % 3 == 0 for _ in rows]
        every = list(rows)
        del rows[:]
        rows.extend(row for row, busy in zip(every, is_busy, strict=True) if not busy)
        given = (
            real(operation, request, answer) if rows else answer(tables=[{"table_name": table.table_name}])
        )
        results = iter(list(given.tables[0].rows))
        del given.tables[0].rows[:]
        error = messages.Error(code="OTSServerBusy", message="busy")
        for busy in is_busy:
            if busy:
                given.tables[0].rows.add(is_ok=False, error=error)
            else:
                given.tables[0].rows.append(next(results))
        return given

    monkeypatch.setattr(endpoint._client, "call", call)
    all_work(endpoint, Service.TABLE_STORE)


SECRET = "aHVzaDMxNDE1OTI2NTM="


def test_refused_credentials_are_reported_and_never_shown(
    serve: Serve, sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: Service
) -> None:
    path = tmp_path / "strict.sqlite"
    path.write_bytes(sqlite_template.read_bytes())
    running = serve(f"sqlite:///{path}", auth="strict", secret_key="what encrypts")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SECRET)
    monkeypatch.setenv("AZURE_STORAGE_KEY", SECRET)
    monkeypatch.setenv("TABLESTORE_ACCESS_KEY_SECRET", SECRET)
    endpoint = OPENERS[service](running.url, "mine", 5)
    for work in (endpoint.describe, endpoint.list_tables, lambda: endpoint.write(numbered_rows(service, 2))):
        with pytest.raises(AccessRefused) as caught:
            work()
        assert endpoint.shown in str(caught.value)
        assert SECRET not in repr(caught.value)


def test_a_shared_access_signature_is_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """It travels in the URL, which the SDK's errors repeat."""
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", f"?sv=2019-02-02&tn=T&sig={SECRET}")
    endpoint = open_azure(f"http://127.0.0.1:{free_port()}", "Orders", 0.2)
    with pytest.raises(TransferError) as caught:
        endpoint.describe()
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in str(error) and "sig=" not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_a_refused_signature_s_canonical_request_is_not_repeated(ours: Running) -> None:
    """The service's error contains the signed text with all headers, including the session's token."""
    told = {
        "__type": "com.amazon.coral.service#InvalidSignatureException",
        "message": "The request signature we calculated does not match the signature you provided.\n\n"
        f"The Canonical String for this request should have been\nx-amz-security-token:{SECRET}",
    }
    refused = faulty_proxy(ours.url, lambda _: (400, [], json.dumps(told).encode()))
    with refused as url, pytest.raises(AccessRefused) as caught:
        open_dynamodb(url, "Orders").describe()
    assert "does not match" in str(caught.value) and SECRET not in str(caught.value)


def test_addresses_carry_no_secret_to_what_is_shown(ours: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    endpoint = open_endpoint(f"dynamodb://Orders?region=x&endpoint={ours.url}")
    assert SECRET not in endpoint.shown and SECRET not in repr(endpoint)
