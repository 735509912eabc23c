"""The installation of jobs."""

from __future__ import annotations

from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.features.jobs import job_runner


def install(engine: Engine, options: EngineOptions) -> None:
    """Add the commands of jobs to an engine. `job_runner.add_workers` runs the jobs."""
    engine.register(job_runner.COMMANDS)
