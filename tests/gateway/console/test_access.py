"""Credentials, grants, quotas and rights in the console. They require the administrator's token, as in the control API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import boto3
import pytest
from botocore.exceptions import ClientError

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL
from tablegate.gateway.wiring import connect, open_store
from tests.gateway.console.test_console import Console
from tests.support.live_dynamodb import Live
from tests.support.running import Running, start
from tests.support.waiting import wait_until

SETTINGS = {
    "auth": "strict", "secret_key": "what encrypts the secrets", "console_writes": True, "admin_token": "the token",
    "credentials_period": 0.05,
}  # fmt: skip


@pytest.fixture
def server(database_url: str) -> Iterator[Running]:
    """A server with the table `songs` and two credentials: of its owner, and KEY without grants."""
    settings = load({"database": database_url, **SETTINGS}, {})
    opened = open_store(settings, connect(settings))
    opened.credential_store.add(Credential(Scheme.AWS, "anybody", ("any secret",)), [ALL])
    opened.credential_store.add(Credential(Scheme.AWS, "KEY", ("secret of KEY",)), [])
    opened.close()
    running = start(database_url, **SETTINGS)
    live = Live(running.url)
    live.create("p:S", name="songs")
    live.client.put_item(TableName="songs", Item={"p": {"S": "a"}})
    yield running
    running.stop()


@pytest.fixture
def administrator(server: Running) -> Console:
    console = Console(server.url)
    console.sign_in("administrator", "the token")
    return console


def may_read(server: Running, access_id: str, secret: str) -> bool:
    session = boto3.Session(access_id, secret, region_name="us-east-1")
    try:
        session.client("dynamodb", endpoint_url=server.url).get_item(TableName="songs", Key={"p": {"S": "a"}})
    except ClientError:
        return False
    return True


def test_a_credential_is_created_and_its_secret_is_shown_once(
    server: Running, administrator: Console
) -> None:
    form = {"form": "credential_new", "scheme": "aws", "access_id": "NEW", "place": "", "all": "yes"}
    page = unescape(administrator.post("/credentials/change", **form))
    [secret] = re.findall(r'<pre id="secret1"[^>]*>(.*?)</pre>', page)
    wait_until(lambda: may_read(server, "NEW", secret))
    page = administrator.get("/credentials")
    assert secret not in page and "NEW" in page
    again = administrator.post("/credentials/change", 400, **form)
    assert "NEW" in again and 'role="alert"' in again and 'value="NEW"' in again
    administrator.post("/credentials/change", form="credential_delete", scheme="aws", access_id="NEW")
    wait_until(lambda: not may_read(server, "NEW", secret))
    assert "NEW" not in administrator.get("/credentials")


def test_a_grant_is_added_and_removed(server: Running, administrator: Console) -> None:
    assert not may_read(server, "KEY", "secret of KEY")
    form = {"form": "grant_new", "key": "KEY", "scheme": "", "kind": "read-only", "role": "", "document": ""}
    refused = unescape(administrator.post("/grants/change", 400, **form, tables=" "))
    assert "Name at least one table or pattern." in refused and 'value="KEY"' in refused
    assert "no credential OTHER is stored" in administrator.post(
        "/grants/change", 400, **{**form, "key": "OTHER"}, tables="songs"
    )
    refused = unescape(
        administrator.post("/grants/change", 400, **{**form, "kind": "document", "document": "{x"}, tables="")
    )
    assert "This is not a grant: " in refused and "{x</textarea>" in refused
    administrator.post("/grants/change", **form, tables="songs, s*")
    wait_until(lambda: may_read(server, "KEY", "secret of KEY"))
    page = unescape(administrator.get("/grants"))
    assert '"read": ["songs", "s*"]' in page
    row = re.search(r'aws/KEY</th>.*?name="id" value="(\w+)"', page, re.DOTALL)
    assert row is not None
    administrator.post("/grants/change", form="grant_delete", id=row[1])
    wait_until(lambda: not may_read(server, "KEY", "secret of KEY"))


def test_pages_show_the_rights_of_a_key_and_the_readers_of_a_table(
    server: Running, administrator: Console
) -> None:
    for kind, tables, document in (
        ("read-only", "songs", ""),
        ("document", "", '{"write": ["songs"], "keys": ["a*"]}'),
    ):
        administrator.post(
            "/grants/change", form="grant_new", key="KEY", scheme="aws", kind=kind, tables=tables, role="",
            document=document,
        )  # fmt: skip
    credentials = server.app.extensions["tablegate"].gateway.credentials
    wait_until(lambda: len(credentials.find(Scheme.AWS, "KEY").policy.statements) > 3)
    page = administrator.get("/rights", namespace="shared", name="songs", key="aws/KEY")
    found = dict(re.findall(r'<dt>([\w ]+)<dd><span class="badge \w+">(\w+)</span>', page))
    assert (found["read"], found["scan"], found["put"], found["drop"]) == ("yes", "yes", "partly", "no")
    readers = dict(re.findall(r'<th scope="row">([\w/]+)</th><td data-label="read"><span[^>]*>(\w+)<', page))
    assert readers == {"aws/anybody": "yes", "aws/KEY": "yes"}
    page = administrator.get("/rights", namespace="shared", name="others")
    readers = dict(re.findall(r'<th scope="row">([\w/]+)</th><td data-label="read"><span[^>]*>(\w+)<', page))
    assert readers == {"aws/anybody": "yes", "aws/KEY": "no"}


def test_a_quota_is_set_and_removed(administrator: Console) -> None:
    form = {"form": "quota_set", "owner": "aws/KEY", "requests": "5", "bytes": "", "tables": "7"}
    refused = administrator.post("/quotas/change", 400, **{**form, "requests": "0"})
    assert "requests must be a positive number" in refused
    assert "Write SCHEME/ACCESS_ID" in administrator.post("/quotas/change", 400, **{**form, "owner": "KEY"})
    administrator.post("/quotas/change", **form)
    assert "requests: 5, tables: 7" in administrator.get("/quotas")
    administrator.post("/quotas/change", form="quota_delete", owner="aws/KEY")
    assert "No credential and no namespace has a quota." in administrator.get("/quotas")


PAGES = ("/credentials", "/quotas", "/rights", "/health")
FORMS = (
    ("/credentials/change", {"form": "credential_new", "scheme": "aws", "access_id": "NEW"}),
    ("/grants/change", {"form": "grant_new", "key": "*", "kind": "all"}),
    ("/quotas/change", {"form": "quota_set", "owner": "aws/KEY", "requests": "1"}),
)  # fmt: skip


def test_a_key_may_not_administer_even_if_it_may_do_everything(server: Running) -> None:
    console = Console(server.url)
    console.sign_in("anybody", "any secret")
    for page in PAGES:
        console.get(page, 403)
    for path, form in FORMS:
        assert "sign in as administrator" in console.post(path, 403, **form)
    page = console.get("/grants")
    assert 'name="form"' not in page and "Credentials" not in page


def test_auth_dev_requires_the_token_too(database_url: str) -> None:
    running = start(
        database_url, console_writes=True, admin_token="the token", secret_key="what encrypts the secrets"
    )
    try:
        console = Console(running.url)
        for page in PAGES:
            console.get(page, 403)
        for path, form in FORMS:
            console.post(path, 403, **form)
        assert "sign in as administrator" in console.get("/grants")
        console.sign_in("administrator", "the token")
        assert "No credential is stored." in console.get("/credentials")
        console.post("/credentials/change", **FORMS[0][1], place="", all="")
        assert "NEW" in console.get("/credentials")
        assert "The server runs with auth dev" in console.get("/rights")
    finally:
        running.stop()


def test_without_console_writes_nothing_can_be_changed(database_url: str) -> None:
    running = start(database_url, admin_token="the token")
    try:
        console = Console(running.url)
        console.sign_in("administrator", "the token")
        for page in (*PAGES, "/grants"):
            assert 'name="form"' not in console.get(page)
        for path, form in FORMS:
            console.post(path, 404, **form)
    finally:
        running.stop()
