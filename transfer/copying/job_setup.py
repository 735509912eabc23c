"""From what a user writes to a job: which tables go where, under which options, and how an old job is gone on with.

Knows addresses and what of them may stand in a job file; copies nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tablegate.transfer.copying.copying import CopyOptions, Opener
from tablegate.transfer.copying.job import NEW, CopyJob
from tablegate.transfer.copying.pacing import limit_of
from tablegate.transfer.endpoints import addresses
from tablegate.transfer.endpoints.endpoint import Endpoint, Service
from tablegate.transfer.errors import BadAddress, TransferError
from tablegate.transfer.mapping.mapping import MappingOptions
from tablegate.transfer.mapping.table_names import table_names

_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class ChosenOptions:
    """Options of the command line; None where one was not given. Kept in the job, so that whoever resumes it need say nothing
    again."""

    parallel: int | None = None
    rates: tuple[str, ...] | None = None
    follow: bool | None = None
    until_lag_s: float | None = None
    sweep_s: float | None = None
    escape_keys: bool | None = None

    def options(self) -> CopyOptions:
        """What they come to. Raises TransferError."""
        made = CopyOptions(
            limits=tuple(map(limit_of, self.rates or ())),
            follow=bool(self.follow),
            until_lag_s=self.until_lag_s,
            mapping=MappingOptions(escape_keys=bool(self.escape_keys)),
        )
        if self.until_lag_s is not None and not self.follow:
            raise TransferError("--until-lag ends --follow, which is not given")
        made = made if self.parallel is None else replace(made, parallel=self.parallel)
        return made if self.sweep_s is None else replace(made, sweep_s=self.sweep_s)

    def document(self) -> dict[str, Any]:
        """As the job keeps them."""
        return {name: getattr(self, name) for name in self.__slots__ if getattr(self, name) is not None}

    def over(self, kept: dict[str, Any]) -> ChosenOptions:
        """These options, and for what was not given those of the job. Raises TransferError for what cannot change on the way."""
        for name, flag in (("escape_keys", "--escape-keys"), ("follow", "--follow")):
            given = getattr(self, name)
            if given is not None and given != bool(kept.get(name)):
                raise TransferError(
                    f"the job was begun {'without' if given else 'with'} {flag}, which cannot change now"
                )
        merged = {**kept, **self.document()}
        if merged.get("rates") is not None:
            merged["rates"] = tuple(merged["rates"])
        return ChosenOptions(**merged)


def pairs_of(source: str, target: str) -> list[tuple[str, str]]:
    """(source, target) of every table that two addresses with or without a pattern name. Raises TransferError."""
    if not addresses.is_pattern(source):
        if addresses.is_pattern(target):
            raise BadAddress("the target names several tables, the source one: name one table there too")
        return [(source, target)]
    if not addresses.is_pattern(target):
        raise BadAddress("the source names several tables: write * for the table of the target too")
    sources = addresses.tables_of(source)
    names = [_name_of(each) for each in sources]
    called = table_names(service_of(target), names)
    return [
        (each, addresses.with_table(target, called[name])) for each, name in zip(sources, names, strict=True)
    ]


def service_of(address: str) -> Service:
    """Whose tables an address names. Raises BadAddress for files."""
    scheme = address.partition(":")[0].lower()
    if scheme not in {service.value for service in Service}:
        raise BadAddress("a file cannot take several tables")
    return Service(scheme)


def _name_of(address: str) -> str:
    endpoint = addresses.open_endpoint(address)
    try:
        return endpoint.describe().name
    finally:
        endpoint.close()


def kept_address(address: str) -> str:
    """An address as it may stand in a job: databases without their password."""
    if address.lower().startswith("tablegate:"):
        return addresses.open_listing(address).shown
    return address


def default_path(source: str, target: str) -> Path:
    """The job file of a copy for which none was named."""
    digest = hashlib.sha256(f"{kept_address(source)}\n{kept_address(target)}".encode()).hexdigest()
    return Path(f"tablegate-copy-{digest[:10]}.job")


def begin_job(path: Path, source: str, target: str, chosen: ChosenOptions) -> CopyJob:
    """A new job. Raises TransferError."""
    chosen.options()
    pairs = pairs_of(source, target)
    job = CopyJob.create(path, kept_address(source), kept_address(target), chosen.document())
    for each in pairs:
        job.add_table(kept_address(each[0]), kept_address(each[1]))
    return job


def resume_job(path: Path, source: str | None, target: str | None) -> CopyJob:
    """A job that was begun; the ends may be given again. Raises TransferError."""
    job = CopyJob.open(path)
    try:
        job.require(
            None if source is None else kept_address(source), None if target is None else kept_address(target)
        )
        for what, kept, given in (("SOURCE", job.source, source), ("TARGET", job.target, target)):
            if _HIDDEN in kept and given is None:
                raise TransferError(
                    f"a job file holds no password: give SOURCE and TARGET again, here {what} is {kept}"
                )
    except BaseException:
        job.close()
        raise
    return job


def opener(given: str | None) -> Opener:
    """Opens what a job names. `given`: the address that has what the job must not keep."""

    def open_(kept: str) -> Endpoint:
        if _HIDDEN in kept and given is not None:
            place = kept.rpartition("#")[2]
            kept = f"{given.rpartition('#')[0]}#{place}"
        return addresses.open_endpoint(kept)

    return open_


def put_away(job: CopyJob) -> str:
    """Let go of a job that could not go on. The command that goes on with it; "" if nothing had begun, or an end is a pipe, which
    is gone: then the job's file is removed."""
    is_begun = any(table.state != NEW for table in job.tables())
    job.close()
    if not is_begun or any(map(addresses.is_pipe, (job.source, job.target))):
        job.path.unlink()
        return ""
    is_hidden = _HIDDEN in job.source or _HIDDEN in job.target
    return f"tablegate copy {'SOURCE TARGET ' if is_hidden else ''}--job {job.path} --resume"
