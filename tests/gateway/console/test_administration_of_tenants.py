"""With separate namespaces a key administers the tables and backups of its own account only."""

from __future__ import annotations

from html import unescape

import pytest

from tests.conftest import Serve
from tests.gateway.console.test_console import Console
from tests.support.running import OWN_CREDENTIALS, Running
from tests.tenants.conftest import CREDENTIALS, SETTINGS, secret_of

THEIRS, OWN = "aws/111111111111/eu-central-1", "aws/222222222222/us-east-1"
TABLE = {
    "dialect": "dynamodb", "form": "create", "name": "made", "partition": "p", "partition_type": "S", "sort_type": "S",
    "billing": "PAY_PER_REQUEST",
}  # fmt: skip


@pytest.fixture
def server(serve: Serve, database_url: str) -> Running:
    running = serve(database_url, **SETTINGS, **OWN_CREDENTIALS, admin_token="the token", console_writes=True)
    running.app.extensions["tablegate"].gateway.credentials.replace(CREDENTIALS)
    return running


def signed_in(server: Running, access_id: str, secret: str) -> Console:
    console = Console(server.url)
    console.sign_in(access_id, secret)
    return console


def test_a_key_administers_its_own_account_only(server: Running) -> None:
    administrator = signed_in(server, "administrator", "the token")
    administrator.post("/tables/create", namespace=THEIRS, **TABLE)
    console = signed_in(server, "thief", secret_of("thief"))
    page = console.get("/tables/new")
    assert f'value="{OWN}"' in page and "Table Store" not in page
    page = unescape(console.post("/tables/create", 400, namespace=THEIRS, **TABLE))
    assert 'id="namespace-error"' in page and f'value="{THEIRS}"' in page
    for wrong in (
        "",
        "shared",
        "aws/222222222222",
        "aws/222222222222/a/b",
        "snapshot/1/x",
        "aws/222222222222/",
    ):
        console.post("/tables/create", 400, namespace=wrong, **TABLE)
    console.post("/tables/create", namespace=OWN, **TABLE)
    assert "made" in console.get("/settings", namespace=OWN, name="made")
    change = {"name": "made", "dialect": "dynamodb"}
    absent = console.get("/settings", 404, namespace=THEIRS, name="absent")
    assert absent.replace("absent", "made") == console.get("/settings", 404, namespace=THEIRS, name="made")
    console.post("/settings/change", 404, namespace=THEIRS, form="delete", typed="made", **change)
    console.post("/settings/change", 404, namespace=THEIRS, form="backup_new", backup="one", **change)
    console.get("/backups", 400, namespace=THEIRS)
    console.post("/settings/change", namespace=OWN, form="backup_new", backup="one", **change)
    assert "one" in console.get("/backups", namespace=OWN)
    assert "made" in settings_of(administrator, THEIRS)
    console.post("/settings/change", namespace=OWN, form="delete", typed="made", **change)
    console.get("/settings", 404, namespace=OWN, name="made")
    assert "made" in settings_of(administrator, THEIRS)


def settings_of(console: Console, namespace: str) -> str:
    return unescape(console.get("/settings", namespace=namespace, name="made", dialect="dynamodb"))
