"""Audit records of commands: each command that changes something is recorded.

A command that is in none of the lists below counts as a change, so that a new command is never omitted.
"""

from __future__ import annotations

import click

from tablegate.gateway.observability import audit

READING = frozenset(
    {
        "backup", "doctor", "tables", "tables list-backups", "streams list", "jobs list",
        "credentials list", "grants list", "quotas list",
    }
)  # fmt: skip
"""Commands that do not change the database."""
OWN_LINES = frozenset(
    {
        "credentials add", "credentials bind", "credentials rotate", "credentials remove", "credentials reseal", "grants add",
        "grants remove", "quotas set", "quotas remove",
    }
)  # fmt: skip
"""Commands that write their own, more detailed audit records."""
_TABLE_PARAMETERS = ("table", "target")


def record_current_command() -> None:
    """Record the command that has run, if it changes something and writes no record itself."""
    context = click.get_current_context(silent=True)
    operation = "" if context is None else context.command_path.partition(" ")[2]
    if context is None or operation in READING | OWN_LINES:
        return
    given = context.params
    tables = [given[name] for name in _TABLE_PARAMETERS if isinstance(given.get(name), str)]
    audit.record_operation(operation, tables, "done")
