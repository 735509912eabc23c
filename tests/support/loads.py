"""Loads: work of one client process on a server for a limited time.

`python tests/support/loads.py NAME URL SECONDS SEED` prints what it observed as JSON when it ends. A load keeps records
and checks nothing. Tests compare the records with the tables: `things` (key p), `left` and `right` (key p).
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.raw_client import Lost, RawClient, Refused

ACCOUNTS = 6
OPENING_BALANCE = 100
Books = dict[str, Any]


def text(value: str) -> dict[str, str]:
    return {"S": value}


def number(value: int) -> dict[str, str]:
    return {"N": str(value)}


def open_accounts(client: RawClient) -> None:
    """Create the accounts that `transfer` and `watch` use."""
    for account in range(ACCOUNTS):
        client.call(
            "PutItem", TableName="things", Item={"p": text(f"a{account}"), "balance": number(OPENING_BALANCE)}
        )


def insert(client: RawClient, until: float, chance: random.Random, name: str) -> Books:
    """Try to be the first to insert each of many keys, in the same order as all other clients."""
    won: list[int] = []
    tried = 0
    while time.monotonic() < until:
        try:
            client.call(
                "PutItem",
                TableName="things",
                Item={"p": text(f"i{tried}"), "winner": text(name)},
                ConditionExpression="attribute_not_exists(p)",
            )
            won.append(tried)
        except Refused as refusal:
            if refusal.code != "ConditionalCheckFailedException":
                raise
        tried += 1
    return {"name": name, "won": won, "tried": tried}


def count(client: RawClient, until: float, chance: random.Random, name: str) -> Books:
    """Increment counters that others increment too, by single updates and in transactions."""
    done = 0
    while time.monotonic() < until:
        updates = [
            {
                "TableName": "things",
                "Key": {"p": text(f"c{counter}")},
                "UpdateExpression": "ADD n :one",
                "ExpressionAttributeValues": {":one": number(1)},
            }
            for counter in chance.sample(range(3), chance.choice((1, 1, 2)))
        ]
        if len(updates) == 1:
            answer = client.call("UpdateItem", ReturnValues="UPDATED_NEW", **updates[0])
            assert int(answer["Attributes"]["n"]["N"]) > 0
        else:
            client.call("TransactWriteItems", TransactItems=[{"Update": update} for update in updates])
        done += len(updates)
    return {"done": done}


def transfer(client: RawClient, until: float, chance: random.Random, name: str) -> Books:
    """Move money between accounts, never more than there is."""
    moved = refused = 0
    while time.monotonic() < until:
        source, target = chance.sample(range(ACCOUNTS), 2)
        amount = {":amount": number(chance.randint(1, 40))}
        take = {
            "TableName": "things",
            "Key": {"p": text(f"a{source}")},
            "UpdateExpression": "SET balance = balance - :amount",
            "ConditionExpression": "balance >= :amount",
            "ExpressionAttributeValues": amount,
        }
        give = {
            "TableName": "things",
            "Key": {"p": text(f"a{target}")},
            "UpdateExpression": "SET balance = balance + :amount",
            "ExpressionAttributeValues": amount,
        }
        try:
            client.call("TransactWriteItems", TransactItems=[{"Update": take}, {"Update": give}])
            moved += 1
        except Refused as refusal:
            if refusal.code != "TransactionCanceledException":
                raise
            refused += 1
    return {"moved": moved, "refused": refused}


def watch(client: RawClient, until: float, chance: random.Random, name: str) -> Books:
    """Read all accounts in one transaction, repeatedly. Returns the set of sums observed."""
    gets = [
        {"Get": {"TableName": "things", "Key": {"p": text(f"a{account}")}}} for account in range(ACCOUNTS)
    ]
    sums: set[int] = set()
    looks = 0
    while time.monotonic() < until:
        answer = client.call("TransactGetItems", TransactItems=gets)
        sums.add(sum(int(member["Item"]["balance"]["N"]) for member in answer["Responses"]))
        looks += 1
    return {"sums": sorted(sums), "looks": looks}


def fill(client: RawClient, until: float, chance: random.Random, name: str) -> Books:
    """Put, change and delete items with keys of this client only. Returns the expected items, color by key."""
    items: dict[str, str] = {}
    written = 0
    slowest = 0.0
    while time.monotonic() < until:
        key = f"{name}-{chance.randrange(200)}"
        color = chance.choice(("red", "green", "blue"))
        began = time.monotonic()
        if chance.random() < 0.2:
            client.call("DeleteItem", TableName="things", Key={"p": text(key)})
            items.pop(key, None)
        else:
            client.call("PutItem", TableName="things", Item={"p": text(key), "color": text(color)})
            items[key] = color
        slowest = max(slowest, time.monotonic() - began)
        written += 1
    return {"items": items, "written": written, "slowest": slowest}


def outlive(client: RawClient, until: float, chance: random.Random, name: str) -> Books:
    """Put new items while the table is dropped and created again.

    Returns (sent at, answered at, key) for each acknowledged item.
    """
    acknowledged: list[tuple[float, float, str]] = []
    missing = 0
    while time.monotonic() < until:
        key = f"{name}-{len(acknowledged) + missing}"
        asked = time.monotonic()
        try:
            client.call("PutItem", TableName="phoenix", Item={"p": text(key)})
            acknowledged.append((asked, time.monotonic(), key))
        except Refused as refusal:
            if refusal.code != "ResourceNotFoundException":
                raise
            missing += 1
    return {"acknowledged": acknowledged, "missing": missing}


def touch(client: RawClient, until: float, chance: random.Random, name: str) -> Books:
    """Write to hot keys and read. Returns the slowest response time and the refusals."""
    slowest = 0.0
    refusals: list[str] = []
    answered = 0
    while time.monotonic() < until:
        began = time.monotonic()
        pair = [
            {"Put": {"TableName": "things", "Item": {"p": text(f"h{each}"), "by": text(name)}}}
            for each in chance.sample(range(4), 2)
        ]
        try:
            client.call("TransactWriteItems", TransactItems=pair)
            client.call("GetItem", TableName="things", Key={"p": text("h0")})
            answered += 1
        except Refused as refusal:
            refusals.append(refusal.code)
        except Lost:
            refusals.append("lost")
            time.sleep(0.05)
        slowest = max(slowest, time.monotonic() - began)
    return {"slowest": slowest, "refusals": refusals, "answered": answered}


LOADS: dict[str, Callable[[RawClient, float, random.Random, str], Books]] = {
    load.__name__: load for load in (insert, count, transfer, watch, fill, outlive, touch)
}


class LoadProcess:
    """A load in a separate process."""

    def __init__(self, load: Callable[..., Books], url: str, seconds: float, seed: int = 0) -> None:
        command = [sys.executable, __file__, load.__name__, url, str(seconds), str(seed)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def books(self, timeout_seconds: float = 150) -> Books:
        """Wait for the load to end and return its records."""
        try:
            output, errors = self._process.communicate(timeout=timeout_seconds)
        finally:
            self._process.kill()
        assert self._process.returncode == 0, errors.decode()
        books: Books = json.loads(output)
        return books


def run_loads(works: list[tuple[Callable[..., Books], str]], seconds: float) -> list[Books]:
    """Run all (load, url) pairs concurrently and return their records in the same order."""
    started = [LoadProcess(load, url, seconds, seed) for seed, (load, url) in enumerate(works)]
    return [each.books() for each in started]


def main(name: str, url: str, seconds: str, seed: str) -> None:
    with RawClient(url) as client:
        books = LOADS[name](
            client, time.monotonic() + float(seconds), random.Random(int(seed)), f"{name}{seed}"
        )
    print(json.dumps(books))


if __name__ == "__main__":
    main(*sys.argv[1:])
