"""The commands that read tables and write none: lint, verify, diff, signature.

Declares arguments and what is told; what commands do is imported when they are called.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import click

from tablegate.transfer.flags import ESCAPE_KEYS, KINDS, PARALLEL, explained, told_clearly

_FIRST, _SECOND = click.argument("first", metavar="A"), click.argument("second", metavar="B")
_STRICT = click.option(
    "--strict", is_flag=True, help="A value of another kind is different, also where the mapping promises it."
)
_IGNORE = click.option(
    "--ignore", "ignored", multiple=True, metavar="ATTR", help="Leave this attribute out (repeatable)."
)
_TOLERANCE = click.option(
    "--float-tolerance", "tolerance", type=click.FloatRange(min=0), default=0.0,
    help="Numbers that are no farther apart than this are equal.",
)  # fmt: skip


def _compare_options(
    strict: bool, ignored: tuple[str, ...], tolerance: float, escape_keys: bool | None
) -> Any:
    from tablegate.transfer.comparing.sides import CompareOptions
    from tablegate.transfer.mapping.mapping import MappingOptions

    return CompareOptions(
        strict, frozenset(ignored), tolerance, MappingOptions(escape_keys=bool(escape_keys))
    )


@contextlib.contextmanager
def _ends(*addresses_of: str) -> Iterator[list[Any]]:
    """The endpoints of addresses, closed at the end."""
    from tablegate.transfer.endpoints import addresses

    with contextlib.ExitStack() as closing:
        ends = []
        for address in addresses_of:
            ends.append(addresses.open_endpoint(address))
            closing.callback(ends[-1].close)
        yield ends


@click.command()
@click.argument("source")
@click.argument("kind", type=click.Choice(KINDS), metavar="TARGET-KIND")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    help="Look at so many rows from all over the table.  [default: all]",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "html"]), default="text", show_default=True
)
@click.option(
    "--fail-on", type=click.Choice(["rendered", "lossy", "impossible"]),
    help="End with status 1 if a rule of this class, or of a worse one, would apply.",
)  # fmt: skip
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="RULE",
    help="A rule that --fail-on does not count (repeatable).",
)
@PARALLEL
@ESCAPE_KEYS
@explained("""
    Say beforehand what a copy of SOURCE into another kind of service would change, lose or reject. Nothing is written.

    TARGET-KIND is dynamodb, azure-table, tablestore or tablegate. Each rule of the mapping that applies is told with its class,
    how many rows, which attributes, and the keys of some rows:

    \b
      lossless     another spelling of a value that compares equal to it
      rendered     another kind, from which the value can be had back exactly
      lossy        something is lost that cannot be had back
      impossible   the target cannot hold the row: copy rejects it

    Exit status: 0: looked at, and nothing that --fail-on names. 1: something that --fail-on names. 2: it could not be told.
""")
def lint(
    source: str, kind: str, sample: int | None, form: str, fail_on: str | None, accepted: tuple[str, ...],
    parallel: int | None, escape_keys: bool | None,
) -> None:  # fmt: skip
    """See `explained`."""
    status = 0
    with told_clearly():
        from tablegate.transfer.endpoints.addresses import tables_of
        from tablegate.transfer.endpoints.endpoint import Service
        from tablegate.transfer.mapping.linting import check_rules
        from tablegate.transfer.mapping.linting import lint as look
        from tablegate.transfer.mapping.mapping import MappingOptions
        from tablegate.transfer.mapping.rules import Fidelity

        try:
            check_rules(accepted)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        worst = None if fail_on is None else Fidelity(fail_on)
        options = MappingOptions(escape_keys=bool(escape_keys))
        for address in tables_of(source):
            with _ends(address) as [end]:
                report = look(end, Service(kind), sample, options, workers=parallel or 4)
            if form == "text":
                report.print(sys.stdout)
            else:
                click.echo(report.json() if form == "json" else report.html(), nl=False)
            status = max(status, report.status(worst, accepted))
    raise SystemExit(status)


@click.command()
@_FIRST
@_SECOND
@click.option(
    "--level", default="checksum", show_default=True, metavar="count|checksum|full|sample:N",
    help="count: numbers of rows. checksum: sums of all rows, then the rows of those that differ. full: every row. "
    "sample:N: N rows of each side, looked up at the other.",
)  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=1000,
    show_default=True,
    help="List so many differences at most.",
)
@_STRICT
@_IGNORE
@_TOLERANCE
@PARALLEL
@ESCAPE_KEYS
@explained("""
    Prove that table B holds what table A does, by what the mapping between their services promises.

    Both are read whole; neither the order of rows nor how pages are cut matters. Reported are rows that are missing in B, extra
    in B, changed, or changed only in kind, with the rule of the mapping that explains it. With patterns every table of A is
    compared with its copy.

    Exit status: 0: equal. 1: different. 2: it could not be told.
""")
def verify(
    first: str, second: str, level: str, form: str, limit: int, strict: bool, ignored: tuple[str, ...], tolerance: float,
    parallel: int | None, escape_keys: bool | None,
) -> None:  # fmt: skip
    """See `explained`."""
    status = 0
    with told_clearly():
        from tablegate.transfer.comparing.verifying import verify as compare
        from tablegate.transfer.copying.job_setup import pairs_of

        options = _compare_options(strict, ignored, tolerance, escape_keys)
        for pair in pairs_of(first, second):
            with _ends(*pair) as [one, other]:
                try:
                    report = compare(one, other, level, options, limit, parallel or 4)
                except ValueError as error:
                    raise click.UsageError(str(error)) from None
            click.echo(report.json() if form == "json" else report.text())
            status = max(status, int(report.status))
    raise SystemExit(status)


@click.command()
@_FIRST
@_SECOND
@click.option("--limit", type=click.IntRange(min=1), help="Stop after so many rows.")
@click.option("--format", "form", type=click.Choice(["text", "jsonl"]), default="text", show_default=True)
@_STRICT
@_IGNORE
@_TOLERANCE
@PARALLEL
@ESCAPE_KEYS
@explained("""
    Show the rows of two tables that differ, key by key and attribute by attribute, in kinds that both sides understand.

    Exit status: 0: equal. 1: different. 2: it could not be told.
""")
def diff(
    first: str, second: str, limit: int | None, form: str, strict: bool, ignored: tuple[str, ...], tolerance: float,
    parallel: int | None, escape_keys: bool | None,
) -> None:  # fmt: skip
    """See `explained`."""
    with told_clearly():
        from tablegate.transfer.comparing.differences import diff as compare

        options = _compare_options(strict, ignored, tolerance, escape_keys)
        with _ends(first, second) as [one, other]:
            status = compare(
                one, other, lambda text: click.echo(text, nl=False), limit, form, options, parallel or 4
            )
    raise SystemExit(int(status))


@click.command()
@click.argument("table", metavar="X")
@click.option(
    "--for",
    "other",
    type=click.Choice(KINDS),
    help="The kind of table that it will be compared with, if another.",
)
@_IGNORE
@PARALLEL
@ESCAPE_KEYS
@explained("""
    Print a digest of all rows of a table, so that two sites can compare tables without meeting.

    Equal tables have equal signatures, whatever the order of their rows. Say on both sides with --for which kind the other table
    is, if it is of another service.

    Exit status: 0: printed. 2: it could not be told.
""")
def signature(
    table: str, other: str | None, ignored: tuple[str, ...], parallel: int | None, escape_keys: bool | None
) -> None:
    """See `explained`."""
    with told_clearly():
        from tablegate.transfer.comparing.signatures import signature as sign
        from tablegate.transfer.endpoints.endpoint import Service
        from tablegate.transfer.mapping.mapping import MappingOptions

        options = MappingOptions(escape_keys=bool(escape_keys))
        with _ends(table) as [end]:
            made = sign(end, None if other is None else Service(other), ignored, options, parallel or 4)
    click.echo(f"{made.digest}  {made.rows} rows")
