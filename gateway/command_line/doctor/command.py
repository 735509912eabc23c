"""The command `doctor`: its list of checks, its output and its exit status.

A check is a function from a CheckContext to results (findings.py). To add one, write the function in the module of its
subject and add it to CHECKS.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator

import click

from tablegate.gateway.command_line.doctor import databases, deep, machine, nodes
from tablegate.gateway.command_line.doctor import settings as settings_checks
from tablegate.gateway.command_line.doctor.findings import Check, CheckContext, Finding, Severity, findings_of
from tablegate.gateway.command_line.flags import ALL_SETTINGS, with_settings
from tablegate.gateway.command_line.help_sections import SectionedCommand
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.store.sql.databases import Database

CHECKS = (
    Check("settings", settings_checks.clashes),
    Check("database reachable", databases.reachable, needs_database=True),
    Check("database version", databases.version, needs_database=True),
    Check("schema", databases.schema, needs_database=True),
    Check("rights", databases.rights, needs_database=True),
    Check("durability", databases.durability, needs_database=True),
    Check("connections", databases.connections, needs_database=True),
    Check("where tables are", nodes.distribution, needs_database=True),
    Check("replicas", nodes.replicas, needs_database=True),
    Check("clock", databases.clock, needs_database=True),
    Check("secret key", settings_checks.secret_key, needs_database=True),
    Check("disk", machine.disk),
    Check("open files", machine.open_files),
    Check("certificate", machine.certificate),
)
DEEP_CHECKS = (
    Check("pages", deep.pages, needs_database=True),
    Check("rows and index entries", deep.rows_and_entries, needs_database=True),
    Check("row counts", deep.row_counts, needs_database=True),
)
ALL_IS_WELL, SOMETHING_FAILED, WARNINGS = 0, 1, 3
_WIDE = 240
_STYLES = {
    Severity.OK: "green",
    Severity.SKIPPED: "dim",
    Severity.WARNING: "yellow",
    Severity.FAILED: "bold red",
}


@click.command(cls=SectionedCommand)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object: the verdict and a list of checks."
)
@click.option(
    "--deep",
    "is_deep",
    is_flag=True,
    help="Also read and verify every row, index entry and page of the database. Slow on a large one.",
)
@with_settings(*ALL_SETTINGS)
def doctor(settings: Settings, as_json: bool, is_deep: bool) -> None:
    """Check settings, database and machine, and report problems. Changes nothing and can run beside a server.

    Run it with the settings of the server. Exit status: 0 no problem, 1 a check failed, 2 wrong command line,
    3 warnings only.
    """
    found = list(examine(settings, is_deep))
    levels = {finding.level for finding in found}
    status = (
        SOMETHING_FAILED
        if Severity.FAILED in levels
        else WARNINGS
        if Severity.WARNING in levels
        else ALL_IS_WELL
    )
    if as_json:
        verdict = {ALL_IS_WELL: Severity.OK, SOMETHING_FAILED: Severity.FAILED, WARNINGS: Severity.WARNING}[
            status
        ]
        checks = [
            {"check": it.check, "level": it.level.value, "text": it.text, "facts": dict(it.facts)}
            for it in found
        ]
        click.echo(json.dumps({"verdict": verdict.value, "checks": checks}, indent=2))
    else:
        _print(found)
    sys.exit(status)


def examine(settings: Settings, is_deep: bool = False) -> Iterator[Finding]:
    """Run all checks and yield their findings, in the order of the checks."""
    database, finding = _open_database(settings)
    with contextlib.closing(database) if database is not None else contextlib.nullcontext():
        if finding is not None:
            yield finding
        for check in (*CHECKS, *(DEEP_CHECKS if is_deep else ())):
            yield from findings_of(check, CheckContext(settings, database))


def _open_database(settings: Settings) -> tuple[Database | None, Finding | None]:
    """Return the database, or the finding that it cannot be used."""
    from tablegate.gateway.wiring import connect

    path = settings.database_path
    if settings.memory:
        return None, Finding("database", Severity.SKIPPED, "the database is in memory of the server")
    if path is not None and not path.exists():
        return None, Finding(
            "database", Severity.WARNING, f"{path} is not there yet: the first start of a server creates it"
        )
    database = None
    try:
        database = connect(settings)
        with database.read_one() as session:
            session.query("SELECT 1")
    except Exception as error:
        if database is not None:
            database.close()
        text = " ".join(f"the database does not answer: {error}".split())
        return None, Finding("database", Severity.FAILED, text)
    return database, None


def _print(found: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in found:
        table.add_row(
            Text(finding.level.value, _STYLES[finding.level]), Text(finding.check), Text(finding.text)
        )
    # Output to a file or another program is not wrapped at the width of a terminal.
    Console(width=None if sys.stdout.isatty() else _WIDE).print(table)
