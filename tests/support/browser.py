"""Debian's Chromium without a window, at the width of a desktop or a phone, light or dark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from selenium import webdriver

from tests.support.soak import minutes_long
from tests.support.waiting import PATIENCE_S

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_chromium = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no browser: apt-get install chromium chromium-driver"
)
DESKTOP, PHONE = (1280, 900), (390, 844)
SIZES = {"desktop": DESKTOP, "phone": PHONE}
SCHEMES = ("light", "dark")


def _in_looks(*always: tuple[str, str]) -> pytest.MarkDecorator:
    long = [minutes_long, pytest.mark.soak]
    looks = [(size, scheme) for size in SIZES for scheme in SCHEMES]
    return pytest.mark.parametrize(
        ("size", "scheme"),
        [look if look in always else pytest.param(*look, marks=long) for look in looks],
    )


in_each_look = _in_looks(("desktop", "light"), ("phone", "dark"))
"""Each width and each colour scheme once, and all four combinations under `make soak`."""
in_one_look = _in_looks(("phone", "dark"))
"""The smallest width, and all four combinations under `make soak`. For walks of many seconds."""


@contextmanager
def chromium() -> Iterator[webdriver.Chrome]:
    """Run a browser that keeps the errors of pages in its log."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,900", "--hide-scrollbars",
    ):  # fmt: skip
        options.add_argument(argument)
    options.add_experimental_option("browserStartupTimeout", int(PATIENCE_S * 1000))  # in milliseconds
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(str(DRIVER)))
    try:
        yield driver
    finally:
        driver.quit()


def appear_as(browser: webdriver.Chrome, size: str = "desktop", scheme: str = "light") -> None:
    """Give the pages of a browser a size of SIZES and a colour scheme of SCHEMES."""
    width, height = SIZES[size]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    agent = browser.execute_cdp_cmd("Browser.getVersion", {})["userAgent"]
    named = {"userAgent": f"{agent} Mobile" if size == "phone" else agent}
    browser.execute_cdp_cmd("Emulation.setUserAgentOverride", named)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
