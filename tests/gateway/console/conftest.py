"""One browser for all tests of a process, and a server whose tables have rows, for the tests that need no others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from tests.conftest import KINDS
from tests.support.browser import appear_as, chromium
from tests.support.console_screenshots import seeded_server
from tests.support.running import Running
from tests.support.soak import is_soak

# These pages read the database themselves, or show what differs between databases.
ON_BOTH_DATABASES = {"test_audit_page.py", "test_health_page.py", "test_transfer.py"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Outside `make soak`, most pages are tested on SQLite alone.

    They call the same commands as the dialects, which tests/adapters and tests/gateway/engine test on both databases.
    """
    folder = Path(__file__).parent
    for item in items:
        if item.path.parent != folder or item.path.name in ON_BOTH_DATABASES or "sqlite" not in KINDS:
            continue
        callspec = getattr(item, "callspec", None)
        if callspec is not None and "postgresql" in callspec.params.values():
            item.add_marker(pytest.mark.soak)
            item.add_marker(pytest.mark.skipif(not is_soak, reason="on SQLite alone, but for make soak"))


@pytest.fixture(scope="session")
def chromium_of_process() -> Iterator[webdriver.Chrome]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def browser(chromium_of_process: webdriver.Chrome) -> webdriver.Chrome:
    """The browser without what it kept for the tests of other modules."""
    chromium_of_process.get("about:blank")  # the last page may ask its server, which has ended, for charts
    chromium_of_process.execute_cdp_cmd("Network.clearBrowserCookies", {})
    appear_as(chromium_of_process)
    chromium_of_process.get_log("browser")
    return chromium_of_process


@pytest.fixture(scope="module")
def seeded() -> Iterator[Running]:
    """The server of the screenshots."""
    with seeded_server() as running:
        yield running
