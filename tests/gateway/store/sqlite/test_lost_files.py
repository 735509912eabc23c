"""A database file that is moved, removed or replaced under a server: 503 and not ready at the first failure, and no new file."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tablegate.gateway.control import health
from tablegate.gateway.http.messages import Request
from tests.adapters.azuretable.client import AzureRequests
from tests.adapters.dynamodb.client import DynamoDBService
from tests.support.clock import Clock

ITEM = {"TableName": "orders", "Item": {"pk": {"S": "a"}}}
NAME = "test.sqlite"


def move(folder: Path) -> None:
    (folder / NAME).rename(folder.parent / "elsewhere")


def move_with_its_log(folder: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        (folder / f"{NAME}{ending}").rename(folder.parent / f"elsewhere{ending}")


def remove(folder: Path) -> None:
    (folder / NAME).unlink()


def replace(folder: Path) -> None:
    shutil.copy(folder / NAME, folder.parent / "copy")
    os.replace(folder.parent / "copy", folder / NAME)


def replace_by_a_folder(folder: Path) -> None:
    move(folder)
    (folder / NAME).mkdir()


def move_the_folder(folder: Path) -> None:
    folder.rename(folder.parent / "away")


def remove_the_folder(folder: Path) -> None:
    shutil.rmtree(folder)


def replace_the_folder_by_a_file(folder: Path) -> None:
    move_the_folder(folder)
    folder.touch()


WAYS = (
    move, move_with_its_log, remove, replace, replace_by_a_folder, move_the_folder, remove_the_folder,
    replace_the_folder_by_a_file,
)  # fmt: skip


def by_another_connection(call: Callable[[], int]) -> int:
    """Return the result of a call on a new thread, which has connections of its own."""
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("lose", WAYS)
def test_the_first_failure_is_unavailable_and_not_ready(
    lose: Callable[[Path], None], sqlite_template: Path, tmp_path: Path
) -> None:
    for order in ("reads first", "writes first", "readiness first"):
        folder = tmp_path / order / "data"
        folder.mkdir(parents=True)
        shutil.copy(sqlite_template, folder / NAME)
        with DynamoDBService.opened(Clock(), database=f"sqlite:///{folder / NAME}") as service:
            service.table()
            assert service.call("PutItem", ITEM) == {}

            def status(operation: str, given: object, service: DynamoDBService = service) -> int:
                service.call(operation, given)
                return service.last.status

            def write(service: DynamoDBService = service) -> int:
                return status("PutItem", ITEM, service)

            def read(service: DynamoDBService = service) -> int:
                return status("Scan", {"TableName": "orders"}, service)

            def is_ready(service: DynamoDBService = service) -> int:
                reply = health.reply(service.gateway, Request("GET", "/readyz", (), b""))
                assert reply is not None
                return reply.status

            assert (write(), read(), is_ready()) == (200, 200, 200)
            lose(folder)
            if order == "readiness first":
                assert is_ready() == 503
            if order == "writes first":
                assert write() == 503
                assert is_ready() == 503
            assert by_another_connection(read) == 503, order
            assert is_ready() == 503
            assert (write(), by_another_connection(write), is_ready()) == (503, 503, 503)
            assert read() in (200, 503)  # from the file that was opened, in which all acknowledged writes are
            assert lose is replace or not (folder / NAME).is_file(), "a new, empty database was created"


def test_the_other_dialects_are_unavailable_too(sqlite_template: Path, tmp_path: Path) -> None:
    shutil.copy(sqlite_template, tmp_path / NAME)
    clock = Clock()
    with DynamoDBService.opened(clock, database=f"sqlite:///{tmp_path / NAME}") as service:
        from tablegate.adapters.azuretable import dialect as azuretable

        dialect, azure = azuretable.AzureTable(service.gateway), AzureRequests(clock)
        assert dialect.serve(azure.request("POST", "/Tables", {"TableName": "people"})).status == 201
        (tmp_path / NAME).unlink()
        assert dialect.serve(azure.request("POST", "/Tables", {"TableName": "others"})).status == 503


def test_a_full_disk_is_unavailable_and_not_ready_at_the_first_failure(
    sqlite_template: Path, tmp_path: Path
) -> None:
    large = {"pk": {"S": "a"}, "x": {"S": "x" * 300_000}}
    table = {
        "TableName": "more",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
        "Tags": [{"Key": f"{number}" * 60, "Value": "x" * 250} for number in range(10, 50)],
    }
    for operation, given in (
        ("PutItem", {"TableName": "orders", "Item": large}),
        ("BatchWriteItem", {"RequestItems": {"orders": [{"PutRequest": {"Item": large}}]}}),
        ("TransactWriteItems", {"TransactItems": [{"Put": {"TableName": "orders", "Item": large}}]}),
        ("CreateTable", table),
    ):
        shutil.copy(sqlite_template, tmp_path / operation)
        with DynamoDBService.opened(Clock(), database=f"sqlite:///{tmp_path / operation}") as service:
            service.table()
            with service.gateway.engine._store.write() as session:
                session.query("PRAGMA max_page_count = 1")  # as many as there are
            for _ in range(2):
                service.call(operation, given)
                assert service.last.status == 503, (operation, service.last)
                reply = health.reply(service.gateway, Request("GET", "/readyz", (), b""))
                assert reply is not None
                assert reply.status == 503, operation
