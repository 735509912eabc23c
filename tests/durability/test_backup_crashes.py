"""A server is killed during a backup and a restore.

Unfinished work is never reported as done, and the next server completes it.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.soak
@minutes_long
def test_fifty_kills(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "KILLS", 50)
    test_kills_during_backups_and_restores(tmp_path, database_url)
