"""Databases and files of earlier releases are read, as docs/explain/compatibility.md promises.

A release adds its own by `python -m tests.support.released_files`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
import zstandard

from tablegate.testing import Server
from tests.conftest import Serve
from tests.support.control import Control
from tests.support.filled import fill, state
from tests.support.released_files import (
    ACCESS_ID,
    DATABASE,
    FOLDER,
    ROWS,
    SECRET,
    SECRET_KEY,
    SNAPSHOT,
    TRACE,
    tablegate,
)
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.extended


@pytest.fixture(params=sorted(path.name for path in FOLDER.iterdir()))
def released(request: pytest.FixtureRequest) -> Path:
    """The folder of a release."""
    return FOLDER / str(request.param)


@pytest.fixture
def url(released: Path, tmp_path: Path) -> str:
    """A copy of its database."""
    path = tmp_path / "tablegate.sqlite"
    path.write_bytes(zstandard.decompress((released / DATABASE).read_bytes()))
    return f"sqlite:///{path}"


def test_rows_and_credentials_of_a_released_database_are_read_and_written(url: str) -> None:
    with Server(database=url, auth="strict", secret_key=SECRET_KEY) as server:
        key = {"aws_access_key_id": ACCESS_ID, "aws_secret_access_key": SECRET}
        client = server.dynamodb_client(**key)
        assert client.scan(TableName="people")["Count"] == 30
        new = {"id": {"S": "new"}, "at": {"N": "0"}, "city": {"S": "c1"}}
        client.put_item(TableName="people", Item=new)
        cities = {"TableName": "people", "IndexName": "by-city", "KeyConditionExpression": "city = :c"}
        found = client.query(**cities, ExpressionAttributeValues={":c": {"S": "c1"}})["Items"]
        assert (len(found), new in found) == (16, True)


def test_a_released_snapshot_has_the_state_of_the_released_database(
    released: Path, url: str, database_url: str, serve: Serve
) -> None:
    loaded = serve(database_url)
    address = f"{loaded.url}/_tablegate/snapshots/first/file"
    answer = requests.put(address, data=(released / SNAPSHOT).read_bytes(), timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    Control(loaded.url)("POST", "/snapshots/first/load")
    with Server(database=url, secret_key=SECRET_KEY) as server:
        assert state(loaded.url) == state(server.url)


def test_released_rows_and_traces_are_those_that_this_release_writes(
    released: Path, url: str, tmp_path: Path
) -> None:
    fresh = f"sqlite:///{tmp_path / 'fresh.sqlite'}"
    with Server(database=fresh) as server:
        fill(server.url)
        tablegate("replay", released / TRACE, "--against", server.url)
    tablegate("migrate", "--database", url)
    for table in ("people", "things"):  # the cells of Table Store have their times
        tablegate("verify", f"tablegate:{url}#{table}", f"tablegate:{fresh}#{table}")
    for name in ROWS:
        tablegate("verify", f"file:{released / name}", f"tablegate:{fresh}#people")
