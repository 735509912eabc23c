"""Background work that no table asks for: purges of dropped rows, expired idempotency tokens, interrupted commits."""

from __future__ import annotations

from tablegate.gateway.engine.scheduler import MAINTENANCE_PERIOD_S, Scheduler, Work
from tablegate.gateway.store.rows import idempotency_tokens, purges
from tablegate.gateway.store.sql import progress

# Seconds between two searches for interrupted commits. Their rows stay locked.
_COMMITS_PERIOD_S = 5.0


def add_works(background: Scheduler) -> None:
    """Register the works of this module."""
    store, purge = background.store, purges.Purge()

    def purge_rows(now_ms: int, limit: int) -> int | None:
        with store.read() as session:
            if purges.next_owner(session) is None:
                return None
        with store.write() as session:
            return purge.next_batch(session, limit)

    def forget_tokens(now_ms: int, limit: int) -> int | None:
        with store.write() as session:
            return idempotency_tokens.forget_expired(session, now_ms, limit) or None

    def finish_commits(now_ms: int, limit: int) -> None:
        store.database.finish_interrupted()

    background.add(Work(progress.PURGE, purge_rows))
    background.add(Work("tokens", forget_tokens, period_s=MAINTENANCE_PERIOD_S))
    background.add(Work("interrupted_commits", finish_commits, period_s=_COMMITS_PERIOD_S))
