"""Sign-in to the console at an OpenID Connect issuer: rights, replays, stolen states, forged tokens, and the audit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL, WrittenGrant
from tablegate.gateway.wiring import connect, open_store
from tests.gateway.console.test_console import Console
from tests.support.browser import needs_chromium
from tests.support.live_dynamodb import Live
from tests.support.oidc import Issuer, running_issuer
from tests.support.running import Running, start
from tests.support.waiting import PATIENCE_S

SETTINGS = {
    "auth": "strict", "secret_key": "what encrypts the secrets", "console_writes": True,
    "console_oidc_client_id": "tablegate-console",
}  # fmt: skip


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with running_issuer() as made:
        yield made


@pytest.fixture
def server(issuer: Issuer, serve_migrated: str) -> Iterator[Running]:
    """A server with the tables `songs` and `orders`. Alice may read songs, the group `ops` both."""
    settings = load({"database": serve_migrated, **SETTINGS}, {})
    opened = open_store(settings, connect(settings))
    opened.credential_store.add(Credential(Scheme.AWS, "anybody", ("any secret",)), [ALL])
    for grantee, tables in (("entra/alice", ["songs"]), ("group/ops", ["songs", "orders"])):
        document = json.dumps({"read": tables, "query": tables, "scan": tables})
        opened.credential_store.grant(grantee, WrittenGrant("short", document))
    opened.close()
    running = start(serve_migrated, **SETTINGS, oidc_issuer=(issuer.url,))
    live = Live(running.url)
    for table in ("songs", "orders"):
        live.create("p:S", name=table)
    yield running
    running.stop()


@pytest.fixture
def serve_migrated(database_url: str) -> str:
    return database_url


ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def begun(console: Console) -> str:
    """The address at the issuer to which a browser is led."""
    answer = console.session.get(f"{console.url}/sign-in/issuer", allow_redirects=False, timeout=PATIENCE_S)
    assert answer.status_code == 303
    return answer.headers["Location"]


def returned(console: Console, query: dict[str, str]) -> requests.Response:
    return console.session.get(f"{console.url}/sign-in/issuer/return", params=query, timeout=PATIENCE_S)


def signed_in(server: Running, issuer: Issuer, **claims: Any) -> Console:
    console = Console(server.url)
    assert returned(console, issuer.approve(begun(console), **claims)).status_code == 200
    return console


@ON_SQLITE
def test_an_identity_sees_only_granted_tables(server: Running, issuer: Issuer) -> None:
    assert "Sign in with your organisation" in Console(server.url).get("/sign-in")
    alice = signed_in(server, issuer)
    page = alice.get("/")
    assert "songs" in page
    alice.get("/table", namespace="shared", name="songs")
    alice.get("/table", status=403, namespace="shared", name="orders")
    member = signed_in(server, issuer, oid="bob", groups=["ops"])
    member.get("/table", namespace="shared", name="orders")
    nobody = signed_in(server, issuer, oid="carol")
    nobody.get("/table", status=403, namespace="shared", name="songs")


@ON_SQLITE
def test_attempts_that_are_refused(server: Running, issuer: Issuer) -> None:
    victim, thief = Console(server.url), Console(server.url)
    query = issuer.approve(begun(victim))
    assert returned(thief, query).status_code == 403  # a stolen state and code, without the cookie
    begun(thief)
    assert returned(thief, query).status_code == 403  # with the cookie of another attempt
    cookies = victim.session.cookies.copy()
    assert returned(victim, query).status_code == 200
    replay = Console(server.url)
    replay.session.cookies = cookies
    assert returned(replay, query).status_code == 403  # a replay with all that the browser had
    for change in ({"code": "unknown"}, {"code": ""}, {"state": ""}, {"state": "x" * 43}):
        console = Console(server.url)
        assert returned(console, {**issuer.approve(begun(console)), **change}).status_code == 403
    for claims in (
        {"nonce": "another"}, {"nonce": None}, {"aud": "https://storage.azure.com"}, {"exp": 1}, {"oid": None},
        {"iss": "https://other"}, {"groups": ["g" * 100] * 100},
    ):  # fmt: skip
        console = Console(server.url)
        assert returned(console, issuer.approve(begun(console), **claims)).status_code == 403
        assert (
            console.session.get(f"{console.url}/", allow_redirects=False, timeout=PATIENCE_S).status_code
            == 303
        )


@ON_SQLITE
def test_forged_cookies_are_no_session(server: Running, issuer: Issuer) -> None:
    console = signed_in(server, issuer)
    good = console.session.cookies["tablegate-console"]
    for forged in (good[:-8] + "AAAAAAA=", good.replace("|ASIA", "|ASIB"), "entra||", "entra|x|y", "entra"):
        answer = requests.get(
            f"{console.url}/",
            cookies={"tablegate-console": forged},
            allow_redirects=False,
            timeout=PATIENCE_S,
        )
        assert answer.status_code == 303
        assert "sign-in" in answer.headers["Location"]


@ON_SQLITE
@pytest.mark.clients
@needs_chromium
def test_sign_in_works_in_a_browser(server: Running, issuer: Issuer, browser: webdriver.Chrome) -> None:
    """The issuer is another site than the console, so the browser withholds cookies as on the Internet."""
    browser.get(f"{server.url.replace('127.0.0.1', 'localhost')}/_tablegate/console/")
    browser.find_element(By.LINK_TEXT, "Sign in with your organisation").click()
    WebDriverWait(browser, 60).until(lambda driver: driver.find_elements(By.LINK_TEXT, "songs"))
    assert "entra/alice" in browser.find_element(By.TAG_NAME, "header").text
    assert any(path.startswith("/authorize?") for path in issuer.paths)


@ON_SQLITE
def test_without_a_client_id_there_is_no_issuer(serve: Any, database_url: str, issuer: Issuer) -> None:
    console = Console(serve(database_url, oidc_issuer=(issuer.url,)).url)
    assert "organisation" not in console.get("/sign-in")
    console.get("/sign-in/issuer", status=404)
    console.get("/sign-in/issuer/return", status=403, state="a", code="b")


@ON_SQLITE
def test_the_redirect_address_is_of_a_setting_or_an_allowed_host(
    server: Running, issuer: Issuer, database_url: str
) -> None:
    """The issuer sends the code to this address, and any client can write any Host (RFC 9700, 4.1)."""
    path = "/_tablegate/console/sign-in/issuer"

    def asked(url: str, host: str) -> tuple[int, str]:
        answer = requests.get(url + path, headers={"Host": host}, allow_redirects=False, timeout=PATIENCE_S)
        query = parse_qs(urlsplit(answer.headers.get("Location", "")).query)
        return answer.status_code, query.get("redirect_uri", [""])[0].removesuffix(f"{path}/return")

    port = urlsplit(server.url).port
    for host in ("localhost", f"127.0.0.1:{port}", f"[::1]:{port}", "tables.localhost"):
        assert asked(server.url, host) == (303, f"http://{host}"), host
    foreign = (
        "evil.example",
        "evil",
        "10.1.2.3",
        "127.0.0.1.evil.example",
        "x@localhost",
        "a.example.com.evil.example",
        "",
    )
    for host in foreign:
        assert asked(server.url, host) == (403, ""), host
    answer = requests.get(
        f"{server.url}{path}/return?state=x&code=x", headers={"Host": "evil.example"}, timeout=PATIENCE_S
    )
    assert answer.status_code == 403
    for settings, allowed, refused in (
        (
            {"allowed_host": ("tables.example.com", ".example.org")},
            ("tables.example.com:8443", "a.example.org"),
            ("evil.example",),
        ),
        ({"allowed_host": ("*",)}, (), foreign),
    ):
        running = start(database_url, **SETTINGS, **settings, oidc_issuer=(issuer.url,))
        for host in allowed:
            assert asked(running.url, host) == (303, f"http://{host}")
        for host in refused:
            assert asked(running.url, host)[1] == ""
        running.stop()
    running = start(
        database_url, **SETTINGS, console_url="https://tables.example.com", oidc_issuer=(issuer.url,)
    )
    for host in ("localhost", *foreign):
        assert asked(running.url, host) == (303, "https://tables.example.com"), host
    running.stop()


def test_the_address_of_the_console_is_that_of_a_server() -> None:
    assert (
        load({"console_url": "https://Tables.example.com:8443/"}, {}).console_url
        == "https://tables.example.com:8443"
    )
    for text in (
        "tables.example.com",
        "https://a/b",
        "https://",
        "https://a@b",
        "javascript:x",
        "https://a?b",
    ):
        with pytest.raises(BadSetting, match=r"console_url|console-url"):
            load({"console_url": text}, {})
