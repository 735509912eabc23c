"""Which commands of the command line the audit tells: all that change something.

A command that is not listed here changes something, so that a new one is not forgotten.
"""

from __future__ import annotations

import click

from tablegate.gateway.observability import audit

READING = frozenset(
    {
        "backup", "doctor", "tables", "tables list-backups", "streams list", "jobs list", "credentials list",
        "grants list", "quotas list",
    }
)  # fmt: skip
"""Commands that change nothing in a database of ours."""
OWN_LINES = frozenset(
    {
        "credentials add", "credentials bind", "credentials rotate", "credentials remove", "credentials reseal", "grants add",
        "grants remove", "quotas set", "quotas remove",
    }
)  # fmt: skip
"""Commands that put on record themselves what they have changed."""
_NAMING_TABLES = ("table", "target")


def put_on_record() -> None:
    """Put the command that has run on record, if it is to be."""
    context = click.get_current_context(silent=True)
    operation = "" if context is None else context.command_path.partition(" ")[2]
    if context is None or operation in READING | OWN_LINES:
        return
    given = context.params
    tables = [given[name] for name in _NAMING_TABLES if isinstance(given.get(name), str)]
    audit.record_operation(operation, tables, "done")
