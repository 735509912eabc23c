"""The commands that move and compare tables; here copy, the others in comparison_commands.py.

Declares arguments and what is told; what commands do is imported when they are called, so that `tablegate --help` loads nothing
of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tablegate.transfer.comparison_commands import diff, lint, signature, verify
from tablegate.transfer.errors import TransferError
from tablegate.transfer.flags import ESCAPE_KEYS, PARALLEL, Seconds, explained, told_clearly

if TYPE_CHECKING:
    from tablegate.transfer.copying.job import CopyJob, Counts


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
    type=Seconds(),
    help="End --follow when the target is as the source was so long ago, as 2s.",
)
@click.option(
    "--sweep-every", type=Seconds(),
    help="With --follow and a source that does not tell deletes (Azure Table): look this often for rows that are gone.  "
    "[default: 10m]",
)  # fmt: skip
@click.option(
    "--rate", "rates", multiple=True, metavar="N[wcu|rcu]",
    help="At most so many rows a second; or write units of the target (1 KiB of a row), read units of the source (4 KiB).",
)  # fmt: skip
@PARALLEL
@ESCAPE_KEYS
@click.option(
    "--rejects", "rejects_path", type=click.Path(path_type=Path),
    help="Where to write the rows that the target cannot have: JSON Lines of key, code, reason, row.  "
    "[default: the job's name and .rejects.jsonl]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
@click.option("--quiet", is_flag=True, help="No progress.")
@explained("""
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
    """See `explained`."""
    if not resume and (source is None or target is None):
        raise click.UsageError("say SOURCE and TARGET, or --job FILE --resume")
    if resume and job_path is None and (source is None or target is None):
        raise click.UsageError("--resume needs --job FILE")
    begun: list[CopyJob] = []

    def hint() -> str:
        from tablegate.transfer.copying import job_setup

        return job_setup.put_away(begun[0]) if begun else ""

    with told_clearly(hint):
        from tablegate.transfer.copying import copying, job_setup, progress

        chosen = job_setup.ChosenOptions(parallel, rates or None, follow, until_lag, sweep_every, escape_keys)
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
        told = progress.to_people(quiet)
        with _keeping_rejects(job, rejects_path), contextlib.closing(told):
            opens = job_setup.opener(source), job_setup.opener(target)
            counts = copying.run(job, opens, chosen.options(), told)
        rejected = copying.write_rejects(job, rejects_path)
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
    from tablegate.transfer.copying import progress

    applied = f", {counts.applied:,} changes applied" if counts.applied else ""
    return f"copied {counts.rows:,} rows, {progress.size_of(counts.size_bytes)}{applied}"


def _plan(source: str, target: str, chosen: Any) -> None:
    from tablegate.transfer.copying import copying, job_setup

    for pair in job_setup.pairs_of(source, target):
        ends = job_setup.opener(None)(pair[0]), job_setup.opener(None)(pair[1])
        try:
            for line in copying.plan(*ends, chosen.options()):
                click.echo(line)
        finally:
            for end in ends:
                end.close()


COMMANDS: tuple[click.Command, ...] = (lint, copy, verify, diff, signature)
