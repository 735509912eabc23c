"""The commands that only read tables: lint, verify, diff, signature.

Commands import their code when they are called, so that `tablegate --help` is fast.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from tablegate.gateway.command_line.options import FiniteFloatRange, SectionedCommand
from tablegate.transfer.commands import (
    DUPLICATES,
    ESCAPE_KEYS,
    KINDS,
    PARALLEL,
    QUIET,
    FilePath,
    TableAddress,
    errors_as_exit_status,
    explained,
    warn_of_no_rows,
)

_FIRST = click.argument("first", metavar="A", type=TableAddress())
_SECOND = click.argument("second", metavar="B", type=TableAddress())
_STRICT = click.option(
    "--strict/--lenient", default=None,
    help="--strict: compare also indexes, expiry, streams, and versions of cells. --lenient: compare numbers by value and not"
    " by kind.  [default: kinds that both services have are compared]",
)  # fmt: skip
_IGNORE = click.option(
    "--ignore", "ignored", multiple=True, metavar="ATTR", help="Do not compare this attribute (repeatable)."
)

_TOLERANCE = click.option(
    "--float-tolerance", "tolerance", type=FiniteFloatRange(0), default=0.0,
    help="Largest difference between numbers that count as equal.",
)  # fmt: skip


def _compare_options(
    strict: bool | None, ignored: tuple[str, ...], tolerance: float, escape_keys: bool | None
) -> Any:
    from tablegate.transfer.comparing.sides import CompareOptions
    from tablegate.transfer.mapping.mapping import MappingOptions

    return CompareOptions(
        strict, frozenset(ignored), tolerance, MappingOptions(escape_keys=bool(escape_keys))
    )


@contextlib.contextmanager
def _ends(*addresses_of: str) -> Iterator[list[Any]]:
    """Open the endpoints of addresses and close them at the end."""
    from tablegate.transfer.endpoints import addresses

    with contextlib.ExitStack() as closing:
        ends = []
        for address in addresses_of:
            ends.append(addresses.open_endpoint(address))
            closing.callback(ends[-1].close)
        yield ends


def _progress(quiet: bool) -> Any:
    from tablegate.transfer.progress import for_stderr

    return contextlib.closing(for_stderr(quiet))


@click.command(cls=SectionedCommand)
@click.argument("source", type=TableAddress())
@click.argument("kind", type=click.Choice(KINDS), metavar="TARGET-KIND")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    help="Number of rows to check, from all parts of the table.  [default: all]",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "html"]), default="text", show_default=True
)
@click.option(
    "--fail-on", type=click.Choice(["rendered", "lossy", "impossible", "none"]), default="impossible", show_default=True,
    help="End with status 1 if a rule of this class or a worse one applies. none: always 0, also with rows of one key.",
)  # fmt: skip
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="RULE",
    help="Rule that --fail-on ignores (repeatable).",
)
@PARALLEL
@ESCAPE_KEYS
@DUPLICATES
@QUIET
@explained("""
    Report what a copy of SOURCE into another kind of service would change, lose or reject. Nothing is written.

    TARGET-KIND is dynamodb, azure-table, tablestore or tablegate. The report lists each rule of the mapping that applies,
    with its class, the number of rows, the attributes and the keys of some rows:

    \b
      lossless     the value is written in another form and compares equal
      rendered     the value gets another kind and can be restored exactly
      lossy        information is lost
      impossible   the target cannot hold the row: copy rejects it

    Exit status: 0 no rule that --fail-on selects, so that no row is lost, 1 at least one such rule or, without --duplicates
    last, rows with one key, 2 the check failed.
""")
def lint(
    source: str, kind: str, sample: int | None, form: str, fail_on: str, accepted: tuple[str, ...],
    parallel: int | None, escape_keys: bool | None, duplicates: str | None, quiet: bool,
) -> None:  # fmt: skip
    status = 0
    with errors_as_exit_status():
        from tablegate.transfer.endpoints.addresses import tables_of
        from tablegate.transfer.endpoints.endpoint import Service
        from tablegate.transfer.mapping.identities import Duplicates
        from tablegate.transfer.mapping.linting import check_rules
        from tablegate.transfer.mapping.linting import lint as check
        from tablegate.transfer.mapping.mapping import MappingOptions
        from tablegate.transfer.mapping.rules import Fidelity

        try:
            check_rules(accepted)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        worst = None if fail_on == "none" else Fidelity(fail_on)
        options = MappingOptions(escape_keys=bool(escape_keys))
        for address in tables_of(source):
            with _ends(address) as [end], _progress(quiet) as shown:
                report = check(end, Service(kind), sample, options, workers=parallel or 4, progress=shown)
                if not report.rows:
                    warn_of_no_rows(end.shown)
            if form == "text":
                report.print(sys.stdout)
            else:
                click.echo(report.json() if form == "json" else report.html(), nl=False)
            status = max(status, report.status(worst, accepted, Duplicates(duplicates or "fail")))
    raise SystemExit(status)


@click.command(cls=SectionedCommand)
@_FIRST
@_SECOND
@click.option(
    "--level", default="checksum", show_default=True, metavar="count|checksum|full|sample:N",
    help="count: numbers of rows. checksum: sums over all rows, then rows of unequal sums. full: every row. "
    "sample:N: N rows of each side, looked up at the other side.",
)  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    help="Maximum number of differences to list.",
)
@click.option("--allow-empty", is_flag=True, help="Accept a table A without rows. Otherwise the status is 1.")
@click.option(
    "--except-rejects", "rejects_path", metavar="FILE", type=FilePath(),
    help="Accept that rows in this file of rejects of `tablegate copy` are missing in B, unless they have changed in A. A "
    "missing FILE has no rows, because copy removes it then.",
)  # fmt: skip
@_STRICT
@_IGNORE
@_TOLERANCE
@PARALLEL
@ESCAPE_KEYS
@QUIET
@explained("""
    Check that table B holds the rows of table A, as the mapping between their services converts them.

    Both tables are read whole. The order of rows and the size of pages do not matter. The report lists rows that are missing
    in B, extra in B, changed, or changed only in kind, with the rule of the mapping that explains it. With a pattern, each
    table of A is compared with its copy.

    A copy with rejects ends with status 1. After you have accepted them, this proves that all other rows are there:

        tablegate verify A B --except-rejects orders.job.rejects.jsonl

    Exit status: 0 equal, 1 different or no rows in A, 2 the comparison failed.
""")
def verify(
    first: str, second: str, level: str, form: str, limit: int, allow_empty: bool, rejects_path: Path | None,
    strict: bool | None, ignored: tuple[str, ...], tolerance: float, parallel: int | None, escape_keys: bool | None,
    quiet: bool,
) -> None:  # fmt: skip
    if rejects_path is not None and level == "count":
        raise click.UsageError("--except-rejects needs rows. Omit --level count")
    status = 0
    with errors_as_exit_status():
        from tablegate.transfer.comparing.rejected_rows import read_rejected_rows
        from tablegate.transfer.comparing.verifying import verify as compare
        from tablegate.transfer.copying.job_setup import pairs_of, stored_address

        options = _compare_options(strict, ignored, tolerance, escape_keys)
        options = replace(options, allow_empty=allow_empty)
        for pair in pairs_of(first, second):
            if rejects_path is not None:
                options = replace(options, rejected=read_rejected_rows(rejects_path, stored_address(pair[0])))
            with _ends(*pair) as [one, other], _progress(quiet) as shown:
                try:
                    report = compare(one, other, level, options, limit, parallel or 4, shown)
                except ValueError as error:
                    raise click.UsageError(str(error)) from None
                if not report.rows[0]:
                    warn_of_no_rows(one.shown)
            click.echo(report.json() if form == "json" else report.text())
            status = max(status, int(report.status))
    raise SystemExit(status)


@click.command(cls=SectionedCommand)
@_FIRST
@_SECOND
@click.option("--limit", type=click.IntRange(min=1), help="Stop after this number of different rows.")
@click.option("--format", "form", type=click.Choice(["text", "jsonl"]), default="text", show_default=True)
@_STRICT
@_IGNORE
@_TOLERANCE
@PARALLEL
@ESCAPE_KEYS
@explained("""
    Show the rows that differ between two tables, by key and attribute, in kinds that both services support.

    Exit status: 0 equal, 1 different, 2 the comparison failed.
""")
def diff(
    first: str, second: str, limit: int | None, form: str, strict: bool | None, ignored: tuple[str, ...], tolerance: float,
    parallel: int | None, escape_keys: bool | None,
) -> None:  # fmt: skip
    with errors_as_exit_status():
        from tablegate.transfer.comparing.verifying import diff as compare

        options = _compare_options(strict, ignored, tolerance, escape_keys)
        with _ends(first, second) as [one, other]:
            status = compare(
                one, other, lambda text: click.echo(text, nl=False), limit, form, options, parallel or 4
            )
    raise SystemExit(int(status))


@click.command(cls=SectionedCommand)
@click.argument("table", metavar="X", type=TableAddress())
@click.option(
    "--for",
    "other",
    type=click.Choice(KINDS),
    help="Kind of the other table, if it belongs to another service.",
)
@_IGNORE
@PARALLEL
@ESCAPE_KEYS
@QUIET
@explained("""
    Print a digest of all rows of a table. Two sites can compare tables by their digests alone.

    Equal tables have equal signatures in any order of rows. If the tables belong to different services, give the kind of the
    other table with --for on both sides.

    Exit status: 0 printed, 2 failed.
""")
def signature(
    table: str, other: str | None, ignored: tuple[str, ...], parallel: int | None, escape_keys: bool | None,
    quiet: bool,
) -> None:  # fmt: skip
    with errors_as_exit_status():
        from tablegate.transfer.comparing.checksums import signature as sign
        from tablegate.transfer.endpoints.endpoint import Service
        from tablegate.transfer.mapping.mapping import MappingOptions

        options = MappingOptions(escape_keys=bool(escape_keys))
        with _ends(table) as [end], _progress(quiet) as shown:
            service = None if other is None else Service(other)
            made = sign(end, service, ignored, options, parallel or 4, shown)
    click.echo(f"{made.digest}  {made.rows} rows")
