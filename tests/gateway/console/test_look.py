"""The look of the console: contrast of its colours, and error pages in the frame of the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import requests

from tablegate.gateway.console.blueprint import Entry
from tests.conftest import Serve
from tests.gateway.console.test_console import Console
from tests.support.live_dynamodb import Live
from tests.support.running import ENTRIES
from tests.support.tables import each_row
from tests.support.waiting import PATIENCE_S

STATIC = Path(__file__).parents[3] / "tablegate/gateway/console/static"
TOKENS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", (STATIC / "tokens.css").read_text()
    )
}
SURFACES = ("page", "surface", "sunken", "hover")
TEXTS = [(text, surface) for text in ("text", "muted", "link") for surface in SURFACES] + [
    ("on-primary", "primary"),
    ("on-danger", "danger"),
    *[(state, f"{state}-back") for state in ("ok", "warn", "bad", "info")],
    *[("text", f"{state}-back") for state in ("ok", "warn", "bad", "info")],
    *[("link", f"{state}-back") for state in ("ok", "warn", "bad", "info")],
    ("bad", "surface"),
    ("bad", "page"),
    *[(f"curve-{number}", "surface") for number in range(1, 7)],
]
# Borders of fields, focus rings and bars of progress: WCAG 2.2, 1.4.11.
SHAPES = [(shape, surface) for shape in ("field-line", "primary") for surface in SURFACES]


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (WCAG 2.2, definition "relative luminance")."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours (WCAG 2.2, definition "contrast ratio")."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_contrast_of_black_and_white_is_21() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@each_row("mode", [0, 1])
@each_row("text, surface", TEXTS)
def test_text_has_the_contrast_of_aa(text: str, surface: str, mode: int) -> None:
    assert contrast(TOKENS[text][mode], TOKENS[surface][mode]) >= 4.5


@each_row("mode", [0, 1])
@each_row("shape, surface", SHAPES)
def test_shapes_of_controls_have_the_contrast_of_aa(shape: str, surface: str, mode: int) -> None:
    assert contrast(TOKENS[shape][mode], TOKENS[surface][mode]) >= 3


def test_colours_stand_in_the_tokens_only() -> None:
    """Every colour is a token with a light and a dark value, and none is made translucent by `opacity`."""
    rules = (STATIC / "console.css").read_text()
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b", rules) == []
    assert set(re.findall(r"opacity: ([\d.]+)", rules)) <= {"1"}
    used = set(re.findall(r"var\(--([\w-]+)\)", rules))
    assert used <= set(re.findall(r"--([\w-]+):", (STATIC / "tokens.css").read_text()))


@pytest.fixture(params=ENTRIES)
def console(request: pytest.FixtureRequest, serve: Serve, database_url: str) -> Console:
    return Console(serve(database_url, entry=request.param).url)


def test_error_pages_stand_in_the_frame_of_the_site(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [
        console.get("/nothing", 404),
        console.get("/sign-out", 405),
        console.post("/sign-in", 413, access_id="a" * 10_000),
        console.post("/row/put", 413, row="a" * 7_000_000),
        console.get("/rows", 404, namespace="shared", name="none"),
    ]
    monkeypatch.setattr(Entry, "_for_visitor", lambda *_: 1 / 0)
    pages.append(console.get("/", 500))
    for page in pages:
        assert "<header" in page and 'role="alert"' in page
        assert "console.css" in page and "Traceback" not in page and "ZeroDivision" not in page


def test_an_error_page_has_the_navigation_of_a_visitor_who_has_signed_in(
    serve: Serve, database_url: str
) -> None:
    console = Console(serve(database_url, auth="strict", admin_token="the token").url)
    assert 'aria-label="Pages"' not in console.get("/nothing", 404)
    console.sign_in("administrator", "the token")
    for path, status in (("/nothing", 404), ("/sign-out", 405)):
        assert 'aria-label="Pages"' in console.get(path, status)


def test_a_page_without_content_says_what_to_do(console: Console) -> None:
    for path, advice in (
        ("/", "Create one"), ("/jobs", "Start one"), ("/grants", "tablegate grants add"), ("/metrics", "Create a table"),
    ):  # fmt: skip
        assert advice in advice_of(console.get(path))
    Live(console.url.partition("/_tablegate")[0]).create("p:S", name="songs")
    songs = {"namespace": "shared", "name": "songs"}
    assert "Write a row" in advice_of(console.get("/rows", **songs))
    assert "show all rows" in advice_of(console.get("/rows", **songs, key0="a"))
    assert "Enable one" in advice_of(console.get("/changes", **songs))


def advice_of(page: str) -> str:
    """Return the text of the only empty state of a page."""
    [found] = re.findall(r'<div class="empty">(.*?)</div>', page, re.DOTALL)
    return str(found)


def test_methods_of_a_page_are_named(console: Console) -> None:
    answer = requests.delete(f"{console.url}/sign-in", timeout=PATIENCE_S)
    assert answer.status_code == 405
    assert answer.headers["Allow"] == "GET, POST"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_the_address_without_a_slash_leads_to_the_console(console: Console) -> None:
    answer = requests.get(console.url, timeout=PATIENCE_S)
    assert answer.status_code == 200
    assert answer.url == f"{console.url}/"
