"""Every form that administers tables, submitted in Chromium at the widths of a desktop and a phone, light and dark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import staleness_of

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.console.access_pages import ACCOUNT_FORMS
from tablegate.gateway.dialects.adapter import DialectAdministration, console_parts
from tablegate.gateway.observability import audit
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.wiring import connect
from tests.gateway.console.test_administration import backup_state, has_settled
from tests.gateway.console.test_browser import problems, text_of, waiting
from tests.support.browser import appear_as, in_one_look, needs_chromium
from tests.support.console_screenshots import photograph
from tests.support.live_dynamodb import Live
from tests.support.running import Running, start
from tests.support.waiting import wait_until

pytestmark = [needs_chromium, pytest.mark.clients]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    database = f"sqlite:///{tmp_path_factory.mktemp('console')}/console.sqlite"
    migrate(connect(load({"database": database}, {})))
    running = start(database, console_writes=True)
    yield running
    running.stop()


def fill(form: WebElement, values: dict[str, str]) -> None:
    """Fill in fields of a form, after opening what hides it."""
    for details in form.find_elements(By.XPATH, "ancestor::details[not(@open)] | .//details[not(@open)]"):
        details.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    for name, value in values.items():
        control = form.find_element(By.NAME, name)
        if control.tag_name == "select":
            control.find_element(By.CSS_SELECTOR, f'option[value="{value}"]').click()
        else:
            control.clear()
            control.send_keys(value)


def form_of(browser: webdriver.Chrome, key: str) -> WebElement:
    """Return the first form of a kind."""
    name = browser.find_element(By.CSS_SELECTOR, f'input[name="form"][value="{key}"]')
    return name.find_element(By.XPATH, "ancestor::form")


class Walk:
    """A walk through the forms of one dialect, which notes those that were accepted."""

    def __init__(self, server: Running, browser: webdriver.Chrome, dialect: str, table: str) -> None:
        self._console = f"{server.url}/_tablegate/console"
        self._browser = browser
        self._dialect = dialect
        self.table = table
        self.forms: DialectAdministration = console_parts(server.settings)[dialect].administration
        self.accepted: set[str] = set()

    def create(self, **values: str) -> None:
        """Create the table of the walk."""
        self._browser.get(f"{self._console}/tables/new?dialect={self._dialect}")
        self._submit("create", {"name": self.table, **values})
        waiting(self._browser).until(lambda _: text_of(self._browser, "h1") == self.table)
        assert "The table is empty" in text_of(self._browser, "main")

    def settings(self) -> None:
        """Show the settings of the table."""
        query = urlencode({"namespace": "shared", "name": self.table, "dialect": self._dialect})
        self._browser.get(f"{self._console}/settings?{query}")

    def change(self, key: str, /, **values: str) -> None:
        """Submit a form on the page of settings. A page that has it already is used as it is."""
        if not self._browser.find_elements(By.CSS_SELECTOR, f'input[name="form"][value="{key}"]'):
            self.settings()
        self._submit(key, values)
        done = self.forms.forms[key].done
        waiting(self._browser).until(lambda _: text_of(self._browser, ".alert.ok").startswith(done))

    def delete(self) -> None:
        """Delete the table."""
        self.settings()
        self._submit("delete", {"typed": self.table})
        waiting(self._browser).until(lambda _: text_of(self._browser, "h1") == "Tables")

    def form(self, key: str) -> WebElement:
        form = form_of(self._browser, key)
        fill(form, {})
        return form

    def _submit(self, key: str, values: dict[str, str]) -> None:
        form = form_of(self._browser, key)
        fill(form, values)
        button = form.find_element(By.TAG_NAME, "button")
        button.send_keys(Keys.ENTER)
        if self.forms.forms[key].question:
            self._browser.switch_to.alert.accept()
        waiting(self._browser).until(staleness_of(button))
        self.accepted.add(key)


@in_one_look
def test_every_form_of_dynamodb_is_accepted(
    server: Running, browser: webdriver.Chrome, size: str, scheme: str, tmp_path: Path
) -> None:
    appear_as(browser, size, scheme)
    live, walk = Live(server.url), Walk(server, browser, "dynamodb", f"table-{size}-{scheme}")
    walk.create(partition="p", sort="s", sort_type="N", tags="a=b")
    walk.change("index_new", index="by-color", partition="color")
    wait_until(lambda: has_settled(live, walk.table))
    walk.change("index_drop")
    wait_until(lambda: has_settled(live, walk.table))
    walk.change("stream_on", view="NEW_IMAGE")
    walk.change("stream_off")
    walk.change("capacity", billing="PROVISIONED", read="5", write="5")
    walk.change("ttl_on", attribute="ends")
    walk.change("ttl_off")
    walk.change("recovery_on", days="2")
    _restore_by_time_line(walk, browser)
    walk.change("recovery_off")
    walk.change("backup_new", backup="first")
    [backup] = live.client.list_backups(TableName=walk.table)["BackupSummaries"]
    wait_until(lambda: backup_state(live, backup["BackupArn"]) == "AVAILABLE")
    walk.change("backup_restore", target=f"{walk.table}-copy")
    wait_until(lambda: has_settled(live, f"{walk.table}-copy"))
    walk.settings()
    photograph(browser, tmp_path / f"settings-{size}-{scheme}.png", screens=3)
    walk.change("backup_delete")
    walk.change("tag_drop")
    walk.change("tag_new", key="team", value="blue")
    walk.change("protect")
    walk.change("unprotect")
    walk.delete()
    assert walk.accepted == set(walk.forms.forms)
    assert problems(browser) == []


def _restore_by_time_line(walk: Walk, browser: webdriver.Chrome) -> None:
    """Choose the last second but one with the keys of the slider."""
    until = time.monotonic() + 60
    while True:
        walk.settings()
        field = walk.form("restore").find_element(By.NAME, "at")
        slider = browser.find_element(By.CSS_SELECTOR, 'input[type="range"]')
        if int(str(slider.get_property("max"))) - int(str(slider.get_property("min"))) >= 2:
            break
        assert time.monotonic() < until
    latest = str(field.get_property("value"))
    slider.send_keys(Keys.ARROW_LEFT)
    assert str(field.get_property("value")) < latest
    assert slider.get_attribute("aria-label") == "Time line"
    button = walk.form("restore").find_element(By.TAG_NAME, "button")
    button.send_keys(Keys.ENTER)
    waiting(browser).until(staleness_of(button))
    waiting(browser).until(lambda _: walk.forms.forms["restore"].done in text_of(browser, ".alert.ok"))
    walk.accepted.add("restore")


@in_one_look
def test_every_form_of_table_store_is_accepted(
    server: Running, browser: webdriver.Chrome, size: str, scheme: str
) -> None:
    appear_as(browser, size, scheme)
    walk = Walk(server, browser, "tablestore", f"ots_{size}_{scheme}")
    walk.create(key1="p", key2="n", type2="INTEGER", increments="2")
    walk.change("column_new", column="color")
    walk.change("index_new", index=f"i_{size}_{scheme}", keys="color")
    walk.change("index_drop")
    walk.change("column_drop")
    walk.change("options", lifetime="86400", versions="2", deviation="100")
    walk.change("stream_on", hours="24")
    walk.change("stream_off")
    walk.delete()
    assert walk.accepted == set(walk.forms.forms)
    assert problems(browser) == []


@in_one_look
def test_every_form_of_azure_table_is_accepted(
    server: Running, browser: webdriver.Chrome, size: str, scheme: str
) -> None:
    appear_as(browser, size, scheme)
    walk = Walk(server, browser, "azuretable", f"Azure{size}{scheme}")
    walk.create()
    walk.delete()
    assert walk.accepted == set(walk.forms.forms)
    assert problems(browser) == []


ACCOUNTS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("credentials", "credential_new", {"access_id": "KEY", "all": "yes"}),
    ("grants", "grant_new", {"key": "KEY", "tables": "songs"}),
    ("grants", "grant_delete", {}),
    ("quotas", "quota_set", {"owner": "aws/KEY", "requests": "5"}),
    ("quotas", "quota_delete", {}),
    ("credentials", "credential_delete", {}),
)


@in_one_look
def test_every_form_about_accounts_is_accepted(
    browser: webdriver.Chrome, size: str, scheme: str, tmp_path: Path
) -> None:
    appear_as(browser, size, scheme)
    database = f"sqlite:///{tmp_path}/console.sqlite"
    migrate(connect(load({"database": database}, {})))
    running = start(
        database,
        console_writes=True,
        admin_token="the token",
        secret_key="what encrypts the secrets",
        audit=str(tmp_path / "audit.jsonl"),
    )
    console = f"{running.url}/_tablegate/console"
    try:
        browser.get(f"{console}/sign-in")
        browser.find_element(By.NAME, "access_id").send_keys("administrator")
        browser.find_element(By.NAME, "secret").send_keys("the token", Keys.ENTER)
        waiting(browser).until(lambda _: text_of(browser, "h1") == "Tables")
        for page, key, values in ACCOUNTS:
            browser.get(f"{console}/{page}")
            form = form_of(browser, key)
            fill(form, values)
            button = form.find_element(By.TAG_NAME, "button")
            button.send_keys(Keys.ENTER)
            if ACCOUNT_FORMS[key].question:
                browser.switch_to.alert.accept()
            waiting(browser).until(staleness_of(button))
            done = (
                "Copy them now. They are not shown again."
                if key == "credential_new"
                else ACCOUNT_FORMS[key].done
            )
            waiting(browser).until(lambda _, done=done: text_of(browser, ".alert") == done)
        assert {key for _, key, _ in ACCOUNTS} == set(ACCOUNT_FORMS)
        browser.get(f"{console}/rights")
        browser.find_element(By.NAME, "name").send_keys("songs", Keys.ENTER)
        waiting(browser).until(lambda _: "No credential is stored" in text_of(browser, "main"))
        browser.get(f"{console}/audit")
        browser.find_element(By.NAME, "operation").send_keys("credential", Keys.ENTER)
        waiting(browser).until(lambda _: "operation=credential" in browser.current_url)
        assert "Lines searched" in text_of(browser, "main")
        assert problems(browser) == []
    finally:
        browser.delete_all_cookies()
        audit.stop()
        running.stop()


@in_one_look
def test_rows_are_imported(
    server: Running, browser: webdriver.Chrome, size: str, scheme: str, tmp_path: Path
) -> None:
    appear_as(browser, size, scheme)
    live, name = Live(server.url), f"imported-{size}-{scheme}"
    live.create("p:S", name=name)
    browser.get(f"{server.url}/_tablegate/console/transfer?namespace=shared&name={name}")
    browser.find_element(By.NAME, "lines").send_keys('{"p": {"S": "a&b"}}')
    browser.find_element(By.XPATH, "//button[text()='Import rows']").send_keys(Keys.ENTER)
    waiting(browser).until(lambda _: text_of(browser, ".alert.ok") == "1 row imported.")
    assert live.client.scan(TableName=name)["Items"] == [{"p": {"S": "a&b"}}]
    file = tmp_path / "rows.csv"
    file.write_bytes(b'p,n,n@type\na&b,1.5,N\n"a\r\nb",2,S\n')
    browser.find_element(By.CSS_SELECTOR, 'option[value="typed-csv"]').click()
    browser.find_element(By.NAME, "file").send_keys(str(file))
    photograph(browser, tmp_path / f"transfer-{size}-{scheme}.png", screens=2)
    browser.find_element(By.XPATH, "//button[text()='Import rows']").send_keys(Keys.ENTER)
    waiting(browser).until(lambda _: text_of(browser, ".alert.ok") == "2 rows imported.")
    items = live.client.scan(TableName=name)["Items"]
    assert {"p": {"S": "a&b"}, "n": {"N": "1.5"}} in items
    assert {"p": {"S": "a\r\nb"}, "n": {"S": "2"}} in items and len(items) == 2
    assert problems(browser) == []
