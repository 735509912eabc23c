"""A server is killed during a backup and a restore.

Unfinished work is never reported as done, and the next server completes it.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from tablegate.transfer.endpoints.files.json_lines import JsonLines
from tests.support.raw_client import RawClient
from tests.support.running import Process
from tests.support.soak import minutes_long
from tests.support.waiting import wait_at_random, wait_until

pytestmark = pytest.mark.extended

KILLS = int(os.environ.get("TABLEGATE_TEST_BACKUP_KILLS", "2"))
ITEMS = 1_500


def put_all(client: RawClient, kind: str, request: Any) -> None:
    for first in range(0, ITEMS, 25):
        wanted = [{f"{kind}Request": request(number)} for number in range(first, first + 25)]
        client.call("BatchWriteItem", RequestItems={"things": wanted})


def is_active(client: RawClient, name: str) -> bool:
    return client.call("DescribeTable", TableName=name)["Table"]["TableStatus"] == "ACTIVE"


def is_available(client: RawClient, arn: str) -> bool:
    shown = client.call("DescribeBackup", BackupArn=arn)["BackupDescription"]
    return bool(shown["BackupDetails"]["BackupStatus"] == "AVAILABLE")


def count(client: RawClient, name: str) -> int:
    total, more = 0, {}
    while True:
        page = client.call("Scan", TableName=name, Select="COUNT", **more)
        total += page["Count"]
        if "LastEvaluatedKey" not in page:
            return total
        more = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def test_kills_during_backups_and_restores(tmp_path: Path, database_url: str) -> None:
    chance = random.Random(1)

    def begin() -> Process:
        process = Process(tmp_path, "--database", database_url, "--dialects", "dynamodb")
        process.wait_until_ready()
        return process

    server = begin()
    try:
        with RawClient(server.url) as client:
            client.create_table("things")
            client.call(
                "UpdateContinuousBackups",
                TableName="things",
                PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
            )
            put_all(client, "Put", lambda n: {"Item": {"p": {"S": f"{n}"}, "x": {"S": "x" * 300}}})
        for round_ in range(KILLS):
            with RawClient(server.url) as client:
                backup = client.call("CreateBackup", TableName="things", BackupName="one")["BackupDetails"]
                client.call(
                    "RestoreTableToPointInTime",
                    SourceTableName="things",
                    TargetTableName=f"again{round_}",
                    UseLatestRestorableTime=True,
                )
                client.call("DeleteItem", TableName="things", Key={"p": {"S": f"{round_}"}})
            wait_at_random(chance, 0.15)
            server.kill()
            server = begin()
            arn = backup["BackupArn"]
            with RawClient(server.url) as client:
                wait_until(lambda client=client, name=f"again{round_}": is_active(client, name))  # type: ignore[misc]
                assert count(client, f"again{round_}") == ITEMS - round_
                wait_until(lambda client=client, arn=arn: is_available(client, arn))  # type: ignore[misc]
                client.call("RestoreTableFromBackup", BackupArn=arn, TargetTableName=f"saved{round_}")
                wait_until(lambda client=client, name=f"saved{round_}": is_active(client, name))  # type: ignore[misc]
                assert count(client, f"saved{round_}") == ITEMS - round_
    finally:
        if server.is_running:
            server.kill()


class Restarted:
    """A server with a directory of backups, killed and begun anew."""

    def __init__(self, folder: Path, database_url: str) -> None:
        self.directory = folder / "backups"
        self.directory.mkdir()
        self._begin = lambda: Process(
            folder, "--database", database_url, "--dialects", "dynamodb",
            "--background-cpu-share", "1", "--backup-directory", str(self.directory),
        )  # fmt: skip
        self.process = self._begin()
        self.process.wait_until_ready()

    def kill(self) -> None:
        self.process.kill()
        self.process = self._begin()
        self.process.wait_until_ready()

    def call(self, operation: str, **given: Any) -> dict[str, Any]:
        with RawClient(self.process.url) as client:
            return client.call(operation, **given)

    def names(self) -> list[str]:
        return sorted(os.listdir(self.directory))


def rows_of(path: Path) -> int:
    """Return the number of rows in a file and verify their checksums."""
    file = JsonLines(path)
    assert file.describe().name == "things"
    return sum(len(page.rows) for page in file.scan(file.segments(1)[0]))


def test_kills_while_backups_are_files(tmp_path: Path, database_url: str) -> None:
    """Kills during each backup, each restore and some deletions.

    A file is complete or absent, never partial under its final name.
    """
    chance = random.Random(3)
    server = Restarted(tmp_path, database_url)
    try:
        with RawClient(server.process.url) as client:
            client.create_table("things")
            put_all(client, "Put", lambda n: {"Item": {"p": {"S": f"{n}"}, "x": {"S": "x" * 300}}})
        for round_ in range((KILLS + 1) // 2):
            backup = server.call("CreateBackup", TableName="things", BackupName="one")["BackupDetails"]
            arn = backup["BackupArn"]
            server.call("DeleteItem", TableName="things", Key={"p": {"S": f"{round_}"}})
            wait_at_random(chance, 0.5)
            server.kill()

            with RawClient(server.process.url) as client:
                wait_until(lambda client=client, arn=arn: is_available(client, arn))  # type: ignore[misc]
            if chance.random() < 0.7:  # else it is restored from wherever its rows are just then
                wait_until(lambda: [name.endswith(".zst") for name in server.names()] == [True])
            server.call("RestoreTableFromBackup", BackupArn=arn, TargetTableName=f"saved{round_}")
            wait_at_random(chance, 0.5)
            server.kill()
            with RawClient(server.process.url) as client:
                wait_until(lambda client=client, name=f"saved{round_}": is_active(client, name))  # type: ignore[misc]
                assert count(client, f"saved{round_}") == ITEMS - round_
                client.call("DeleteTable", TableName=f"saved{round_}")
            wait_until(lambda: [name.endswith(".zst") for name in server.names()] == [True])
            assert rows_of(server.directory / server.names()[0]) == ITEMS - round_
            server.call("DeleteBackup", BackupArn=arn)
            if round_ % 3 == 2:
                server.kill()
            wait_until(lambda: server.names() == [])
    finally:
        server.process.kill()


@pytest.mark.soak
@minutes_long
@pytest.mark.parametrize("in_files", [False, True])
def test_fifty_kills(
    tmp_path: Path, database_url: str, in_files: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "KILLS", 50)
    if in_files:
        test_kills_while_backups_are_files(tmp_path, database_url)
    else:
        test_kills_during_backups_and_restores(tmp_path, database_url)
