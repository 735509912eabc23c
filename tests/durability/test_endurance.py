"""Mixed load of the three dialects with kills, backups, restores, changes of indexes and grants, and clock jumps.

`make soak` runs it for a minute on each database. `make endurance` takes an hour on each, with failovers of PostgreSQL.
The samples go to the folder TABLEGATE_TEST_ARTEFACTS. `python -m benchmarks.endurance` draws them.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from botocore.exceptions import ClientError

from tests.durability.test_failover import both, synchronous_standby
from tests.support.endurance import (
    AzureTable,
    DynamoDB,
    NoAnswer,
    Sample,
    Sdk,
    TableStore,
    Worker,
    dynamodb_client,
    growths,
    percentiles_ms,
)
from tests.support.running import ROOT, Process, free_port
from tests.support.soak import minutes_long
from tests.support.standby import start_cluster
from tests.support.waiting import PATIENCE_S, wait_until

SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "0"))
IS_MEASURED = SECONDS >= 300
"""True if the run is long enough to compare its thirds."""
WORKERS_OF_EACH = 2
SECRET, TOKEN = "a secret of forty characters, or nearly so", "the token of the administrator"
AZURE_KEY = base64.b64encode(SECRET.encode()).decode()
CREDENTIALS = (("KEY", "aws", SECRET, True), ("mixedaccount", "azure", AZURE_KEY, True),
               ("OTS", "tablestore", SECRET, True), ("LIMITED", "aws", SECRET, False))  # fmt: skip


class Endurance:
    """One server process that is killed and started again on its port, its load, and the faults."""

    def __init__(self, folder: Path, database_url: str, disk_bytes: Callable[[], int]) -> None:
        self.folder, self.database_url, self._disk_bytes = folder, database_url, disk_bytes
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.samples: list[Sample] = []
        self.faults: list[str] = []
        self._began = time.monotonic()
        self._number = 0
        self._run("migrate")
        for access_id, scheme, secret, is_full in CREDENTIALS:
            flags = ("--all",) if is_full else ()
            self._run("credentials", "add", access_id, "--scheme", scheme, "--secret", secret, *flags)
        self.start()
        self.dynamodb = DynamoDB(self.url, "KEY", SECRET)
        sdks = [
            self.dynamodb,
            AzureTable(self.url, "mixedaccount", AZURE_KEY),
            TableStore(self.url, "OTS", SECRET),
        ]
        for sdk in sdks:
            sdk.create()
        self.workers = [
            Worker(sdk, f"{type(sdk).__name__}{at}") for sdk in sdks for at in range(WORKERS_OF_EACH)
        ]
        for worker in self.workers:
            worker.start()

    def _environment(self) -> dict[str, str]:
        return {"TABLEGATE_DATABASE": self.database_url, "TABLEGATE_SECRET_KEY": "a key that is long enough"}

    def start(self) -> None:
        self.server = Process(
            self.folder, "--port", str(self.port), "--auth", "strict", "--credentials-period", "0.1",
            "--admin-token", TOKEN, "--failover-seconds", "30", environment=self._environment(),
        )  # fmt: skip
        self.server.wait_until_ready()

    def _run(self, *words: str) -> str:
        """Run a command beside the server."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TABLEGATE_")}
        done = subprocess.run(
            [sys.executable, "-m", "tablegate", *words], cwd=self.folder, text=True, capture_output=True,
            env={**clean, "PYTHONPATH": str(ROOT), **self._environment()},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Between two requests of each worker."""
        with contextlib.ExitStack() as stack:
            for worker in self.workers:
                stack.enter_context(worker.pause)
            yield

    def at_work(self, number: int = 5) -> None:
        """Wait until each worker has had this many more answers."""
        before = [worker.answered for worker in self.workers]
        wait_until(
            lambda: all(
                worker.answered >= each + number or worker.error
                for worker, each in zip(self.workers, before, strict=True)
            )
        )
        for worker in self.workers:
            if worker.error is not None:
                raise worker.error

    def check(self) -> dict[str, int]:
        """Compare all tables with the model. Return the rows of DynamoDB's table."""
        with self.paused():
            rows = [(worker, worker.check_all()) for worker in self.workers]
        return {
            key: value for worker, each in rows if worker.sdk is self.dynamodb for key, value in each.items()
        }

    def sample(self) -> None:
        seconds: list[float] = []
        for worker in self.workers:
            taken, worker.seconds = worker.seconds, []
            seconds += taken
        status = Path(f"/proc/{self.server.pid}/smaps_rollup").read_text()
        memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("Rss:"))
        median_ms, slowest_ms = percentiles_ms(seconds)
        self.samples.append(
            Sample(
                round(time.monotonic() - self._began, 1), round(memory / 1000, 1),
                len(os.listdir(f"/proc/{self.server.pid}/fd")), round(self._disk_bytes() / 1e6, 1),
                round(median_ms, 2), round(slowest_ms, 2), len(seconds),
            )
        )  # fmt: skip

    # Faults

    def kill(self) -> None:
        self.server.kill()
        self.start()

    def backup(self) -> None:
        """A backup, taken between two requests, gives its rows back under load."""
        self._number += 1
        name = f"restored{self._number}"
        ask = self.dynamodb.call
        with self.paused():
            expected = {
                key: value
                for worker in self.workers
                if worker.sdk is self.dynamodb
                for key, value in worker.expected().items()
            }
            arn = ask("create_backup", TableName="mixed", BackupName=name)["BackupDetails"]["BackupArn"]
        wait_until(
            lambda: (
                ask("describe_backup", BackupArn=arn)["BackupDescription"]["BackupDetails"]["BackupStatus"]
                == "AVAILABLE"
            )
        )
        ask("restore_table_from_backup", TargetTableName=name, BackupArn=arn)
        wait_until(lambda: ask("describe_table", TableName=name)["Table"]["TableStatus"] == "ACTIVE")
        assert self.dynamodb.rows(name) == expected
        ask("delete_table", TableName=name)
        ask("delete_backup", BackupArn=arn)

    def index(self) -> None:
        """A new index has all rows."""
        ask, table = self.dynamodb.call, {"TableName": "mixed"}
        create = {"IndexName": "by_i", "KeySchema": [{"AttributeName": "i", "KeyType": "HASH"}],
                  "Projection": {"ProjectionType": "ALL"}}  # fmt: skip
        ask("update_table", **table, AttributeDefinitions=[{"AttributeName": "i", "AttributeType": "S"}],
            GlobalSecondaryIndexUpdates=[{"Create": create}])  # fmt: skip

        def states() -> list[str]:
            described = ask("describe_table", **table)["Table"]
            return [each["IndexStatus"] for each in described.get("GlobalSecondaryIndexes", ())]

        wait_until(lambda: states() == ["ACTIVE"])
        with self.paused():
            assert self.dynamodb.rows(IndexName="by_i") == self.dynamodb.rows()
        ask("update_table", **table, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by_i"}}])
        wait_until(lambda: states() == [])

    def grants(self) -> None:
        """A grant opens a table to a credential, and its removal closes it."""
        client = dynamodb_client(self.url, "LIMITED", SECRET)

        def is_open() -> bool:
            try:
                client.scan(TableName="mixed", Limit=1)
            except ClientError as error:
                assert error.response["Error"]["Code"] == "AccessDeniedException", error
                return False
            return True

        assert not is_open()
        number = self._run("grants", "add", "LIMITED", "--read-only", "mixed").split()[0]
        wait_until(is_open)
        self._run("grants", "remove", number)
        wait_until(lambda: not is_open())

    def clock(self) -> None:
        """The server's clock goes an hour ahead. After the next kill it is an hour behind."""
        reply = requests.post(f"{self.url}/_tablegate/clock/advance", json={"seconds": 3600}, timeout=PATIENCE_S,
                              headers={"Authorization": f"Bearer {TOKEN}"})  # fmt: skip
        assert reply.status_code == 200, reply.text

    def run(self, seconds: float, *faults: Callable[[], None]) -> None:
        """Repeat all faults in a random order, each under load and followed by a comparison with the model."""
        chance = random.Random(1)
        end = time.monotonic() + seconds
        while not self.faults or time.monotonic() < end:
            for fault in chance.sample(faults, len(faults)):
                self.at_work()
                fault()
                self.faults.append(fault.__name__)
                self.at_work()
                self.check()
                self.sample()
                # Between faults the server is used for a while, so that an hour has some hundreds of faults.
                pause = time.monotonic() + seconds / 400
                while time.monotonic() < pause:
                    self.at_work()
        self.stop_workers()
        self.check()

    def write_report(self, name: str) -> None:
        """Keep the samples, if a folder is set."""
        folder = os.environ.get("TABLEGATE_TEST_ARTEFACTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            report = {
                "database": name, "faults": {each: self.faults.count(each) for each in sorted({*self.faults})},
                "answered": sum(worker.answered for worker in self.workers),
                "unanswered": sum(worker.unanswered for worker in self.workers),
                "samples": [sample._asdict() for sample in self.samples],
            }  # fmt: skip
            (Path(folder) / f"endurance-{name}.json").write_text(json.dumps(report, indent=1))

    def stop_workers(self) -> None:
        for worker in self.workers:
            worker.request_stop()
        for worker in self.workers:
            worker.join()

    def close(self) -> None:
        self.server.kill()
        self.stop_workers()


def endure(load: Endurance, name: str, *more: Callable[[], None]) -> None:
    """Run all faults for SECONDS, at least once each, and compare the thirds of a long run."""
    try:
        load.run(SECONDS, load.kill, load.backup, load.index, load.grants, load.clock, *more)
        assert all(worker.answered for worker in load.workers)
        assert growths(load.samples) == {} or not IS_MEASURED
    finally:
        load.write_report(name)
        load.close()


class Memory(Sdk):
    """A table in memory that loses each write that it is told to lose."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.is_lossy = self.is_silent = False

    def put(self, key: str, value: int) -> None:
        if not self.is_lossy:
            self.values[key] = value
        if self.is_silent:
            raise NoAnswer

    def get(self, key: str) -> int | None:
        return self.values.get(key)

    def rows(self) -> dict[str, int]:
        return self.values


@pytest.mark.parametrize("is_lossy", [False, True])
def test_the_model_takes_only_writes_without_an_answer_for_uncertain(is_lossy: bool) -> None:
    table = Memory()
    worker = Worker(table, "w")
    worker.write("w-000", 1)
    table.is_lossy, table.is_silent = is_lossy, True
    with pytest.raises(NoAnswer):
        worker.write("w-000", 2)
    assert worker.check_all() == {"w-000": 1 if is_lossy else 2}
    table.is_lossy, table.is_silent = True, False
    worker.write("w-000", 3)
    with pytest.raises(AssertionError):
        worker.check_all()
    with pytest.raises(AssertionError):
        worker.read("w-000")


def test_only_growth_beyond_its_bound_is_growth() -> None:
    flat = [Sample(at, 100.0, 30, 10.0, 5.0, 9.0, 100) for at in range(30)]
    assert growths(flat) == {}
    within, beyond = ([each._replace(memory_mb=mb) for each in flat[:10]] for mb in (135.0, 135.1))
    assert growths(flat[:20] + within) == {}
    assert growths(flat[:20] + beyond) == {"memory_mb": (100.0, 135.1)}


@pytest.mark.soak
@minutes_long
def test_mixed_load_with_faults_on_sqlite(tmp_path: Path) -> None:
    def disk_bytes() -> int:
        return sum(path.stat().st_size for path in tmp_path.glob("tablegate.sqlite*"))

    endure(Endurance(tmp_path, f"sqlite:///{tmp_path}/tablegate.sqlite", disk_bytes), "sqlite")


@pytest.mark.soak
@minutes_long
def test_mixed_load_with_faults_and_failovers_on_postgresql(tmp_path: Path) -> None:
    with start_cluster() as cluster:
        standby = synchronous_standby(cluster, cluster.primary)

        def disk_bytes() -> int:
            return int(cluster.primary.ask("SELECT pg_database_size(current_database())"))

        load = Endurance(tmp_path, both(cluster.primary, standby), disk_bytes)

        def fail_over() -> None:
            nonlocal standby
            dead, primary = cluster.primary, standby
            dead.kill()
            primary.ask("SELECT pg_promote()")
            load.at_work()
            shutil.rmtree(dead.folder)
            standby = synchronous_standby(cluster, primary, port=dead.port)

        endure(load, "postgresql", fail_over)
