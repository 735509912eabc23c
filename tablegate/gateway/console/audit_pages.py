"""The page about the audit log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import flask

from tablegate.gateway.console.pages import Pages, Route, number_of
from tablegate.gateway.console.rendering import render
from tablegate.gateway.console.searches import BadSearch
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.control import access
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.observability.audit_sinks import is_readable

if TYPE_CHECKING:
    from tablegate.gateway.control.administration import Administration

EVENTS = 100
"""Maximum number of events on a page."""
LINES = 20_000
"""Maximum number of lines that are searched for a page."""
_LATEST_MS = 253_402_300_799_000
_FILTERS = ("event", "who", "table", "operation")


class AuditPages(Pages):
    """The events of the audit log, for the administrator."""

    def __init__(self, gateway: Gateway, administration: Callable[[], Administration] | None) -> None:
        super().__init__(gateway)
        self._administration = administration

    def reads(self) -> Sequence[Route]:
        return (Route("/audit", self.audit),)

    def audit(self, visitor: ConsoleUser) -> Any:
        """Show the newest events that a filter finds."""
        access.check_administrator(visitor.name)
        given = {
            name: flask.request.args.get(name, "").strip()[:255] for name in (*_FILTERS, "since", "until")
        }
        errors, times = {}, {}
        for name, default in (("since", 0), ("until", _LATEST_MS)):
            try:
                times[name] = _milliseconds(given[name], default)
            except BadSearch as error:
                errors[name], times[name] = str(error), default
        is_available = is_readable(self._gateway.settings) and self._administration is not None
        found: list[dict[str, Any]] = []
        counts = {"lines": 0}
        skipped = number_of(flask.request.args.get("skipped", ""))
        if is_available and not errors:
            found = list(islice(self._events(given, times, counts), skipped, skipped + EVENTS))
        return render(
            "audit.html", 400 if errors else 200, visitor=visitor, given=given, errors=errors, events=found,
            searched=counts["lines"], is_cut=counts["lines"] >= LINES, most=EVENTS, is_available=is_available,
            older=_older(given, skipped, found) if len(found) == EVENTS else None,
        )  # fmt: skip

    def _events(
        self, given: Mapping[str, str], times: Mapping[str, int], counts: dict[str, int]
    ) -> Iterator[dict[str, Any]]:
        """Yield events that match, newest first, and count the lines that were read."""
        assert self._administration is not None
        lines = self._administration().audit_lines(self._gateway.settings, times["since"], times["until"])
        for line in islice(lines, LINES):
            counts["lines"] += 1
            try:
                event = json.loads(line)
                at_ms = _milliseconds(event["time"][:19], 0)
            except (ValueError, KeyError, TypeError, BadSearch):
                continue
            if times["since"] <= at_ms <= times["until"] and _matches(event, given):
                yield event


def _older(given: Mapping[str, str], skipped: int, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields of the next page. It begins in the last second of this page, after the events of that second."""
    last = found[-1]["time"][:19]
    shown = sum(each["time"][:19] == last for each in found)
    if given["until"] == last:
        shown += skipped
    return {**given, "until": last, "skipped": shown}


def _matches(event: Mapping[str, Any], given: Mapping[str, str]) -> bool:
    """True if an event has the values of the filter. Of an operation a part is enough."""
    tables = event.get("tables") or []
    return (
        (not given["event"] or event.get("event") == given["event"])
        and (not given["who"] or event.get("who") == given["who"])
        and (not given["table"] or given["table"] in tables)
        and (not given["operation"] or given["operation"].lower() in str(event.get("operation", "")).lower())
    )


def _milliseconds(text: str, default: int) -> int:
    """Return a time in UTC as milliseconds since 1970. Raises BadSearch."""
    if not text:
        return default
    try:
        return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise BadSearch("Write the time as 2026-01-31T23:59:59, in UTC.") from None
