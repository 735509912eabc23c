"""Ten tasks of a developer in Chromium, with the number of their steps (docs/operate/console.md).

A step presses a link or a button, fills in a field, or chooses an option. Each task begins on the list of tables and uses only
what the pages show.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from tests.gateway.console.test_browser import problems, waiting
from tests.support.browser import needs_chromium
from tests.support.running import Running

pytestmark = [needs_chromium, pytest.mark.clients]
PAGE = Path(__file__).parents[3] / "docs/operate/console.md"
STEPS = {
    name: int(number)
    for name, number in re.findall(r"^\| (\w[^|]+?) \| [^|]+ \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
}


class Developer:
    """A user of the console who counts steps."""

    def __init__(self, seeded: Running, browser: webdriver.Chrome) -> None:
        self.steps = 0
        self._browser = browser
        browser.get(f"{seeded.url}/_tablegate/console/")
        browser.execute_script("localStorage.clear()")  # what earlier tasks have unfolded

    def press(self, text: str, place: str = "main") -> None:
        """Press the first visible link, button or heading of details with this text."""
        controls = "self::a or self::button or self::summary"
        shown = f"starts-with(normalize-space(.), '{text}')"
        self._one_of(f"//{place}//*[{controls}][not(@aria-hidden)][{shown}]").click()

    def fill(self, label: str, value: str, group: str = "") -> None:
        """Fill in the field of a label, or choose its option. `group`: the name of its fields."""
        label_of = f"label[starts-with(normalize-space(.), '{label}')]"
        part = f"//*[@role = 'group'][@aria-label = '{group}']" if group else ""
        controls = "self::input or self::select or self::textarea"
        labelled = f"ancestor::{label_of} or @id = //{label_of}/@for"
        field = self._one_of(f"{part}//*[{controls}][not(@readonly)][{labelled}]")
        if field.tag_name == "select":
            Select(field).select_by_visible_text(value)
        else:
            field.clear()
            field.send_keys(value)

    def _one_of(self, path: str) -> webdriver.remote.webelement.WebElement:
        self.steps += 1
        found: list[webdriver.remote.webelement.WebElement] = []

        def is_shown(_: object) -> bool:
            found[:] = [each for each in self._browser.find_elements(By.XPATH, path) if each.is_displayed()]
            return bool(found)

        waiting(self._browser).until(is_shown)
        return found[0]

    def confirm(self) -> None:
        """Accept the question of the browser."""
        self.steps += 1
        self._browser.switch_to.alert.accept()

    def sees(self, text: str) -> None:
        """Wait until the page has a text."""
        waiting(self._browser).until(lambda _: text in self._browser.find_element(By.TAG_NAME, "main").text)


def find_a_row(user: Developer) -> None:
    user.press("orders")
    user.fill("customer", "ben")
    user.fill("order", "1041")
    user.press("Search")
    user.sees("1 row found")
    user.press("ben")
    user.sees("As JSON")


def find_rows_by_an_attribute(user: Developer) -> None:
    user.press("orders")
    user.press("Filters")
    user.fill("Attribute", "items[0].sku")
    user.fill("Comparison", "begins with", "Filter 1")
    user.fill("Value", "A-404")
    user.press("Search")
    user.sees("1 row found, 200 scanned")


def read_an_index_backwards(user: Developer) -> None:
    user.press("orders")
    user.fill("Index", "by-state")
    user.sees("state (S)")
    user.fill("state", "paid")
    user.press("Filters")
    user.fill("Order", "descending")
    user.press("Search")
    user.sees("rows found")


def copy_a_search_as_code(user: Developer) -> None:
    user.press("orders")
    user.fill("customer", "ada")
    user.press("Search")
    user.press("Code for this search")
    user.press("Copy", "h3[.='boto3']/following-sibling::div[1]")
    user.sees("Copied")


def run_a_statement(user: Developer) -> None:
    user.press("orders")
    user.press("PartiQL")
    user.fill("PartiQL", "SELECT total FROM orders WHERE customer = 'ada'")
    user.press("Run")
    user.sees("20 rows found")


def change_a_value(user: Developer) -> None:
    user.press("customers")
    user.press("ben")
    user.press("Edit")
    user.fill("Value", "Benjamin")
    user.press("Save")
    user.sees("Benjamin")


def add_a_similar_row(user: Developer) -> None:
    user.press("customers")
    user.press("ada")
    user.press("Copy")
    user.fill("Value", "zoe")
    user.press("Save")
    user.sees("zoe")


def delete_all_found_rows(user: Developer) -> None:
    user.press("readings")
    user.press("Filters")
    user.fill("Attribute", "celsius")
    user.fill("Comparison", ">", "Filter 1")
    user.fill("Value", "23")
    user.press("Search")
    user.press("Delete all found")
    user.press("Delete all found rows")
    user.sees("rows deleted")


def see_what_a_change_did(user: Developer) -> None:
    user.press("orders")
    user.press("ada")
    user.press("Changed attributes")
    user.sees("Before")


def find_the_busiest_operation_of_the_day(user: Developer) -> None:
    user.press("Metrics", "header")
    user.press("24 hours")
    user.sees("GetItem")


TASKS = (
    find_a_row, find_rows_by_an_attribute, read_an_index_backwards, copy_a_search_as_code, run_a_statement, change_a_value,
    add_a_similar_row, delete_all_found_rows, see_what_a_change_did, find_the_busiest_operation_of_the_day,
)  # fmt: skip


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.__name__)
def test_a_task_takes_as_many_steps_as_the_documentation_says(
    seeded: Running, browser: webdriver.Chrome, task: object
) -> None:
    user = Developer(seeded, browser)
    assert callable(task)
    task(user)
    assert user.steps == STEPS[task.__name__.replace("_", " ")]
    assert problems(browser) == []
