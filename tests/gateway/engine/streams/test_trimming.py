"""Expired changes are deleted by ranges of sequences, and counted until then."""

from __future__ import annotations

import pytest

from tablegate.gateway.engine import scheduler
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.scheduler import MIN_ROWS
from tests.gateway.engine.streams.test_streaming import make, rule
from tests.support.clock import Clock

CHANGES = 3 * MIN_ROWS


def test_expired_changes_are_counted_as_work_that_is_left(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "MAX_ROWS", MIN_ROWS)
    table = make(engine, stream=rule(hours=1))
    table.write(*(table.put("a", n) for n in range(CHANGES)))
    clock.advance(3_601)
    table.write(*(table.put("b", n) for n in range(5)))
    left = []
    while (batch := engine.background.next_batch()) is not None:
        if batch.work == "stream_trim" and batch.rows:
            assert batch.rows <= MIN_ROWS
            left.append(engine.background.rows_left["stream_trim"])
    assert left == [2 * MIN_ROWS, MIN_ROWS, 0]
    with engine._store.read() as session:
        assert session.query("SELECT count(*) FROM changes") == [(5,)]
