"""What pages add to the facts of their request for the audit log."""

from __future__ import annotations

from collections.abc import Sequence

from tablegate.gateway.console.value_texts import text_of
from tablegate.gateway.model.request_facts import RequestKind
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Key
from tablegate.gateway.server.flask_bridge import current_request


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
