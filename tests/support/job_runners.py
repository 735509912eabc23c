"""The runner of a server's jobs, which its background work has."""

from __future__ import annotations

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.jobs.job_runner import JobRunner


def runner_of(engine: Engine) -> JobRunner:
    """Return the runner of the jobs of an engine."""
    found = getattr(engine.background.works["jobs"].renew, "__self__", None)
    assert isinstance(found, JobRunner)
    return found
