"""The command `doctor`: its output and its exit status. The checks are in gateway/doctor."""

from __future__ import annotations

import json
import shutil
import sys

import click

from tablegate.gateway.command_line.options import ALL_SETTINGS, SectionedCommand, with_settings
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.doctor.examination import DEEP_CHECKS, PLAIN_CHECKS, examine
from tablegate.gateway.doctor.findings import Finding, Severity

ALL_IS_WELL, SOMETHING_FAILED, WARNINGS = 0, 1, 3
_COLOURS = {
    Severity.OK: "green",
    Severity.SKIPPED: "bright_black",
    Severity.WARNING: "yellow",
    Severity.FAILED: "red",
}


@click.command(cls=SectionedCommand)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object: the verdict and a list of checks."
)
@click.option(
    "--deep",
    "is_deep",
    is_flag=True,
    help="Also verify every row and index entry, and every page with all its contents. Slow on a large database.",
)
@with_settings(*ALL_SETTINGS)
def doctor(settings: Settings, as_json: bool, is_deep: bool) -> None:
    """Check settings, database and machine, and report problems. Changes nothing and can run beside a server.

    Run it with the settings of the server. Exit status: 0 no problem, 1 a check failed, 2 wrong command line,
    3 warnings only.
    """
    found = list(examine(settings, DEEP_CHECKS if is_deep else PLAIN_CHECKS))
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


def _print(found: list[Finding]) -> None:
    """Print a paragraph for each finding on a terminal, and a line for each elsewhere."""
    level_width = max(len(finding.level.value) for finding in found)
    check_width = max(len(finding.check) for finding in found)
    indent = " " * (level_width + check_width + 4)
    for finding in found:
        level = click.style(f"{finding.level.value:{level_width}}", _COLOURS[finding.level])
        text = finding.text
        if sys.stdout.isatty():
            width = shutil.get_terminal_size().columns
            text = click.wrap_text(text, width, indent, indent).lstrip()
        click.echo(f"{level}  {finding.check:{check_width}}  {text}")
