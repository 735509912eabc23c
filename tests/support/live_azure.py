"""The official SDK in front of a live server, and raw signed requests, for tests of the Table service."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any

import requests
from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableClient, TableServiceClient

from tests.adapters.azuretable.client import ACCOUNT, DEV_KEY, KEY, sign
from tests.support.waiting import PATIENCE_S


@dataclass
class LiveAzure:
    """The development account of a server at `url`. `new_table` gives each test separate tables."""

    url: str
    _names: Any = field(default_factory=lambda: (f"table{number}" for number in itertools.count()))

    @property
    def endpoint(self) -> str:
        return f"{self.url}/{ACCOUNT}"

    @property
    def service(self) -> TableServiceClient:
        """A client that tries once: an error that only shows at the first try is an error."""
        return TableServiceClient(
            self.endpoint, credential=AzureNamedKeyCredential(ACCOUNT, DEV_KEY), retry_total=0
        )

    def new_table(self) -> TableClient:
        return self.service.create_table(next(self._names))

    def send(
        self,
        method: str,
        path: str,
        json: Any = None,
        headers: Mapping[str, str] | None = None,
        data: bytes = b"",
    ) -> requests.Response:
        """Send a signed request without changing it. A header with the value "" is omitted."""
        sent = {
            "x-ms-date": formatdate(usegmt=True),
            "x-ms-version": "2019-02-02",
            "Accept": "application/json",
        }
        sent |= headers or {}
        prepared = requests.Request(method, self.endpoint, json=json, data=data).prepare()
        prepared.url = self.endpoint + path
        sent.setdefault("Content-Type", str(prepared.headers.get("Content-Type", "")))
        if "Authorization" not in sent:
            sent["Authorization"] = sign(KEY, method, f"/{ACCOUNT}{path}", sent)
        prepared.headers.update({name: value for name, value in sent.items() if value})
        with requests.Session() as session:
            return session.send(prepared, timeout=PATIENCE_S)
