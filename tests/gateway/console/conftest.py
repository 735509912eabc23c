"""One browser for all tests of a process, and a server whose tables have rows, for the tests that need no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium import webdriver

from tests.support.browser import appear_as, chromium
from tests.support.console_screenshots import seeded_server
from tests.support.running import Running


@pytest.fixture(scope="session")
def chromium_of_process() -> Iterator[webdriver.Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def browser(chromium_of_process: webdriver.Chrome) -> webdriver.Chrome:
    """The browser without what it kept for the tests of other modules."""
    chromium_of_process.execute_cdp_cmd("Network.clearBrowserCookies", {})
    appear_as(chromium_of_process)
    chromium_of_process.get_log("browser")
    return chromium_of_process


@pytest.fixture(scope="module")
def seeded() -> Iterator[Running]:
    """The server of the screenshots."""
    with seeded_server() as running:
        yield running
