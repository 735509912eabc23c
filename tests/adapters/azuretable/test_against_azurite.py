"""Random requests to this server and to Azurite: their answers agree.

Azurite is not the service. The table KNOWN has its differences, each with the public source of our answer.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import urllib3
from hypothesis import given

from tests.adapters.azuretable.client import ACCOUNT, KEY, query_string, sign
from tests.adapters.azuretable.random_requests import quoted, requests
from tests.support.differential import Answer, Asked, Known, both_servers, compare, many
from tests.support.examples import examples
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.clients

_METHODS = {
    "Insert": "POST",
    "Replace": "PUT",
    "Merge": "MERGE",
    "Delete": "DELETE",
    "Get": "GET",
    "Query": "GET",
}
_RAW = "'"  # Azurite takes %27 around a key as a part of the key, and keys by their order
_OF_THE_SERVER = {"odata.etag", "Timestamp"}


def _metadata(asked: Asked, here: Answer, there: Answer) -> bool:
    """All else agrees."""
    return _entities(here) == _entities(there)


def _null(asked: Asked, here: Answer, there: Answer) -> bool:
    return "select" in asked[1] and _without_null(_entities(here)) == _without_null(_entities(there))


def _entities(answer: Answer) -> Any:
    """Return the status, and the body without `odata.metadata`."""
    pages = answer.body if isinstance(answer.body, list) else [answer.body]
    return answer.status, [{**(page or {}), "odata.metadata": ""} for page in pages]


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_null(member) for name, member in value.items() if member is not None}
    return [_without_null(member) for member in value] if isinstance(value, list | tuple) else value


def _filter_has(pattern: str) -> Callable[[Asked, Answer, Answer], bool]:
    return lambda asked, here, there: re.search(pattern, asked[1].get("filter", "")) is not None


KNOWN = [
    Known("odata.metadata", "docs/protocols/azure-table.md, rule 5.4, and OData 3.0 JSON format", _metadata),
    Known("a selected property that an entity lacks is null", "Azure/Azurite issue 2535", _null),
    Known(
        "a constant is a condition", "Azure/Azurite issues 1573 and 1880", _filter_has(r"(^|\()(true|false)")
    ),
    Known(
        "bytes are ordered by their values, not by their base64",
        "docs/protocols/azure-table.md, rule 8.4",
        _filter_has(r"\bx [gl][te]\b|\b[gl][te] x\b"),
    ),
    Known(
        "booleans have no order",
        "REST, querying-tables-and-entities, 'Filtering on Boolean Properties': equality alone",
        _filter_has(r"\b(b|true|false) [gl][te]\b"),
    ),
]


class Server:
    """A server of the Table service, without the differences between two servers that mean nothing."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool = urllib3.PoolManager()

    def send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        """Send one signed request."""
        sent = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2019-02-02", **headers}
        if body is not None:
            sent["Content-Type"] = "application/json"
        target = f"/{ACCOUNT}{path}"
        sent["Authorization"] = sign(KEY, method, target, sent)
        content = None if body is None else json.dumps(body).encode()
        return self._pool.request(
            method, self._url + target, body=content, headers=sent, timeout=PATIENCE_S, retries=False
        )

    def create(self, name: str) -> None:
        reply = self.send("POST", "/Tables", {"TableName": name}, {"Accept": "application/json"})
        assert reply.status == 201, (reply.status, reply.data)

    def delete(self, name: str) -> None:
        self.send("DELETE", f"/Tables('{name}')", None, {})

    def ask(self, table: str, asked: Asked) -> Answer:
        """Send a request, and follow the pages of a query."""
        operation, given = asked
        headers = {"Accept": f"application/json;odata={given.get('level', 'minimalmetadata')}"}
        if "If-Match" in given:
            headers["If-Match"] = given["If-Match"]
        place = ""
        if "key" in given:
            place = "({})".format(
                ",".join(
                    f"{name}={quote(quoted(text), safe=_RAW)}" for name, text in sorted(given["key"].items())
                )
            )
        elif operation == "Query":
            place = "()"
        options = {name: str(given[name]) for name in ("filter", "select", "top") if name in given}
        pages: list[Any] = []
        while True:
            path = f"/{table}{place}{query_string(options)}"
            reply = self.send(_METHODS[operation], path, given.get("entity"), headers)
            if reply.status >= 400 or operation != "Query":
                return self._answer(reply)
            pages.append(self._plain(reply))
            following = {
                name: reply.headers.get(f"x-ms-continuation-{name}")
                for name in ("NextPartitionKey", "NextRowKey")
            }
            if not following["NextPartitionKey"]:
                # An empty page may have a token, and a token may lead to an empty page (docs/protocols/azure-table.md 8.7).
                return Answer(200, "", "", [page for page in pages if page["value"]])
            options |= {name: token for name, token in following.items() if token}

    def _answer(self, reply: urllib3.BaseHTTPResponse) -> Answer:
        if reply.status < 400:
            return Answer(reply.status, "", "", self._plain(reply))
        if not reply.data.startswith(b"{"):
            return Answer(reply.status, "", reply.data.decode(), None)
        error = reply.json()["odata.error"]
        return Answer(
            reply.status, error["code"], error["message"]["value"].partition("\nRequestId")[0], None
        )

    def _plain(self, reply: urllib3.BaseHTTPResponse) -> Any:
        return (
            plain(json.loads(reply.data.replace(self._url.encode(), b"http://host"))) if reply.data else None
        )


def plain(value: Any) -> Any:
    """Return an answer without what the server chooses."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items() if name not in _OF_THE_SERVER}
    return [plain(member) for member in value] if isinstance(value, list) else value


SERVERS = ("azurite", {"dialects": "azuretable"})


@pytest.fixture(scope="module")
def servers(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    """This server and Azurite."""
    name, settings = SERVERS
    with both_servers(name, tmp_path_factory.mktemp(name), sqlite_template, **settings) as urls:
        yield [Server(url) for url in urls]


_NUMBERS = itertools.count()
scenarios = many(requests())


@examples(40)
@given(sent=scenarios)
def test_random_requests_are_answered_as_azurite_answers_them(servers, sent):
    name = f"random{next(_NUMBERS)}"
    for server in servers:
        server.create(name)
    ours, theirs = servers
    compare(sent, partial(ours.ask, name), partial(theirs.ask, name), KNOWN)
    for server in servers:
        server.delete(name)
