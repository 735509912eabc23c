"""The pages about rows in Chromium: each form at both widths, light and dark, and the comfort of their script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.select import Select

from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.gateway.console import bulk_pages, reading
from tests.adapters.tablestore.search_messages import schema
from tests.gateway.console.test_browser import (
    PAGES_OF_ROWS,
    forms_of_templates,
    link,
    problems,
    text_of,
    waiting,
)
from tests.support.browser import appear_as, in_one_look, needs_chromium
from tests.support.capabilities import INSTALLED
from tests.support.console_screenshots import migrated
from tests.support.live_dynamodb import Index, Live
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import Running, start

pytestmark = [needs_chromium, pytest.mark.clients]
NUMBER = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = start(migrated(tmp_path_factory.mktemp("rows")), console_writes=True)
    live = Live(running.url)
    live.create("p:S", "s:N", name="songs", indexes=[Index("by-kind", "kind:S", "s:N")])
    if "search" in INSTALLED:
        fields = schema(("kind", messages.KEYWORD))
        LiveTableStore(running.url).call(
            "CreateSearchIndex", table_name="songs", index_name="words", schema=fields
        )
    yield running
    running.stop()


@pytest.fixture
def songs(server: Running) -> Live:
    """The table `songs` with NUMBER items, every tenth of them rare."""
    live = Live(server.url)
    keys = [
        {name: item[name] for name in ("p", "s")} for item in live.client.scan(TableName="songs")["Items"]
    ]
    items = [
        {"p": {"S": "p"}, "s": {"N": str(number)}, "kind": {"S": "common" if number % 10 else "rare"}, "x": {"S": "<b>"}}
        for number in range(NUMBER)
    ]  # fmt: skip
    deletes = [{"DeleteRequest": {"Key": key}} for key in keys]
    for requests in (deletes, [{"PutRequest": {"Item": item}} for item in items]):
        for first in range(0, len(requests), 25):
            live.client.batch_write_item(RequestItems={"songs": requests[first : first + 25]})
    return live


@pytest.fixture
def visit(server: Running, browser: webdriver.Chrome) -> Iterator[Callable[[str], None]]:
    """Open a page of the console about `songs`. The browser remembers nothing of earlier tests."""
    appear_as(browser)
    browser.get(f"{server.url}/_tablegate/console/sign-in")
    browser.execute_script("localStorage.clear()")
    browser.get_log("browser")
    yield lambda path: browser.get(f"{server.url}/_tablegate/console{path}namespace=shared&name=songs")
    appear_as(browser)


def found(browser: webdriver.Chrome, selector: str) -> list[WebElement]:
    return browser.find_elements(By.CSS_SELECTOR, selector)


def fill(browser: webdriver.Chrome, name: str, text: str) -> None:
    field = browser.find_element(By.NAME, name)
    if field.tag_name == "select":
        Select(field).select_by_visible_text(text)
    else:
        field.clear()
        field.send_keys(text)


class Submitter:
    """Submits forms, and remembers which: (method, path below the console)."""

    def __init__(self, browser: webdriver.Chrome) -> None:
        self._browser = browser
        self.forms: set[tuple[str, str]] = set()

    def press(self, text: str, then: str, asks: bool = False) -> None:
        """Press a button, and wait until the next page has a text."""
        buttons = self._browser.find_elements(By.XPATH, f"//main//button[text()='{text}']")
        button = [each for each in buttons if each.is_displayed()][
            -1
        ]  # the first "Save" is for the Enter key
        form = button.get_property("form")
        path = urlsplit(str(form.get_attribute("action"))).path  # type: ignore[union-attr]
        method = str(form.get_property("method"))  # type: ignore[union-attr]
        self.forms.add((method, path.removeprefix("/_tablegate/console")))
        button.click()
        if asks:
            self._browser.switch_to.alert.accept()
        waiting(self._browser).until(staleness_of(button))
        waiting(self._browser).until(lambda _: then in text_of(self._browser, "main"))


ENDPOINTS = {
    "console.rows": "/rows", "console.difference": "/difference", "console.delete": "/row/delete",
    "console.put": "/row/put", "console.run_bulk": "/rows/bulk", "console.statement": "/statement",
    "console.search": "/search",
}  # fmt: skip


@in_one_look
def test_every_form_about_rows_is_accepted(
    songs: Live, browser: webdriver.Chrome, visit: Callable[[str], None], size: str, scheme: str
) -> None:
    appear_as(browser, size, scheme)
    submitter = Submitter(browser)
    press = submitter.press
    visit("/rows?")
    fill(browser, "key0", "p")
    found(browser, "details.more > summary")[0].click()
    fill(browser, "attribute", "kind")
    fill(browser, "value", "rare")
    press("Search", "12 rows found")

    found(browser, "details.columns > summary")[0].click()
    found(browser, ".columns input[value=x]")[0].click()
    press("Apply", "12 rows found")
    assert [each.get_attribute("textContent") for each in found(browser, "#rows thead th")][1:] == [
        "p",
        "s",
        "kind",
    ]

    for box in found(browser, "#rows .choose input")[:2]:
        box.click()
    press("Compare two", "Difference of two rows")

    visit("/row/new?")
    fill(browser, "value0", "new")
    fill(browser, "value1", "7")
    fill(browser, "name2", "words")
    fill(browser, "value2", "one")
    browser.find_element(By.CSS_SELECTOR, "[value=add]").click()
    fill(browser, "name3", "many")
    fill(browser, "type3", "N")
    fill(browser, "value3", "many")
    press("Save", "Some values are not valid")
    assert text_of(browser, "#error3") == "This must be a number of at most 38 digits."
    browser.get_log("browser")  # the refusal is in it
    fill(browser, "value3", "12.5")
    press("Save", "As JSON")
    link(browser, "Edit").click()
    fill(browser, "value2", "two\nlines")
    press("Save", "As JSON")
    key = {"p": {"S": "new"}, "s": {"N": "7"}}
    stored = songs.client.get_item(TableName="songs", Key=key)["Item"]
    assert stored == {**key, "words": {"S": "two\nlines"}, "many": {"N": "12.5"}}
    press("Delete", "rows found", asks=True)
    assert "Item" not in songs.client.get_item(TableName="songs", Key=key)

    visit("/rows?attribute=kind&value=rare&")
    link(browser, "Change all found").click()
    assert "12 rows found" in text_of(browser, "main")
    fill(browser, "target", "x")
    fill(browser, "target_value", "changed")
    press("Change all found rows", "12 rows changed")
    link(browser, "Show the rows").click()
    assert len(found(browser, "#rows tbody tr")) == 12
    items = songs.client.scan(TableName="songs")["Items"]
    assert {item["s"]["N"] for item in items if item["x"] == {"S": "changed"}} == set(
        map(str, range(0, NUMBER, 10))
    )

    visit("/statement?")
    fill(browser, "statement", "SELECT * FROM songs WHERE kind = 'rare'")
    press("Run", "12 rows found")

    if "search" in INSTALLED:
        LiveTableStore(songs.url).wait_for_search_index("songs", "words", NUMBER)
        visit("/search?index=words&")
        fill(browser, "field0", "kind (keyword)")
        fill(browser, "value0", "rare")
        press("Search", "12 rows found")
    assert problems(browser) == []
    assert submitter.forms == {
        (method, ENDPOINTS[action]) for name, method, action in forms_of_templates() if name in PAGES_OF_ROWS
    }


def test_wrong_values_stand_beside_their_field(
    songs: Live, browser: webdriver.Chrome, visit: Callable[[str], None]
) -> None:
    visit("/rows?key0=p&key1=x&")
    field = browser.find_element(By.NAME, "key1")
    assert field.get_attribute("aria-invalid") == "true"
    described = str(field.get_attribute("aria-describedby"))
    assert browser.find_element(By.ID, described).text == "s must be a number."


# Comfort of the script


def test_filters_stay_unfolded_and_are_added(
    songs: Live, browser: webdriver.Chrome, visit: Callable[[str], None]
) -> None:
    visit("/rows?")
    assert not browser.find_element(By.NAME, "attribute").is_displayed()
    found(browser, "details.more > summary")[0].click()
    visit("/rows?")
    assert browser.find_element(By.NAME, "attribute").is_displayed()
    fill(browser, "attribute", "kind")
    fill(browser, "value", "rare")
    browser.find_element(By.CSS_SELECTOR, "[data-adds]").click()
    fill(browser, "attribute1", "s")
    fill(browser, "comparison1", "<")
    fill(browser, "value1", "50")
    Submitter(browser).press("Search", "5 rows found")
    link(browser, "Clear").click()
    waiting(browser).until(lambda _: found(browser, ".recent a"))
    link(browser, "kind = rare, s < 50").click()
    waiting(browser).until(lambda _: "5 rows found" in text_of(browser, "main"))
    assert problems(browser) == []


def test_tables_beside_a_page_are_filtered(
    songs: Live, browser: webdriver.Chrome, visit: Callable[[str], None]
) -> None:
    visit("/rows?")
    tables = found(browser, ".site-tables a")
    assert [each.text for each in tables] == ["songs"]
    field = browser.find_element(By.CSS_SELECTOR, ".site-tables input")
    field.send_keys("on ng")
    assert tables[0].is_displayed()
    field.send_keys("x")
    assert not tables[0].is_displayed()


def test_another_index_has_other_fields(
    songs: Live, browser: webdriver.Chrome, visit: Callable[[str], None]
) -> None:
    visit("/rows?key0=p&")
    labels = [each.text for each in found(browser, "fieldset label")]
    assert any(each.startswith("p (S)") for each in labels)
    fill(browser, "index", "by-kind")
    waiting(browser).until(lambda _: "kind (S)" in text_of(browser, "form.search"))
    assert browser.find_element(By.NAME, "key0").get_attribute("value") == ""


def test_chosen_columns_are_remembered(
    songs: Live, browser: webdriver.Chrome, visit: Callable[[str], None]
) -> None:
    visit("/rows?")
    press = Submitter(browser).press
    found(browser, "details.columns > summary")[0].click()
    found(browser, ".columns input[value=kind]")[0].click()
    press("Apply", "rows found")
    visit("/rows?")
    waiting(browser).until(lambda _: "columns=x" in browser.current_url)
    assert [each.text for each in found(browser, "#rows thead th")][1:] == ["p", "s", "x"]
    found(browser, "details.columns > summary")[0].click()
    link(browser, "Default columns").click()
    waiting(browser).until(lambda _: len(found(browser, "#rows thead th")) == 5)
    visit("/rows?")
    assert "columns" not in browser.current_url


def test_a_rare_filter_is_gone_on_with_by_itself(
    songs: Live, browser: webdriver.Chrome, visit: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_SECONDS", 0.0)
    monkeypatch.setattr(reading, "_SCANNED", 10)
    visit("/rows?attribute=kind&value=rare&")
    waiting(browser).until(lambda _: text_of(browser, "#count") == "12 rows found, 120 scanned.")
    assert len(found(browser, "#rows tbody tr")) == 12
    assert not found(browser, "#onward") and problems(browser) == []


def test_a_rare_filter_is_cancelled(
    songs: Live, browser: webdriver.Chrome, visit: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_SECONDS", 0.0)
    monkeypatch.setattr(reading, "_SCANNED", 1)
    visit("/rows?attribute=absent&comparison=exists&")
    browser.find_element(By.XPATH, "//button[text()='Cancel']").click()
    waiting(browser).until(lambda _: found(browser, "#onward"))
    assert "so far" in text_of(browser, "#count")


def test_a_long_change_goes_on_by_itself(
    songs: Live, browser: webdriver.Chrome, visit: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_pages, "_ROWS", 7)
    visit("/rows/bulk?attribute=kind&value=common&change=delete&")
    Submitter(browser).press("Delete all found rows", "rows deleted")
    waiting(browser).until(lambda _: "108 rows deleted" in text_of(browser, "#bulk-count"))
    waiting(browser).until(lambda _: "so far" not in text_of(browser, "#bulk-count"))
    assert songs.client.scan(TableName="songs", Select="COUNT")["Count"] == 12
    assert problems(browser) == []


def test_statements_are_kept_in_the_browser(
    songs: Live, browser: webdriver.Chrome, visit: Callable[[str], None]
) -> None:
    visit("/statement?")
    press = Submitter(browser).press
    texts = ["SELECT * FROM songs WHERE s = 1", "SELECT p FROM songs WHERE x = '<b>'"]
    for text in texts:
        fill(browser, "statement", text)
        press("Run", " found")
    visit("/statement?")
    kept = found(browser, "button.statement")
    assert [each.text for each in kept] == texts[::-1]
    kept[1].click()
    press("Run", "1 row found")
    browser.find_element(By.CSS_SELECTOR, "[data-clears]").click()
    visit("/statement?")
    assert not found(browser, "button.statement")


def test_long_values_open_in_place(
    songs: Live, browser: webdriver.Chrome, visit: Callable[[str], None]
) -> None:
    item: dict[str, Any] = {"p": {"S": "long"}, "s": {"N": "1"}, "x": {"S": "word " * 200}}
    songs.client.put_item(TableName="songs", Item=item)
    visit("/rows?key0=long&")
    [value] = found(browser, "details.long")
    assert len(value.text) < 100
    value.find_element(By.TAG_NAME, "summary").click()
    assert len(value.text) > 900


# The form of a row

ORDER: dict[str, Any] = {
    "p": {"S": "order"}, "s": {"N": "1"}, "gift": {"BOOL": False}, "total": {"N": "12.50"}, "old": {"S": "x"},
    "items": {"L": [{"M": {"sku": {"S": "A"}, "count": {"N": "12345678901234567890123456789012345678"}}}]},
    "sizes": {"NS": ["1", "12345678901234567890"]}, "none": {"NULL": True},
}  # fmt: skip


def order_of(songs: Live) -> Any:
    key = {"p": ORDER["p"], "s": ORDER["s"]}
    item = songs.client.get_item(TableName="songs", Key=key, ConsistentRead=True)["Item"]
    return {name: {"NS": sorted(value["NS"])} if "NS" in value else value for name, value in item.items()}


def field_of(browser: webdriver.Chrome, name: str) -> WebElement:
    """Return the fieldset of an attribute."""
    path = f"//fieldset[legend = '{name}']"
    return browser.find_element(By.XPATH, path)


def test_a_form_marks_its_changes_and_ctrl_enter_saves_them(
    songs: Live, browser: webdriver.Chrome, visit: Callable[[str], None]
) -> None:
    songs.client.put_item(TableName="songs", Item=ORDER)
    visit("/rows?key0=order&")
    link(browser, "1").click()
    link(browser, "Edit").click()
    assert not found(browser, "fieldset.changed")
    field_of(browser, "gift").find_element(By.CSS_SELECTOR, "[role=switch]").click()
    total = field_of(browser, "total").find_element(By.CSS_SELECTOR, "[name^=value]")
    total.send_keys("x")
    assert (
        field_of(browser, "total").find_element(By.CSS_SELECTOR, ".error").text.startswith("This must be a")
    )
    total.send_keys(Keys.BACKSPACE)
    assert not found(browser, ".error")
    field_of(browser, "old").find_element(By.CSS_SELECTOR, "[name=step]").click()
    tree = field_of(browser, "items").find_element(By.CSS_SELECTOR, ".tree")
    tree.find_element(By.CSS_SELECTOR, "[aria-label='Value of items member sku']").send_keys("B")
    tree.find_element(By.CSS_SELECTOR, "[aria-label='Remove items member count']").click()
    tree.find_element(By.CSS_SELECTOR, "[aria-label='Add to items member']").click()
    browser.switch_to.active_element.send_keys("sku", Keys.TAB, Keys.TAB, "XL", Keys.CONTROL, Keys.ENTER)
    name = browser.switch_to.active_element  # the page has not left
    assert name.get_attribute("value") == "sku" and name.get_attribute("aria-invalid") == "true"
    error = field_of(browser, "items").find_element(By.CSS_SELECTOR, ".error")
    assert error.text == "There is another member of this name."
    name.clear()
    name.send_keys("size")
    assert not found(browser, ".error")
    assert len(found(browser, "fieldset.changed")) == 2 and len(found(browser, "fieldset.removed")) == 1
    assert text_of(browser, "#changes-made") == "3 changes to save"
    total.send_keys(Keys.CONTROL, Keys.ENTER)
    waiting(browser).until(lambda _: "As JSON" in text_of(browser, "main"))
    items = [{"M": {"sku": {"S": "AB"}, "size": {"S": "XL"}}}]
    expected = {**ORDER, "gift": {"BOOL": True}, "total": {"N": "12.5"}, "items": {"L": items}}
    del expected["old"]
    assert order_of(songs) == expected
    assert problems(browser) == []


def test_json_and_tree_of_a_value_follow_each_other(
    songs: Live, browser: webdriver.Chrome, visit: Callable[[str], None]
) -> None:
    songs.client.put_item(TableName="songs", Item=ORDER)
    visit("/rows?key0=order&")
    link(browser, "1").click()
    link(browser, "Edit").click()
    sizes = field_of(browser, "sizes")
    document = sizes.find_element(By.TAG_NAME, "textarea")
    assert [each.get_attribute("value") for each in sizes.find_elements(By.CSS_SELECTOR, ".leaf")] == [
        "1",
        "12345678901234567890",
    ]
    document.clear()
    document.send_keys("[2, 3")
    assert sizes.find_element(By.CSS_SELECTOR, ".error").text == "This must be a JSON list such as [1, 2.5]."
    document.send_keys(", 4]")
    assert len(sizes.find_elements(By.CSS_SELECTOR, ".leaf")) == 3
    sizes.find_elements(By.CSS_SELECTOR, ".leaf")[0].send_keys("0")
    assert document.get_attribute("value") == "[20, 3, 4]"
    number = field_of(browser, "none").find_element(By.CSS_SELECTOR, "[name^=type]")
    Select(number).select_by_visible_text("M")
    assert field_of(browser, "none").find_element(By.TAG_NAME, "textarea").get_attribute("value") == "{}"
    document.send_keys(Keys.CONTROL, Keys.ENTER)
    waiting(browser).until(lambda _: "As JSON" in text_of(browser, "main"))
    assert order_of(songs) == {
        **ORDER,
        "total": {"N": "12.5"},
        "sizes": {"NS": ["20", "3", "4"]},
        "none": {"M": {}},
    }
    assert problems(browser) == []


def test_one_value_is_changed_in_the_list(
    songs: Live, browser: webdriver.Chrome, visit: Callable[[str], None]
) -> None:
    songs.client.put_item(TableName="songs", Item=ORDER)
    visit("/rows?key0=order&")

    def cell(name: str) -> WebElement:
        return browser.find_element(By.CSS_SELECTOR, f"#rows td[data-label={name}]")

    def entry() -> WebElement:
        waiting(browser).until(lambda _: found(browser, ".in-cell .entry"))
        return browser.find_element(By.CSS_SELECTOR, ".in-cell fieldset:not([hidden]) [name^=value]")

    ActionChains(browser).double_click(cell("total")).perform()
    entry().send_keys("x", Keys.ENTER)
    waiting(browser).until(lambda _: found(browser, ".in-cell [role=alert]"))
    assert text_of(browser, ".in-cell [role=alert]") == "This must be a number of at most 38 digits."
    browser.get_log("browser")  # the refusal is in it
    entry().send_keys(Keys.BACKSPACE, "12.57", Keys.ENTER)
    waiting(browser).until(lambda _: cell("total").text == "12.57" and not found(browser, ".in-cell"))

    browser.switch_to.active_element.send_keys(Keys.ARROW_LEFT, Keys.ENTER)  # with the keyboard alone
    waiting(browser).until(lambda _: found(browser, ".in-cell"))
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not found(browser, ".in-cell")
    theirs = {**ORDER, "total": {"N": "1"}}
    ActionChains(browser).double_click(cell("gift")).perform()
    entry().click()
    songs.client.put_item(TableName="songs", Item=theirs)
    entry().send_keys(Keys.CONTROL, Keys.ENTER)
    waiting(browser).until(lambda _: found(browser, ".in-cell [role=alert]"))
    assert "changed after this form was opened" in text_of(browser, ".in-cell [role=alert]")
    assert order_of(songs) == theirs
    browser.get_log("browser")
