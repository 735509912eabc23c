"""The control API of a live server, and a DynamoDB table to try it on."""

from __future__ import annotations

from typing import Any

import requests

from tests.support.live_dynamodb import Live
from tests.support.waiting import PATIENCE_S


class Control:
    """The control API of a server."""

    def __init__(self, url: str, **headers: str) -> None:
        self._url = f"{url}/_tablegate"
        self._headers = headers

    def __call__(self, method: str, path: str, status: int = 200, **document: Any) -> Any:
        answer = requests.request(
            method, f"{self._url}{path}", json=document or None, headers=self._headers, timeout=PATIENCE_S
        )
        assert answer.status_code == status, answer.text
        return answer.json()


def make(live: Live, name: str, items: int = 3) -> None:
    """Create a table with this number of items. Their keys are "0", "1" and so on."""
    live.client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )
    for number in range(items):
        live.client.put_item(TableName=name, Item={"id": {"S": str(number)}, "at": {"N": "0"}})


def count(live: Live, name: str) -> int:
    """Return the number of items of a table."""
    return int(live.client.scan(TableName=name)["Count"])
