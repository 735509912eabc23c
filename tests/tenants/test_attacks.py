"""Two tenants attack each other over the wire with every identifier that either has seen. No data leaks.

They use the SDKs of all three dialects and the console at once, in one thread for each side, so that requests of both
share a tick. There are two forms: separate namespaces, and one shared namespace in which each side has grants on tables
with its own name prefix. The run takes seconds. `make soak` sets a longer time.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL, WrittenGrant, written_of
from tablegate.gateway.wiring import connect, open_store
from tests.support.running import start
from tests.tenants.attacks.azure_requests import Azure, key_of
from tests.tenants.attacks.console_requests import Console
from tests.tenants.attacks.dynamodb_requests import DynamoDB
from tests.tenants.attacks.sides import Side
from tests.tenants.attacks.tablestore_requests import TableStore

SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "2"))
SEED = int(os.environ.get("TABLEGATE_TEST_SEED", "18"))
NAMES = ("aaron", "bertha")
ACCOUNTS = {"aaron": "111111111111", "bertha": "222222222222"}
EVERYBODY = "000000000000"
LISTS = ("ListTables", "ListStreams", "ListBackups", "ListExports", "ListImports", "DescribeLimits")
STRICT = {"auth": "strict", "secret_key": "what encrypts the secrets of these tenants"}


@pytest.fixture(autouse=True)
def untouched() -> None:
    """These tenants have a server of their own, in which both work."""


def own_tables(name: str) -> WrittenGrant:
    """Return a policy for all operations on tables with this prefix, and for the lists of all tables."""
    return written_of(
        {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Action": "dynamodb:*",
                    "Resource": f"arn:aws:dynamodb:*:*:table/{name}*",
                },
                {"Effect": "Allow", "Action": [f"dynamodb:{each}" for each in LISTS], "Resource": "*"},
            ],
        }
    )


class War:
    """The two sides and their clients."""

    def __init__(self, url: str, is_separate: bool) -> None:
        self.is_separate = is_separate
        self.sides = [
            Side(
                url, name, ACCOUNTS[name] if is_separate else EVERYBODY, name if is_separate else "inst",
                random.Random(f"{SEED} {name}"), f"secret{random.Random(name).getrandbits(64):x}",
            )
            for name in NAMES
        ]  # fmt: skip
        self.sides[0].other, self.sides[1].other = self.sides[1], self.sides[0]
        self.dialects: dict[str, list[Any]] = {
            side.name: [
                DynamoDB(side, side.name if is_separate else ""),
                Azure(side),
                TableStore(side),
                Console(side),
            ]
            for side in self.sides
        }
        self.errors: list[str] = []

    def furnish(self) -> None:
        """Create the data of each side. In a shared namespace, all dialects share one dialect's tables."""
        for side in self.sides:
            for dialect in self.dialects[side.name]:
                if self.is_separate or isinstance(dialect, DynamoDB):
                    dialect.furnish()

    def fingerprints(self, side: Side) -> list[Any]:
        """Return all data that the other side could have changed."""
        return [dialect.fingerprint() for dialect in self.dialects[side.name]
                if self.is_separate or isinstance(dialect, DynamoDB)]  # fmt: skip

    def fight(self, seconds: float) -> None:
        """Both at once, for so long."""
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=self._fight, args=(side, until)) for side in self.sides]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _fight(self, side: Side, until: float) -> None:
        dialects = self.dialects[side.name]
        try:
            while time.monotonic() < until and not side.crossings:
                dialect = side.chance.choice(dialects)
                (dialect.work if side.chance.random() < 0.3 else dialect.attack)()
        except Exception:
            self.errors.append(f"{side.name} {side.doing}: {traceback.format_exc()}")
        for dialect in dialects:
            if isinstance(dialect, TableStore):
                dialect.take_back()


@pytest.fixture(params=["separate", "shared"])
def war(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> Iterator[War]:
    is_separate = request.param == "separate"
    given: dict[str, Any] = {**STRICT, "namespaces": request.param, "console_writes": True}
    if is_separate:
        given |= {
            "s3_folder": str(tmp_path / "objects"),
            "s3_bucket": tuple(f"{account}/{name}" for name, account in ACCOUNTS.items()),
        }
    for name in NAMES:
        (tmp_path / "objects" / name).mkdir(parents=True)
    settings = load({"database": database_url, **given}, {})
    opened = open_store(settings, connect(settings))
    for name in NAMES:
        granted = [ALL] if is_separate else [own_tables(name)]
        place, instance = (ACCOUNTS[name], name) if is_separate else ("", "")
        secret = (name + " secret",)
        for credential in (
            Credential(Scheme.AWS, name, secret, *([place] if place else [])),
            Credential(Scheme.AZURE, name, (key_of(name), key_of(name + "2"))),
            Credential(Scheme.TABLESTORE, name, secret, *([instance] if instance else [])),
        ):
            opened.credential_store.add(credential, granted)
    opened.close()
    logging.getLogger("tablestore-client").setLevel(logging.CRITICAL)  # it tells each refusal as an error
    server = start(database_url, background_cpu_share=1.0, **given)
    try:
        made = War(server.url, is_separate)
        made.furnish()
        yield made
    finally:
        server.stop()


@pytest.mark.soak
def test_no_data_cross_between_tenants(war: War) -> None:
    before = [war.fingerprints(side) for side in war.sides]
    war.fight(SECONDS)
    assert not war.errors, "\n".join(war.errors)
    for side in war.sides:
        assert not side.crossings, "\n".join(side.crossings)
    assert [war.fingerprints(side) for side in war.sides] == before
    for side in war.sides:
        print(side.name, sum(side.results.values()), dict(side.results.most_common()))
        print(side.bag.counts())
