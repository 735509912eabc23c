"""A client that writes items to a table of DynamoDB while servers are killed or replaced."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any


def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


class ItemWriter(threading.Thread):
    """Writes one item after the other. Remembers what was acknowledged, and what failed."""

    def __init__(self, client: Any, table: str) -> None:
        super().__init__()
        self.client, self.table = client, table
        self.written: list[str] = []
        self.failures: list[BaseException] = []
        self.is_stopped = False
        client.create_table(
            TableName=table, BillingMode="PAY_PER_REQUEST", KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        )  # fmt: skip

    def run(self) -> None:
        while not self.is_stopped and not self.failures:
            key = f"k{len(self.written)}"
            try:
                self.client.put_item(TableName=self.table, Item={"k": {"S": key}})
                self.written.append(key)
            except BaseException as error:
                self.failures.append(error)

    def wait_for_more(self) -> None:
        """Wait until twenty more items have been written."""
        known = len(self.written)
        until(lambda: len(self.written) >= known + 20 or self.failures)
        assert self.failures == []

    def stop(self) -> None:
        """Stop, and check that each acknowledged item is there."""
        self.is_stopped = True
        self.join()
        assert self.failures == []
        [*pages] = self.client.get_paginator("scan").paginate(TableName=self.table, ConsistentRead=True)
        found = {item["k"]["S"] for page in pages for item in page["Items"]}
        assert {*self.written} - found == set()
