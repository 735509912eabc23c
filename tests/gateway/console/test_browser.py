"""The console in a real browser: Debian's Chromium without a window, driven by selenium. Screenshots are kept in
`$TABLEGATE_TEST_ARTEFACTS` (else in the test's own folder).
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.wait import WebDriverWait

from tablegate.gateway.features.jobs.job_commands import StartJob
from tablegate.gateway.security.credentials import Credential, Scheme
from tests.support.browser import appear_as, in_each_look, needs_chromium
from tests.support.live_dynamodb import Live
from tests.support.raw_client import RawClient
from tests.support.running import OWN_CREDENTIALS, Running, start
from tests.support.soak import is_soak

pytestmark = [needs_chromium, pytest.mark.clients]
TEMPLATES = Path(__file__).parents[3] / "tablegate/gateway"
PAGES_OF_ROWS = {"rows.html", "row.html", "edit.html", "search.html", "statement.html", "bulk.html"}
EVIL = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"
ROWS = 2000 if is_soak else 400


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = start(f"sqlite:///{_database(tmp_path_factory)}")
    live = Live(running.url)
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    live.create("p:S", "s:N", name="songs", StreamSpecification=stream)
    with RawClient(running.url) as client:
        for first in range(0, ROWS, 25):
            wanted = [{"PutRequest": {"Item": _song(number)}} for number in range(first, first + 25)]
            client.call("BatchWriteItem", RequestItems={"songs": wanted})
    live.client.put_item(TableName="songs", Item={"p": {"S": EVIL}, "s": {"N": "0"}, EVIL: {"S": EVIL}})
    yield running
    running.stop()


def _database(folders: pytest.TempPathFactory) -> Path:
    from tablegate.gateway.configuration.loading import load
    from tablegate.gateway.store.migrating import migrate
    from tablegate.gateway.wiring import connect

    path = folders.mktemp("console") / "console.sqlite"
    migrate(connect(load({"database": f"sqlite:///{path}"}, {})))
    return path


def _song(number: int) -> dict[str, Any]:
    return {"p": {"S": f"p{number % 7}"}, "s": {"N": str(number)}, "title": {"S": f"Song {number}"}}


@pytest.fixture
def keep(browser: webdriver.Chrome, tmp_path: Path) -> Callable[[str], None]:
    """Keep a screenshot under a name."""
    folder = Path(os.environ.get("TABLEGATE_TEST_ARTEFACTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return lambda name: _saved(browser, folder / f"console-{name}.png")


def _saved(browser: webdriver.Chrome, path: Path) -> None:
    assert browser.save_screenshot(str(path))
    assert path.stat().st_size > 1000


def text_of(browser: webdriver.Chrome, selector: str) -> str:
    return browser.find_element(By.CSS_SELECTOR, selector).text


def link(browser: webdriver.Chrome, text: str) -> WebElement:
    return browser.find_element(By.LINK_TEXT, text)


def waiting(browser: webdriver.Chrome) -> WebDriverWait[webdriver.Chrome]:
    """A wait for a page to show something.

    The earlier page can disappear during a check. ChromeDriver has several errors for this, and some have no class
    ("Node with given id does not belong to the document").
    """
    return WebDriverWait(browser, 120, poll_frequency=0.02, ignored_exceptions=[WebDriverException])


def problems(browser: webdriver.Chrome) -> list[Any]:
    """Return the errors that the browser logged."""
    return [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def test_a_walk_through_all_pages(
    server: Running, browser: webdriver.Chrome, keep: Callable[[str], None]
) -> None:
    browser.get(f"{server.url}/_tablegate/console/")
    assert text_of(browser, "h1") == "Tables"
    keep("tables")
    link(browser, "songs").click()
    assert text_of(browser, "h1") == "songs"
    assert len(browser.find_elements(By.CSS_SELECTOR, "table.rows tbody tr")) == 50
    keep("rows")

    # A search by key, and a row with a script in every name and value: all of it is text.
    field = browser.find_element(By.NAME, "key0")
    field.send_keys(EVIL, Keys.ENTER)
    waiting(browser).until(lambda _: "1 row found" in text_of(browser, "[role=status]"))
    browser.find_element(By.CSS_SELECTOR, "table.rows tbody a").click()
    forms = [each.text for each in browser.find_elements(By.CSS_SELECTOR, "details.card > summary")]
    assert forms == ["DynamoDB JSON", "Table Store cells", "OData", "Plain JSON"]
    browser.find_element(By.CSS_SELECTOR, "details.card > summary").click()
    assert EVIL.replace('"', '\\"') in text_of(browser, "#form1")
    assert browser.title != "broken"
    assert not browser.find_elements(By.CSS_SELECTOR, "main img, main script")
    browser.find_element(By.CSS_SELECTOR, ".history summary").click()
    keep("row")

    link(browser, "Details").click()
    assert "boto3" in text_of(browser, "#snippet1")
    keep("table")

    link(browser, "Changes").click()
    live = Live(server.url)
    waiting(browser).until(lambda _: _is_followed(browser, live))
    assert "put" in text_of(browser, "#changes li")
    keep("changes")

    link(browser, "Grants").click()
    assert text_of(browser, "h1") == "Grants"
    keep("grants")

    link(browser, "Metrics").click()
    waiting(browser).until(lambda _: _are_drawn(browser))
    keep("metrics")
    waiting(browser).until(lambda _: "UTC: all" in _read_values(browser))
    assert problems(browser) == []


def _is_followed(browser: webdriver.Chrome, live: Live) -> bool:
    live.client.put_item(TableName="songs", Item={"p": {"S": EVIL}, "s": {"N": "1"}})
    return len(browser.find_elements(By.CSS_SELECTOR, "#changes li")) > 1


def _read_values(browser: webdriver.Chrome) -> str:
    """Return what the first chart says of the interval before the last one."""
    browser.find_element(By.CSS_SELECTOR, ".plot").send_keys(Keys.ARROW_LEFT)
    return text_of(browser, ".chart [role=status]")


def _are_drawn(browser: webdriver.Chrome) -> bool:
    """Four charts of the server, and one of its operations, which appears with the first sample."""
    return len(browser.find_elements(By.CSS_SELECTOR, ".chart .curve")) > 4


@pytest.mark.soak
def test_rows_are_gone_through_page_by_page(server: Running, browser: webdriver.Chrome) -> None:
    """A page costs the same wherever in the table it is: its place is a key, not a number of rows."""
    browser.get(f"{server.url}/_tablegate/console/rows?namespace=shared&name=songs")
    seen = 0
    while True:
        seen += len(browser.find_elements(By.CSS_SELECTOR, "table.rows tbody tr"))
        onward = browser.find_elements(By.CSS_SELECTOR, "[rel=next]")
        if not onward:
            break
        browser.get(str(onward[0].get_attribute("href")))
    assert ROWS < seen <= ROWS + 2
    assert problems(browser) == []


def test_the_console_can_be_used_with_the_keyboard_alone(server: Running, browser: webdriver.Chrome) -> None:
    browser.get(f"{server.url}/_tablegate/console/")
    reached = []
    for _ in range(12):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        focused = browser.switch_to.active_element
        reached.append(focused.text)
        if focused.text == "songs":
            focused.send_keys(Keys.ENTER)
            break
    assert reached[0] == "To the content"
    waiting(browser).until(lambda _: text_of(browser, "h1") == "songs")


@in_each_look
def test_every_form_of_the_console_is_accepted(
    tmp_path_factory: pytest.TempPathFactory, browser: webdriver.Chrome, size: str, scheme: str
) -> None:
    """Chromium sends `Origin: null` with a form if the page has `Referrer-Policy: no-referrer` (Fetch standard, "append a request
    `Origin` header"). The console refuses that origin, so its own pages must not cause it."""
    running = start(
        f"sqlite:///{_database(tmp_path_factory)}",
        auth="strict",
        admin_token="the token",
        console_writes=True,
        **OWN_CREDENTIALS,
    )
    appear_as(browser, size, scheme)
    submitted: set[tuple[str, str]] = set()

    def submit(element: WebElement, then: str) -> None:
        form = element.find_element(By.XPATH, "ancestor::form")
        path = urlsplit(str(form.get_property("action"))).path
        submitted.add((str(form.get_property("method")), path.removeprefix("/_tablegate/console")))
        element.click()
        if then == "confirm":
            browser.switch_to.alert.accept()
        else:
            # The page before may have the same heading.
            waiting(browser).until(staleness_of(element))
            waiting(browser).until(lambda _: text_of(browser, "h1") == then)

    def button(text: str) -> WebElement:
        return browser.find_element(By.XPATH, f"//button[text()='{text}']")

    try:
        gateway = running.app.extensions["tablegate"].gateway
        gateway.credentials.replace([Credential(Scheme.AWS, "anybody", ("any secret",))])  # those of Live
        browser.get(f"{running.url}/_tablegate/console/")
        browser.find_element(By.NAME, "access_id").send_keys("administrator")
        browser.find_element(By.NAME, "secret").send_keys("the token")
        submit(button("Sign in"), "Tables")
        gateway.engine.run([StartJob("kind", "shared", "songs", {}, "IN_PROGRESS", 9)])
        link(browser, "Jobs").click()
        waiting(browser).until(lambda _: text_of(browser, "h1") == "Jobs")
        _refresh(browser)
        submit(button("Cancel"), "confirm")
        waiting(browser).until(lambda _: "cancelling" in text_of(browser, "tbody"))
        submit(button("Sign out"), "Sign in")
        assert problems(browser) == []
    finally:
        appear_as(browser)
        running.stop()
    assert submitted == _forms_of_templates()


def _refresh(browser: webdriver.Chrome) -> None:
    """Do what the script of the page does every ten seconds. The new part has times and roles, and still asks.

    The script itself does it no more. It could replace a button between finding and pressing it.
    """
    browser.execute_script("for (let timer = setTimeout(() => 0); timer; timer--) clearInterval(timer)")
    part = "document.querySelector('[data-refresh]')"
    browser.execute_script(f"window.before = {part}; refresh({part})")
    waiting(browser).until(lambda _: browser.execute_script(f"return {part} !== window.before"))
    assert text_of(browser, "tbody time").endswith(" UTC")
    assert browser.find_element(By.CSS_SELECTOR, "table.stacked").get_attribute("role") == "table"


def _forms_of_templates() -> set[tuple[str, str]]:
    """(method, path below the console) of every form. The form without an action is that of the page itself."""
    paths = {"console.sign_out": "/sign-out", "console.cancel": "/jobs/cancel", "": "/sign-in"}
    return {
        (method, paths[action])
        for name, method, action in forms_of_templates()
        if name not in PAGES_OF_ROWS  # test_rows_in_browser.py
        and name
        not in (
            "audit.html",
            "forms.html",
            "rights.html",
            "transfer.html",
        )  # test_administration_in_browser.py
    }


def forms_of_templates() -> Iterator[tuple[str, str, str]]:
    """Yield (template, method, endpoint of the action) of every form. No action: it is that of the page."""
    for template in TEMPLATES.rglob("templates/console/*.html"):
        for form in re.findall("<form[^>]*>", template.read_text()):
            [method] = re.findall(r'method="(\w+)"', form)
            [action] = re.findall(r"url_for\('([\w.]+)'\)", form) or [""]
            yield template.name, method, action


@contextmanager
def _foreign_site(pages: dict[str, str]) -> Iterator[str]:
    """Serve these pages, given by path, as another web site. Yields its URL."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path, "").encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{site.server_port}"
    finally:
        site.shutdown()
        thread.join()
        site.server_close()


@pytest.mark.parametrize("referrer_policy", ["same-origin", "no-referrer"])
def test_a_page_of_another_site_cannot_sign_in_or_out(
    tmp_path_factory: pytest.TempPathFactory, browser: webdriver.Chrome, referrer_policy: str
) -> None:
    """The same host at another port is another origin. `SameSite` cookies are still sent from there."""
    running = start(f"sqlite:///{_database(tmp_path_factory)}", auth="strict", admin_token="the token")
    console = f"{running.url}/_tablegate/console"
    pages = {
        "/in": f"""<meta name="referrer" content="{referrer_policy}"><form method="post" action="{console}/sign-in">
            <input name="access_id" value="administrator"><input name="secret" value="the token"><button>go</button></form>""",
        "/out": f"""<meta name="referrer" content="{referrer_policy}">
            <form method="post" action="{console}/sign-out"><button>go</button></form>""",
    }
    try:
        with _foreign_site(pages) as site:
            browser.get(f"{site}/in")
            browser.find_element(By.TAG_NAME, "button").click()
            waiting(browser).until(lambda _: text_of(browser, "h1") == "This is not possible")
            browser.get(f"{console}/")
            assert text_of(browser, "h1") == "Sign in"
            browser.find_element(By.NAME, "access_id").send_keys(
                "administrator", Keys.TAB, "the token", Keys.ENTER
            )
            waiting(browser).until(lambda _: text_of(browser, "h1") == "Tables")
            browser.get(f"{site}/out")
            browser.find_element(By.TAG_NAME, "button").click()
            waiting(browser).until(lambda _: text_of(browser, "h1") == "This is not possible")
            browser.get(f"{console}/")
            assert text_of(browser, "h1") == "Tables"
    finally:
        browser.delete_all_cookies()
        browser.get_log("browser")  # the refusals are in it
        running.stop()


def test_a_visitor_signs_in_and_out(
    tmp_path_factory: pytest.TempPathFactory, browser: webdriver.Chrome
) -> None:
    running = start(f"sqlite:///{_database(tmp_path_factory)}", auth="strict", admin_token="the token")
    try:
        browser.get(f"{running.url}/_tablegate/console/")
        browser.find_element(By.NAME, "access_id").send_keys(
            "administrator", Keys.TAB, "the token", Keys.ENTER
        )
        waiting(browser).until(lambda _: text_of(browser, "h1") == "Tables")
        assert browser.execute_script("return document.cookie") == ""  # no script can read it
        browser.find_element(By.CSS_SELECTOR, "header button").click()
        waiting(browser).until(lambda _: text_of(browser, "h1") == "Sign in")
        assert problems(browser) == []
    finally:
        running.stop()


def test_statements_are_those_of_one_visitor_until_it_signs_out(
    tmp_path_factory: pytest.TempPathFactory, browser: webdriver.Chrome
) -> None:
    running = start(
        f"sqlite:///{_database(tmp_path_factory)}", auth="strict", admin_token="the token", **OWN_CREDENTIALS
    )
    console = f"{running.url}/_tablegate/console"

    def sign_in(name: str, secret: str) -> None:
        browser.delete_all_cookies()  # as when a session ends
        browser.get(f"{console}/sign-in")
        browser.find_element(By.NAME, "access_id").send_keys(name, Keys.TAB, secret, Keys.ENTER)
        waiting(browser).until(lambda _: text_of(browser, "h1") == "Tables")
        browser.get(f"{console}/statement?namespace=shared&name=songs")

    def kept() -> list[str]:
        return [each.text for each in browser.find_elements(By.CSS_SELECTOR, "button.statement")]

    try:
        gateway = running.app.extensions["tablegate"].gateway
        gateway.credentials.replace([Credential(Scheme.AWS, "anybody", ("any secret",))])  # those of Live
        Live(running.url).create("p:S", name="songs")
        sign_in("anybody", "any secret")
        run = browser.find_element(By.XPATH, "//button[text()='Run']")
        run.click()
        waiting(browser).until(staleness_of(run))
        waiting(browser).until(lambda _: kept() == ['SELECT * FROM "songs"'])
        sign_in("administrator", "the token")
        assert kept() == []
        sign_in("anybody", "any secret")
        assert len(kept()) == 1
        browser.find_element(By.CSS_SELECTOR, "header button").click()
        waiting(browser).until(lambda _: text_of(browser, "h1") == "Sign in")
        sign_in("anybody", "any secret")
        assert kept() == []
        assert problems(browser) == []
    finally:
        running.stop()
