"""Requests of one signed-in side to the console and the control API, with every identifier of the other side."""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests

from tests.support.waiting import PATIENCE_S
from tests.tenants.attacks.sides import Side

CONSOLE = "/_tablegate/console"
PAGES = ("/table", "/rows", "/row", "/changes", "/changes.json", "/row/delete", "/row/put")
CONTROL = ("/requests", "/clock", "/snapshots", "/faults", "/health", "/reset")
_LINK = re.compile(r'href="([^"]*\?[^"]*)"')
_ASKED = ("namespace", "name", "at", "after", "since", "index")


class Console:
    """A side with a browser."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.session = requests.Session()
        given = {"access_id": side.name, "secret": side.name + " secret"}
        self.session.post(f"{side.url}{CONSOLE}/sign-in", data=given, timeout=PATIENCE_S)

    def ask(self, path: str, method: str = "GET", **members: Any) -> str:
        """Read a page and keep its links."""
        self.side.doing = f"console {method} {path} {members}"
        given = {"params" if method == "GET" else "data": members}
        reply = self.session.request(
            method, self.side.url + path, timeout=PATIENCE_S, allow_redirects=False, **given
        )
        self.side.seen(reply.content)
        self.side.answered(f"console {path}", reply.status_code, "")
        return reply.text

    def furnish(self) -> None:
        """Nothing: it shows what others have made."""

    def fingerprint(self) -> list[Any]:
        """Nothing that others do not show."""
        return []

    def work(self) -> None:
        """Read its own tables and keep the links."""
        chance = self.side.chance
        page = self.ask(CONSOLE + "/")
        for path in ("/rows", "/rows", "/row"):
            links = [html.unescape(each) for each in _LINK.findall(page)]
            links = [each for each in links if self.side.name in each and urlsplit(each).path.endswith(path)]
            for link in links:
                for name, value in parse_qsl(urlsplit(link).query):
                    self.side.bag.keep(f"console {name}", value)
            if links:
                asked = urlsplit(chance.choice(links))
                page = self.ask(asked.path, **dict(parse_qsl(asked.query)))

    def attack(self) -> None:
        """Request a page of the other side or a control operation, sometimes with the other side's name in
        the cookie.
        """
        chance = self.side.chance
        if chance.random() < 0.2:
            self.ask("/_tablegate" + chance.choice(CONTROL), chance.choice(("GET", "POST", "DELETE")))
            return
        page = chance.choice(PAGES)
        members = {name: self.side.foreign(f"console {name}") for name in _ASKED[:2]}
        members |= {
            name: self.side.foreign(f"console {name}") for name in _ASKED[2:] if chance.random() < 0.5
        }
        cookies = self.session.cookies.get_dict()
        if chance.random() < 0.2:
            for name, value in cookies.items():
                forged = value.strip('"').rpartition("|")[0] + "|" + self.side.other.name
                self.session.cookies.set(name, forged, path=CONSOLE)
        self.ask(CONSOLE + page, "POST" if page.count("/") > 1 else "GET", **members)
        self.session.cookies.clear()
        for name, value in cookies.items():
            self.session.cookies.set(name, value, path=CONSOLE)
