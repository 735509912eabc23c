"""The base of the console's pages: the gateway, the forms of rows, the tables of a visitor, and facts for the audit log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import flask

from tablegate.gateway.console.reading import TableReader
from tablegate.gateway.console.sign_in import ConsoleUser
from tablegate.gateway.console.value_texts import text_of
from tablegate.gateway.dialects.adapter import RowDisplay, console_parts
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.flask_bridge import current_request
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.request_facts import RequestKind
from tablegate.gateway.model.tables.changes import Change
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Key


def note_definition(operation: str, tables: Sequence[str]) -> None:
    """Note that the request changes a definition."""
    request = current_request()
    if request.facts is not None:
        named = [name[:255] for name in tables]
        request.facts = request.facts._replace(operation=operation, kind=RequestKind.DEFINITION, tables=named)


def note_table(name: str) -> None:
    """Note a further table of the request, such as that of a statement."""
    request = current_request()
    if request.facts is not None:
        request.facts = request.facts._replace(tables=list(dict.fromkeys([*request.facts.tables, name])))


def note_keys(table: Table, keys: Sequence[Key]) -> None:
    """Note the keys of rows that the request writes."""
    request = current_request()
    if request.facts is not None:
        names = table.key_schema.names
        noted = [
            (table.name, {name: text_of(value) for name, value in zip(names, key.values, strict=True)})
            for key in keys
        ]
        request.facts = request.facts._replace(keys=[*request.facts.keys, *noted])


FORM_FIELDS = 16
"""Maximum number of fields of a form, unless its route says otherwise."""


class Route(NamedTuple):
    """A path below the console and the function that returns its page. The function's name is the name of the route.

    `fields`: maximum number of fields of the form.
    """

    path: str
    page: Callable[[ConsoleUser], Any]
    fields: int = FORM_FIELDS


class Tab(NamedTuple):
    """The link to a page in the head of the pages about one table. `page`: the name of the page's route."""

    page: str
    text: str
    is_shown: Callable[[Table], bool]


class RowRights(NamedTuple):
    """What a visitor can do with one row."""

    get: bool
    put: bool
    delete: bool


class Pages:
    """The pages about one subject, each a function of its visitor and the current request.

    `tab`: the link to the pages of a capability.
    """

    tab: Tab | None = None

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._displays = {name: part.display for name, part in console_parts(gateway.settings).items()}

    def reads(self) -> Sequence[Route]:
        """Return the pages that show something."""
        return ()

    def writes(self) -> Sequence[Route]:
        """Return the forms that change something. They exist with `--console-writes` only."""
        return ()

    def _display(self, table: Table) -> RowDisplay:
        """Return the display of the dialect that created a table, or the first one of the server."""
        return self._ordered(table)[0]

    def _ordered(self, table: Table) -> list[RowDisplay]:
        """Return all displays. Those of the dialect that created a table come first."""
        return sorted(self._displays.values(), key=lambda each: not each.is_own(table))

    def _row_rights(self, reading: TableReader, table: Table) -> RowRights:
        """Return what the visitor can do with rows. There are no changes without `--console-writes`."""
        writes = self._gateway.settings.console_writes
        return RowRights(
            self._may_see(reading, table, Permission.READ),
            writes and self._may_see(reading, table, Permission.PUT),
            writes and self._may_see(reading, table, Permission.DELETE),
        )

    def _reading(self, visitor: ConsoleUser) -> TableReader:
        return TableReader(self._gateway.engine, visitor)

    def _table(self, reading: TableReader, purpose: Purpose) -> Table:
        given = flask.request.values
        return reading.table(given.get("namespace", ""), given.get("name", ""), purpose)

    def _may_see(self, reading: TableReader, table: Table, permission: Permission) -> bool:
        return reading.may(permission, table.namespace, table.name)

    def _change(self, table: Table, change: Change) -> dict[str, Any]:
        images = [
            None if row is None else self._display(table).shown_row(table, row)
            for row in (change.old, change.new)
        ]
        key = ", ".join(map(text_of, change.key_values.values()))
        return {
            "kind": change.kind.value, "at_ms": change.at_ms, "key": key, "actor": change.actor,
            "old": images[0], "new": images[1],
        }  # fmt: skip


def number_of(text: str) -> int:
    """Return the number in a field of a form or a link, 0 for another text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0


def stream_of(table: Table) -> str:
    """Return the view of a table's stream. "" if it has none."""
    rule = table.rules.stream
    return rule.view if rule is not None and rule.enabled else ""
