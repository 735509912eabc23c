"""Creation of a job from the user's arguments: pairs of tables, options, and the checks when a job is resumed."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tablegate.transfer.copying.copying import CopyOptions, Opener
from tablegate.transfer.copying.existing_rows import IfExists
from tablegate.transfer.copying.job import NEW, CopyJob, Counts, TableState
from tablegate.transfer.copying.writing import rate_limit_of
from tablegate.transfer.endpoints import addresses
from tablegate.transfer.endpoints.endpoint import Endpoint, Service
from tablegate.transfer.errors import BadAddress, Remedy, TransferError
from tablegate.transfer.mapping.identities import Duplicates
from tablegate.transfer.mapping.mapping import MappingOptions
from tablegate.transfer.mapping.names import table_names

_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class ChosenOptions:
    """The options of the command line, None if not given. The job stores them, so that resuming does not need them
    again."""

    parallel: int | None = None
    rates: tuple[str, ...] | None = None
    follow: bool | None = None
    until_lag_s: float | None = None
    sweep_s: float | None = None
    escape_keys: bool | None = None
    if_exists: str | None = None
    duplicates: str | None = None

    def options(self) -> CopyOptions:
        """Return the options of the copy with defaults. Raises TransferError."""
        options = CopyOptions(
            limits=tuple(map(rate_limit_of, self.rates or ())),
            follow=bool(self.follow),
            until_lag_s=self.until_lag_s,
            mapping=MappingOptions(escape_keys=bool(self.escape_keys)),
            if_exists=None if self.if_exists is None else IfExists(self.if_exists),
            duplicates=Duplicates(self.duplicates or Duplicates.FAIL.value),
        )
        if self.until_lag_s is not None and not self.follow:
            raise TransferError("--until-lag needs --follow")
        options = options if self.parallel is None else replace(options, parallel=self.parallel)
        return options if self.sweep_s is None else replace(options, sweep_s=self.sweep_s)

    def document(self) -> dict[str, Any]:
        """Return the options that were given, as the job stores them."""
        return {name: getattr(self, name) for name in self.__slots__ if getattr(self, name) is not None}

    def over(self, stored: dict[str, Any]) -> ChosenOptions:
        """Return these options, with the job's options where none is given.

        Raises TransferError if an option differs that cannot change in a running job.
        """
        for name, flag in (("escape_keys", "--escape-keys"), ("follow", "--follow")):
            value = getattr(self, name)
            if value is not None and value != bool(stored.get(name)):
                raise TransferError(
                    f"the job was started {'without' if value else 'with'} {flag}, which cannot change"
                )
        if self.follow:
            stored = {**stored, "until_lag_s": None}
        merged = {**stored, **self.document()}
        if merged.get("rates") is not None:
            merged["rates"] = tuple(merged["rates"])
        return ChosenOptions(**merged)


def pairs_of(source: str, target: str) -> list[tuple[str, str]]:
    """Return (source, target) of each table that two addresses select. Raises TransferError."""
    if not addresses.is_pattern(source):
        if addresses.is_pattern(target):
            raise BadAddress("the source is one table and the target a pattern. Name one target table")
        return [(source, target)]
    if not addresses.is_pattern(target):
        raise BadAddress("the source is a pattern and the target one table. Use * as the target table")
    sources = addresses.tables_of(source)
    names = [_name_of(address) for address in sources]
    target_names = table_names(service_of(target), names)
    return [
        (address, addresses.with_table(target, target_names[name]))
        for address, name in zip(sources, names, strict=True)
    ]


def service_of(address: str) -> Service:
    """Return the service of an address. Files have those names that a tablegate database allows."""
    scheme = address.partition(":")[0].lower()
    return Service.TABLEGATE if scheme == "file" else Service(scheme)


def _name_of(address: str) -> str:
    endpoint = addresses.open_endpoint(address)
    try:
        return endpoint.describe().name
    finally:
        endpoint.close()


def stored_address(address: str) -> str:
    """Return an address as the job stores it. Database URLs lose their password."""
    if address.lower().startswith("tablegate:"):
        return addresses.open_listing(address).shown
    return address


def default_path(source: str, target: str) -> Path:
    """Return the default path of the job file."""
    digest = hashlib.sha256(f"{stored_address(source)}\n{stored_address(target)}".encode()).hexdigest()
    return Path(f"tablegate-copy-{digest[:10]}.job")


def copied_pairs(source: str, target: str) -> list[tuple[str, str]]:
    """Return `pairs_of` the addresses of a copy. Raises TransferError if a table would be copied onto itself.

    Such a copy would replace rows that were written meanwhile with what it has read.
    """
    pairs = pairs_of(source, target)
    for one, other in pairs:
        if stored_address(one) == stored_address(other):
            raise BadAddress(f"the source and the target are the same table: {stored_address(one)}")
    return pairs


def begin_job(path: Path, source: str, target: str, options: ChosenOptions) -> CopyJob:
    """Create a job. Raises TransferError."""
    options.options()
    tables = [(stored_address(one), stored_address(other)) for one, other in copied_pairs(source, target)]
    return CopyJob.create(path, stored_address(source), stored_address(target), tables, options.document())


def resume_job(path: Path, source: str | None, target: str | None) -> CopyJob:
    """Open an existing job. Given ends must be those of the job. Raises TransferError."""
    job = CopyJob.open(path)
    try:
        job.require(
            None if source is None else stored_address(source),
            None if target is None else stored_address(target),
        )
        for placeholder, stored, address in (("SOURCE", job.source, source), ("TARGET", job.target, target)):
            if _HIDDEN in stored and address is None:
                raise TransferError(
                    f"the job file stores no password. Give SOURCE and TARGET again ({placeholder} is {stored})"
                )
    except BaseException:
        job.close()
        raise
    return job


def opener(given: str | None) -> Opener:
    """Return a function that opens the addresses of a job. `given` is the user's address with its password."""

    def open_(stored: str) -> Endpoint:
        if _HIDDEN in stored and given is not None:
            table = stored.rpartition("#")[2]
            stored = f"{given.rpartition('#')[0]}#{table}"
        return addresses.open_endpoint(stored)

    return open_


def close_job(job: CopyJob, error: BaseException) -> str:
    """Close a job that failed and return one line with the command that works afterwards, "" if there is none.

    The job file is removed if it can only fail again: no table was started, an end is a pipe, or the error says so.
    """
    remedy = error.remedy if isinstance(error, TransferError) else Remedy.RESUME
    try:
        tables = job.tables()
    except TransferError:  # the file is damaged, which the error says
        return ""
    finally:
        job.close()
    if any(map(addresses.is_pipe, (job.source, job.target))) or all(table.state == NEW for table in tables):
        job.path.unlink()
        return ""
    if remedy is Remedy.NONE:
        return ""
    if remedy is Remedy.RESTART:
        job.path.unlink()
        return f"Start again with: {_restart_command(job, tables)}"
    more = error.resume_options if isinstance(error, TransferError) else ""
    return f"Continue with: {_resume_command(job)} {more}".rstrip()


def reason_of_stop(job: CopyJob, until_lag_s: float | None, counts: Counts) -> str:
    """Return a line about a copy that has followed: why it ended, what it has not copied, and how to continue."""
    rows = f"{counts.last_changes:,} changed row{'' if counts.last_changes == 1 else 's'}"
    return (
        f"stopped following at a lag of {counts.lag_s:.1f} s (--until-lag {until_lag_s:g}s). The last look at the source found "
        f"{rows}, and later writes are not copied. Continue with: {_resume_command(job)}, or add --follow to follow without end"
    )


def _resume_command(job: CopyJob) -> str:
    ends = "SOURCE TARGET " if _hides_password(job) else ""
    return f"tablegate copy {ends}--job {shlex.quote(str(job.path))} --resume"


def _hides_password(job: CopyJob) -> bool:
    return _HIDDEN in job.source or _HIDDEN in job.target


def _restart_command(job: CopyJob, tables: list[TableState]) -> str:
    """Return the command for a new copy with the job's options.

    Rows that the job has copied are replaced, unless the target had rows of its own before.
    """
    stored = ChosenOptions().over(job.options)
    ends = ["SOURCE", "TARGET"] if _hides_password(job) else [job.source, job.target]
    words = [*ends, "--job", str(job.path)]
    if stored.follow:
        words.append("--follow")
    if stored.escape_keys:
        words.append("--escape-keys")
    for flag, value in (
        ("--until-lag", stored.until_lag_s),
        ("--sweep-every", stored.sweep_s),
        ("--parallel", stored.parallel),
        ("--duplicates", stored.duplicates),
        *(("--rate", rate) for rate in stored.rates or ()),
        ("--if-exists", "append" if any(table.existing_rows for table in tables) else "replace"),
    ):
        if value is not None:
            words += [flag, f"{value:g}s" if isinstance(value, float) else str(value)]
    return "tablegate copy " + " ".join(map(shlex.quote, words))
