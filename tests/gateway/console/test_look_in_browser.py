"""Every page of the console in Chromium, at the widths of a desktop and a phone, light and dark: contrast of each text, names for
screen readers, use with the keyboard, no sideways scrolling, no heading broken within a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from tablegate.gateway.control.access import CONSOLE
from tests.gateway.console.test_look import contrast
from tests.support.browser import SIZES, appear_as, in_each_look, needs_chromium
from tests.support.console_screenshots import PAGES, paths_of, photograph
from tests.support.running import Running

pytestmark = [needs_chromium, pytest.mark.clients]
NO_PAGES = {
    "/changes.json",
    "/export",
    "/chart",
    "/static/<path:filename>",
    "/<path:rest>",
    "/sign-in/issuer",
    "/sign-in/issuer/return",
}
"""Routes whose answers are parts of pages, or lead to another page."""


@pytest.fixture(scope="module")
def paths(seeded: Running, browser: webdriver.Chrome) -> dict[str, str]:
    return paths_of(seeded, browser)


def test_all_pages_are_looked_at(seeded: Running) -> None:
    routes = {
        rule.rule.removeprefix(CONSOLE)
        for rule in seeded.app.url_map.iter_rules()
        if rule.rule.startswith(CONSOLE) and "GET" in (rule.methods or ())
    }
    assert routes - NO_PAGES <= {path.partition("?")[0] for path in PAGES.values()}


@in_each_look
@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read_and_used_with_the_keyboard(
    seeded: Running, browser: webdriver.Chrome, paths: dict[str, str], name: str, size: str, scheme: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    appear_as(browser, size, scheme)
    browser.get_log("browser")
    browser.get(f"{seeded.url}/_tablegate/console{paths[name]}")
    try:
        check_page(browser, SIZES[size][0])
    except AssertionError:
        photograph(browser, tmp_path / f"{name}-{size}-{scheme}.png", screens=3)
        raise
    logged = [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    assert name == "not-found" or logged == []


def check_page(browser: webdriver.Chrome, width: int) -> None:
    """Check that the page is as wide as this, and that it can be read and used with the keyboard."""
    found = browser.execute_script(FINDINGS)
    assert {key: value for key, value in found.items() if key != "colours"} == {
        "width": width, "broken": [], "unnamed": [], "doubled": [], "headings": 1, "frame": True,
    }  # fmt: skip
    faint = [
        each for each in found["colours"] if contrast(_hexadecimal(each[1]), _hexadecimal(each[2])) < 4.5
    ]
    assert faint == []
    assert _nameless(browser) == []
    check_keyboard(browser)


CONTROLS = {
    "button", "checkbox", "combobox", "DisclosureTriangle", "dialog", "image", "link", "listbox", "navigation", "progressbar",
    "radio", "region", "searchbox", "spinbutton", "switch", "textbox",
}  # fmt: skip
"""Roles whose elements a screen reader announces with their names."""


def _nameless(browser: webdriver.Chrome) -> list[str]:
    """Return the controls without a name in Chromium's accessibility tree."""
    found = []
    for node in browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]:
        role = node.get("role", {}).get("value")
        if role in CONTROLS and not node["ignored"] and not node["name"]["value"].strip():
            described = {"backendNodeId": node["backendDOMNodeId"]}
            found.append(f"{role}: {browser.execute_cdp_cmd('DOM.describeNode', described)['node']}")
    return found


def check_keyboard(browser: webdriver.Chrome) -> None:
    """Check that the key Tab reaches every control in the order of the page, and that a frame shows where it is.

    A field for a time has a stop for each of its parts.
    """
    number, times = browser.execute_script(FOLLOW_FOCUS)
    assert number > 0
    browser.switch_to.active_element.send_keys(Keys.TAB * (number + 8 * times))
    reached, unseen = browser.execute_script("return [window.reached, window.unseen]")
    assert reached[:number] == list(range(number))
    assert unseen == []


def _hexadecimal(colour: str) -> str:
    """Return `rgb(1, 2, 3)` as `#010203`. Translucent colours are not used."""
    assert colour.startswith("rgb("), colour
    parts: list[Any] = colour[4:-1].split(",")
    return "#" + "".join(f"{int(part):02x}" for part in parts)


FINDINGS = """
const apart = ".visually-hidden, .skip, option";
const shown = element => element.checkVisibility({visibilityProperty: true}) && !element.closest(apart);
const behind = element => {
  for (let each = element; each; each = each.parentElement) {
    const colour = getComputedStyle(each).backgroundColor;
    if (colour !== "rgba(0, 0, 0, 0)" && colour !== "transparent") return colour;
  }
  return "rgb(255, 255, 255)";
};
const texts = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode;
  if (text.data.trim() && shown(text.parentElement)) texts.push(text);
}

const colours = new Map();
for (const text of texts) {
  const element = text.parentElement;
  if (element.closest(":disabled")) continue;
  const style = getComputedStyle(element);
  const colour = element instanceof SVGElement ? style.fill : style.color;
  const key = [colour, behind(element)];
  colours.set(String(key), [text.data.trim().slice(0, 40), ...key]);
}

const broken = [];
for (const text of texts) {
  const heading = text.parentElement.closest("h1, h2, h3, th, legend, label, summary, button");
  if (!heading) continue;
  for (const word of text.data.matchAll(/\\S+/g)) {
    const range = document.createRange();
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    const lines = new Set([...range.getClientRects()].map(line => Math.round(line.top)));
    if (lines.size > 1) broken.push(word[0]);
  }
}

const unnamed = [...document.images].filter(image => !image.hasAttribute("alt")).map(image => image.src);
const ids = [...document.querySelectorAll("[id]")].map(element => element.id);
return {
  width: document.documentElement.scrollWidth,
  broken, unnamed,
  doubled: ids.filter((id, at) => ids.indexOf(id) !== at),
  headings: document.querySelectorAll("h1").length,
  frame: Boolean(document.querySelector("header") && document.querySelector("main") && document.documentElement.lang),
  colours: [...colours.values()],
};
"""

FOLLOW_FOCUS = """
document.querySelector(".skip").focus();
const controls = "a[href]:not(.skip), button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
const stops = [...document.querySelectorAll(controls)].filter(
  element => element.checkVisibility({visibilityProperty: true}) && element.tabIndex >= 0 && !element.disabled);
window.reached = [];
window.unseen = [];
document.addEventListener("focusin", ({target}) => {
  if (!stops.includes(target)) return;
  window.reached.push(stops.indexOf(target));
  const {outlineStyle, outlineWidth} = getComputedStyle(target);
  if (outlineStyle === "none" || parseFloat(outlineWidth) < 2) window.unseen.push(target.outerHTML.slice(0, 200));
});
return [stops.length, document.querySelectorAll("input[type=datetime-local]").length];
"""
