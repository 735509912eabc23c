"""The command `copy`, and the options, help and error handling that all transfer commands share.

The other commands are in comparison_commands.py and traffic/commands.py. Commands import their code when they are called,
so that `tablegate --help` is fast.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tablegate.gateway.command_line.options import SectionedCommand
from tablegate.gateway.configuration.secrets import masked
from tablegate.transfer.errors import ADDRESS_FORMS, TransferError

if TYPE_CHECKING:
    from tablegate.transfer.copying.job import CopyJob, Counts


KINDS = ("dynamodb", "azure-table", "tablestore", "tablegate")
_ADDRESSES = f"""
    \b
    An address is one of
      {ADDRESS_FORMS["dynamodb"]}
      {ADDRESS_FORMS["azure-table"]}
      {ADDRESS_FORMS["tablestore"]}
      {ADDRESS_FORMS["tablegate"]}   (direct access to the database)
      {ADDRESS_FORMS["file"]}, - (standard input or output)

    TABLE may be a pattern, such as '*' for all tables. Credentials come from the environment variables and files of each SDK,
    never from an address.
"""


class TableAddress(click.ParamType[str]):
    """The address of a table, as text. Endpoints parse it (endpoints/addresses.py)."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        # Python reads bytes that are not UTF-8 as surrogates.
        if any("\ud800" <= character <= "\udfff" for character in value):
            self.fail("the address is not text in UTF-8", param, ctx)
        return str(value)


class FilePath(click.Path):
    """The path of a file."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("the name of the file is empty", param, ctx)
        return super().convert(value, param, ctx)


class Seconds(click.ParamType[float]):
    """A duration such as 500ms, 2s, 10m or 1h. Seconds if there is no unit."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", str(value))
        if match is None:
            self.fail(f"{value} is not a duration. Use a form such as 500ms, 2s, 10m or 1h", param, ctx)
        return float(match[1]) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[match[2] or "s"]


def explained(text: str) -> Callable[[Any], Any]:
    """Set a command's help text, followed by the common part about addresses."""

    def decorate(command: Any) -> Any:
        command.__doc__ = text.rstrip() + "\n" + _ADDRESSES
        return command

    return decorate


@contextlib.contextmanager
def errors_as_exit_status(advice: Callable[[BaseException], str] = lambda error: "") -> Iterator[None]:
    """Print errors, Ctrl-C and SIGTERM as one line and end with status 2.

    `advice` returns a second line with the command that works after an error, "" if there is none.
    """

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except BrokenPipeError:
        raise
    except (TransferError, OSError, KeyboardInterrupt) as error:
        from tablegate.gateway.command_line.errors import reason_of

        hint = advice(error)
        message = reason_of(error) if isinstance(error, OSError) else str(error) or "stopped"
        click.echo(f"Error: {masked(message)}" + (f"\n{hint}" if hint else ""), err=True)
        _leave(2)
    finally:
        signal.signal(signal.SIGTERM, before)


def warn_of_no_rows(source: str) -> None:
    """Print that a source is empty, which is seldom meant."""
    click.echo(
        f"Warning: {source} has no rows. Check the address and the format if this is not meant", err=True
    )


def _leave(status: int) -> None:
    """End with a status without waiting for threads that may wait for a service for minutes.

    Output that cannot be written is dropped: Python 3.12 and later would try again, and end with status 120.
    """
    from tablegate.transfer.threads import busy_threads

    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if busy_threads():
        sys.stderr.flush()
        os._exit(status)
    raise SystemExit(status)


PARALLEL = click.option(
    "--parallel",
    type=click.IntRange(1, 64),
    help="Number of reading threads and of writing threads.  [default: 4]",
)
QUIET = click.option("--quiet", is_flag=True, help="Print no progress.")
DUPLICATES = click.option(
    "--duplicates", type=click.Choice(["fail", "last"]),
    help="For several rows with one key in the target, such as lines of a file: end with an error, or keep the last row "
    "and count the others.  [default: fail]",
)  # fmt: skip
ESCAPE_KEYS = click.option(
    "--escape-keys", is_flag=True, default=None,
    help="Write characters that the target does not allow in keys as _xHHHH_ instead of rejecting the row. "
    "Use the same setting for verify, diff and signature.",
)  # fmt: skip


@click.command(cls=SectionedCommand)
@click.argument("source", required=False, type=TableAddress())
@click.argument("target", required=False, type=TableAddress())
@click.option(
    "--job",
    "job_path",
    type=FilePath(),
    help="File that stores the progress of the copy.  [default: a name made from SOURCE and TARGET]",
)
@click.option(
    "--resume", is_flag=True,
    help="Continue a stopped job, or one that has followed. Options of the first run still apply. With --follow, and without "
    "--until-lag, it follows without end.",
)  # fmt: skip
@click.option("--follow", is_flag=True, default=None, help="After the copy, apply new changes of the source.")
@click.option(
    "--until-lag",
    metavar="DURATION",
    type=Seconds(),
    help="Stop following once replication lag is at most this (for example 2s).",
)
@click.option(
    "--sweep-every", metavar="DURATION", type=Seconds(),
    help="Time between searches for deleted rows, with --follow and a source without a delete stream (Azure Table).  "
    "[default: 10m]",
)  # fmt: skip
@click.option(
    "--rate", "rates", multiple=True, metavar="N[wcu|rcu]",
    help="Limit per second in rows, write units of the target (wcu, 1 KiB) or read units of the source (rcu, 4 KiB).",
)  # fmt: skip
@PARALLEL
@ESCAPE_KEYS
@click.option(
    "--if-exists", type=click.Choice(["fail", "replace", "append"]),
    help="For a target that has rows: end with an error, delete them first, or keep those that are not copied. An existing "
    "file can be replaced only.  [default: fail, with --follow: append]",
)  # fmt: skip
@DUPLICATES
@click.option(
    "--rejects", "rejects_path", type=FilePath(),
    help="File for rows that the target cannot hold, as JSON Lines of key, code, reason and row.  "
    "[default: the job file's name and .rejects.jsonl]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print what would be done without writing.")
@QUIET
@explained("""
    Copy a table, or all tables, from SOURCE to TARGET.

    A missing target table is created with the key, indexes, stream and expiry that the target supports. What it does not
    support is printed. If the target has rows already, their number is printed, and --if-exists decides. Rows that the target
    cannot hold are written to the file of rejects with the reason. `tablegate lint` predicts them, and rows with one key.

    The job file stores the progress. After Ctrl-C, a lost connection, a full disk or a kill,

        tablegate copy --job FILE --resume

    continues the copy without reading finished segments again.

    With --follow, changes are captured before the first row is read. After the scan, each changed row is read again at the
    source and written to the target, so the last write at the source wins. When --until-lag ends the copy, its last line has
    the lag, the changed rows that it found at last, and the command that continues. To cut over, stop the writers and run that
    command: it ends when all their writes are copied. Then run `tablegate verify` and start the writers at the target.

    Exit status: 0 all rows are copied, 1 all but those in the file of rejects, 2 failed or stopped. The message of status 2
    has the reason and the command that continues the copy.
""")
def copy(
    source: str | None, target: str | None, job_path: Path | None, resume: bool, rejects_path: Path | None, dry_run: bool,
    quiet: bool, follow: bool | None, until_lag: float | None, sweep_every: float | None, rates: tuple[str, ...],
    parallel: int | None, escape_keys: bool | None, if_exists: str | None, duplicates: str | None,
) -> None:  # fmt: skip
    if not resume and (source is None or target is None):
        raise click.UsageError("give SOURCE and TARGET, or --job FILE --resume")
    if resume and job_path is None and (source is None or target is None):
        raise click.UsageError("--resume needs --job FILE")
    if resume and dry_run:
        raise click.UsageError("--dry-run plans a new copy. Omit --resume")
    if resume and if_exists is not None:
        raise click.UsageError("--if-exists decides how a copy begins. Omit it with --resume")
    begun: list[CopyJob] = []

    def advice(error: BaseException) -> str:
        from tablegate.transfer.copying import job_setup

        return job_setup.close_job(begun[0], error) if begun else ""

    with errors_as_exit_status(advice):
        from tablegate.transfer import progress
        from tablegate.transfer.copying import copying, job_setup

        chosen = job_setup.ChosenOptions(
            parallel, rates or None, follow, until_lag, sweep_every, escape_keys, if_exists, duplicates
        )
        if dry_run:
            _plan(str(source), str(target), chosen)
            return
        path = job_path or job_setup.default_path(str(source), str(target))
        rejects_path = rejects_path or path.with_name(path.name + ".rejects.jsonl")
        if resume:
            begun.append(job_setup.resume_job(path, source, target))
            chosen = chosen.over(begun[0].options)
        else:
            begun.append(job_setup.begin_job(path, str(source), str(target), chosen))
        [job] = begun
        copying.require_replaceable(rejects_path)
        shown = progress.for_stderr(quiet)
        with _keeping_rejects(job, rejects_path), contextlib.closing(shown):
            opens = job_setup.opener(source), job_setup.opener(target)
            counts = copying.run(job, opens, chosen.options(), shown)
        rejected = copying.write_rejects(job, rejects_path)
        for source_address in job.sources_without_rows():
            warn_of_no_rows(source_address)
    job.close()
    click.echo(
        _summary(counts) + (f", {rejected:,} rejected, see {rejects_path}" if rejected else ""), err=True
    )
    if counts.lag_s is not None:
        click.echo(job_setup.reason_of_stop(job, chosen.until_lag_s, counts), err=True)
    if job_path is None and not rejected and not chosen.follow:
        path.unlink()
    raise SystemExit(1 if rejected else 0)


@contextlib.contextmanager
def _keeping_rejects(job: CopyJob, path: Path) -> Iterator[None]:
    """Write the file of rejected rows if the copy ends with an error."""
    from tablegate.transfer.copying import copying

    try:
        yield
    except BaseException:
        with contextlib.suppress(TransferError):
            copying.write_rejects(job, path)
        raise


def _summary(counts: Counts) -> str:
    from tablegate.transfer import progress

    applied = f", {counts.applied:,} changes applied" if counts.applied else ""
    repeated = ""
    if counts.repeated:
        rows = "row" if counts.repeated == 1 else "rows"
        repeated = f", {counts.repeated:,} earlier {rows} with the same key left out"
    return f"copied {counts.rows:,} rows, {progress.size_of(counts.size_bytes)}{applied}{repeated}"


def _plan(source: str, target: str, chosen: Any) -> None:
    from tablegate.transfer.copying import copying, job_setup

    for pair in job_setup.copied_pairs(source, target):
        ends = job_setup.opener(None)(pair[0]), job_setup.opener(None)(pair[1])
        try:
            for line in copying.plan(*ends, chosen.options()):
                click.echo(line)
        finally:
            for end in ends:
                end.close()
