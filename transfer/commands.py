"""The commands that move and compare tables: lint, copy, verify, diff, signature.

Declares arguments and what is told; what commands do is imported when they are called, so that `tablegate --help` loads nothing
of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transfer.errors import TransferError

if TYPE_CHECKING:
    from transfer.copying.job import Job

_KINDS = ("dynamodb", "azure-table", "tablestore", "tablegate")
_ADDRESSES = """
    \b
    An address is one of
      dynamodb://TABLE?region=REGION[&endpoint=URL][&profile=NAME]
      azure-table://ACCOUNT/TABLE[?endpoint=URL]
      tablestore://INSTANCE/TABLE?endpoint=URL
      tablegate:DATABASE-URL#[NAMESPACE/]TABLE   (the database itself, no server)
      file:PATH, - (standard input or output)

    TABLE may be a pattern ('*': all tables). Credentials come from each SDK's own environment variables and files, never from
    an address.
"""


class _Seconds(click.ParamType[float]):
    """A time as people write it: 500ms, 2s, 10m, 1h."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", str(value))
        if found is None:
            self.fail(f"{value}: write 500ms, 2s, 10m or 1h", param, ctx)
        return float(found[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[found[2] or "s"]


def _explained(text: str) -> Callable[[Any], Any]:
    """Give a command its help, with what all of them have in common at its end."""

    def decorate(command: Any) -> Any:
        command.__doc__ = text.rstrip() + "\n" + _ADDRESSES
        return command

    return decorate


@contextlib.contextmanager
def _told_clearly(how_to_go_on: Callable[[], str] = lambda: "") -> Iterator[None]:
    """What can go wrong is one line and status 2; so is Ctrl-C, and SIGTERM with it."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except (TransferError, KeyboardInterrupt) as error:
        hint = how_to_go_on()
        told = str(error) or "stopped"
        click.echo(f"Error: {told}" + (f"\nGo on with: {hint}" if hint else ""), err=True)
        _leave(2)
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(status: int) -> None:
    """End with a status. Threads that wait for a service, perhaps for minutes, are not waited for."""
    waited_for = [each for each in threading.enumerate() if each.name.startswith("copy_")]
    if waited_for:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    raise SystemExit(status)


_PARALLEL = click.option(
    "--parallel", type=click.IntRange(1, 64), help="Threads that read, and threads that write.  [default: 4]"
)
_ESCAPE_KEYS = click.option(
    "--escape-keys", is_flag=True, default=None,
    help="Write characters that keys of the target cannot have as _xHHHH_, instead of rejecting such rows. "
    "Say it to verify, diff and signature too.",
)  # fmt: skip


@click.command()
@click.argument("source", required=False)
@click.argument("target", required=False)
@click.option(
    "--job",
    "job_path",
    type=click.Path(path_type=Path),
    help="The file that remembers how far the copy has come.",
)
@click.option(
    "--resume", is_flag=True, help="Go on with a job that was stopped; options need not be given again."
)
@click.option(
    "--follow", is_flag=True, default=None, help="After the copy, apply the changes that go on at the source."
)
@click.option(
    "--until-lag",
    type=_Seconds(),
    help="End --follow when the target is as the source was so long ago, as 2s.",
)
@click.option(
    "--sweep-every", type=_Seconds(),
    help="With --follow and a source that does not tell deletes (Azure Table): look this often for rows that are gone.  "
    "[default: 10m]",
)  # fmt: skip
@click.option(
    "--rate", "rates", multiple=True, metavar="N[wcu|rcu]",
    help="At most so many rows a second; or write units of the target (1 KiB of a row), read units of the source (4 KiB).",
)  # fmt: skip
@_PARALLEL
@_ESCAPE_KEYS
@click.option(
    "--rejects", "rejects_path", type=click.Path(path_type=Path),
    help="Where to write the rows that the target cannot have: JSON Lines of key, code, reason, row.  "
    "[default: the job's name and .rejects.jsonl]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
@click.option("--quiet", is_flag=True, help="No progress.")
@_explained("""
    Copy a table, or all tables, from SOURCE to TARGET.

    The target's table is made if it is missing: key, indexes, stream and expiry as far as the target knows them; the rest is
    said. Rows of the same key are replaced. Rows that the target cannot have are left out and listed with the reason, never
    silently; `tablegate lint` says them beforehand.

    Everything that is done is noted in the job file. After Ctrl-C, a lost connection, a full disk or a kill,

        tablegate copy --job FILE --resume

    goes on, and reads no segment again that was finished.

    With --follow, changes are captured before the first row is read, and applied after the scan and as they come: a row that
    has changed is read again at the source and written to the target as it is then, so the last write at the source wins. Stop
    the writers, wait until the copy has ended by --until-lag, run `tablegate verify`, and let the writers go on at the target.

    Exit status: 0: everything is copied. 1: everything but the rows in the file of rejects. 2: it could not go on, or was
    stopped; the message says why, and how to go on.
""")
def copy(
    source: str | None, target: str | None, job_path: Path | None, resume: bool, rejects_path: Path | None, dry_run: bool,
    quiet: bool, follow: bool | None, until_lag: float | None, sweep_every: float | None, rates: tuple[str, ...],
    parallel: int | None, escape_keys: bool | None,
) -> None:  # fmt: skip
    """See `_explained`."""
    if not resume and (source is None or target is None):
        raise click.UsageError("say SOURCE and TARGET, or --job FILE --resume")
    if resume and job_path is None and (source is None or target is None):
        raise click.UsageError("--resume needs --job FILE")
    begun: list[Job] = []

    def hint() -> str:
        from transfer.copying import beginning

        return beginning.put_away(begun[0]) if begun else ""

    with _told_clearly(hint):
        from transfer.copying import beginning, copying, progress

        chosen = beginning.Chosen(parallel, rates or None, follow, until_lag, sweep_every, escape_keys)
        if dry_run:
            _plan(str(source), str(target), chosen)
            return
        path = job_path or beginning.default_path(str(source), str(target))
        rejects_path = rejects_path or path.with_name(path.name + ".rejects.jsonl")
        if resume:
            begun.append(beginning.resume_job(path, source, target))
            chosen = chosen.over(begun[0].options)
        else:
            begun.append(beginning.begin_job(path, str(source), str(target), chosen))
        [job] = begun
        told = progress.to_people(quiet)
        try:
            opens = beginning.opener(source), beginning.opener(target)
            counts = copying.run(job, opens, chosen.options(), told)
        except BaseException:
            with contextlib.suppress(TransferError):
                copying.write_rejects(job, rejects_path)
            raise
        finally:
            told.close()
        rejected = copying.write_rejects(job, rejects_path)
    job.close()
    click.echo(
        f"copied {counts.rows:,} rows, {progress.size_of(counts.size_bytes)}"
        + (f", {counts.applied:,} changes applied" if counts.applied else "")
        + (f", {rejected:,} rejected, see {rejects_path}" if rejected else ""),
        err=True,
    )
    if job_path is None and not rejected:
        path.unlink()
    raise SystemExit(1 if rejected else 0)


def _plan(source: str, target: str, chosen: Any) -> None:
    from transfer.copying import beginning, copying

    for pair in beginning.pairs_of(source, target):
        ends = beginning.opener(None)(pair[0]), beginning.opener(None)(pair[1])
        try:
            for line in copying.plan(*ends, chosen.options()):
                click.echo(line)
        finally:
            for end in ends:
                end.close()


# Comparisons

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
    from transfer.comparing.sides import CompareOptions
    from transfer.mapping.mapping import MappingOptions

    return CompareOptions(
        strict, frozenset(ignored), tolerance, MappingOptions(escape_keys=bool(escape_keys))
    )


@contextlib.contextmanager
def _ends(*addresses_of: str) -> Iterator[list[Any]]:
    """The endpoints of addresses, closed at the end."""
    from transfer.endpoints import addresses

    with contextlib.ExitStack() as closing:
        ends = []
        for address in addresses_of:
            ends.append(addresses.open_endpoint(address))
            closing.callback(ends[-1].close)
        yield ends


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
@_PARALLEL
@_ESCAPE_KEYS
@_explained("""
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
    """See `_explained`."""
    status = 0
    with _told_clearly():
        from transfer.comparing.verifying import verify as compare
        from transfer.copying.beginning import pairs_of

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
@_PARALLEL
@_ESCAPE_KEYS
@_explained("""
    Show the rows of two tables that differ, key by key and attribute by attribute, in kinds that both sides understand.

    Exit status: 0: equal. 1: different. 2: it could not be told.
""")
def diff(
    first: str, second: str, limit: int | None, form: str, strict: bool, ignored: tuple[str, ...], tolerance: float,
    parallel: int | None, escape_keys: bool | None,
) -> None:  # fmt: skip
    """See `_explained`."""
    with _told_clearly():
        from transfer.comparing.differences import diff as compare

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
    type=click.Choice(_KINDS),
    help="The kind of table that it will be compared with, if another.",
)
@_IGNORE
@_PARALLEL
@_ESCAPE_KEYS
@_explained("""
    Print a digest of all rows of a table, so that two sites can compare tables without meeting.

    Equal tables have equal signatures, whatever the order of their rows. Say on both sides with --for which kind the other table
    is, if it is of another service.

    Exit status: 0: printed. 2: it could not be told.
""")
def signature(
    table: str, other: str | None, ignored: tuple[str, ...], parallel: int | None, escape_keys: bool | None
) -> None:
    """See `_explained`."""
    with _told_clearly():
        from transfer.comparing.signatures import signature as sign
        from transfer.endpoints.endpoint import Service
        from transfer.mapping.mapping import MappingOptions

        options = MappingOptions(escape_keys=bool(escape_keys))
        with _ends(table) as [end]:
            made = sign(end, None if other is None else Service(other), ignored, options, parallel or 4)
    click.echo(f"{made.digest}  {made.rows} rows")


COMMANDS: tuple[click.Command, ...] = (copy, verify, diff, signature)
