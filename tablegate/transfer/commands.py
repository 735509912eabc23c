"""The command `copy` and the list of all transfer commands. The others are in comparison_commands.py.

Commands import their code when they are called, so that `tablegate --help` is fast.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tablegate.gateway.command_line.options import SectionedCommand
from tablegate.transfer.errors import TransferError
from tablegate.transfer.flags import (
    DUPLICATES,
    ESCAPE_KEYS,
    PARALLEL,
    QUIET,
    FilePath,
    Seconds,
    TableAddress,
    errors_as_exit_status,
    explained,
    warn_of_no_rows,
)

if TYPE_CHECKING:
    from tablegate.transfer.copying.job import CopyJob, Counts


@click.command(cls=SectionedCommand)
@click.argument("source", required=False, type=TableAddress())
@click.argument("target", required=False, type=TableAddress())
@click.option(
    "--job",
    "job_path",
    type=FilePath(),
    help="File that stores the progress of the copy.  [default: a name made from SOURCE and TARGET]",
)
@click.option("--resume", is_flag=True, help="Continue a stopped job. Options of the first run still apply.")
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
    source and written to the target, so the last write at the source wins. To cut over, stop the writers and wait until
    --until-lag ends the copy. Then run `tablegate verify` and start the writers at the target.

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
    if job_path is None and not rejected:
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
