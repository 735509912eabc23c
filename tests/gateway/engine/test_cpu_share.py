"""The share of a core that background work takes: less beside clients, more with a large backlog."""

from __future__ import annotations

import pytest

from tablegate.gateway.engine import scheduler
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.scheduler import (
    BATCH_S,
    LARGE_BACKLOG_ROWS,
    LARGE_BACKLOG_S,
    MIN_ROWS,
    PARTS_BESIDE_CLIENTS,
    CpuShare,
    Work,
)
from tests.gateway.engine.conftest import make_table
from tests.gateway.engine.test_pacing import scheduler_of


def test_the_share_falls_while_clients_send_requests_and_rises_with_the_backlog() -> None:
    runs = [7]
    share = CpuShare(0.25, lambda: runs[0])
    assert share.after_batch() == 0.25
    assert share.after_batch() == 0.5
    runs[0] += 1
    assert share.after_batch(has_large_backlog=False) == 0.25
    runs[0] += 1
    assert share.after_batch(has_large_backlog=True) == 0.5
    assert share.after_batch() == 0.5


def test_the_share_is_at_most_one_core() -> None:
    share = CpuShare(0.7, lambda: 0)
    assert [share.after_batch() for _ in range(2)] == [0.7, 1.0]


@pytest.mark.parametrize(
    ("rows", "batch_s", "is_large"),
    [
        (LARGE_BACKLOG_ROWS - 1, 0.001, False),
        (LARGE_BACKLOG_ROWS, 0.001, True),
        (50 * 1_000, LARGE_BACKLOG_S / 1_000, False),
        (50 * 1_000, LARGE_BACKLOG_S / 1_000 + 0.01, True),
    ],
)
def test_a_backlog_is_large_by_its_rows_or_by_the_speed_of_batches(
    monkeypatch: pytest.MonkeyPatch, rows: int, batch_s: float, is_large: bool
) -> None:
    now = [128.0]
    monkeypatch.setattr(scheduler.time, "monotonic", lambda: now[0])

    def work(now_ms: int, limit: int) -> int:
        now[0] += batch_s
        return 50

    background = scheduler_of(
        Work("a", work, count=lambda session, now_ms: rows - 9),
        Work("b", lambda now_ms, limit: None, count=lambda session, now_ms: 9),
    )
    assert not background.has_large_backlog
    background.next_batch()
    assert background.has_large_backlog is is_large


def test_commands_of_clients_are_noticed(engine: Engine) -> None:
    share = CpuShare(0.25, lambda: engine.run_count)
    share.after_batch()
    assert share.after_batch() == 0.5
    make_table(engine)
    assert share.after_batch() == 0.25
    engine.background.next_batch()
    assert share.after_batch() == 0.5


def test_batches_are_shorter_beside_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """They grow as the others do, so that each takes half of the time."""
    now, limits = [100.0], []
    monkeypatch.setattr(scheduler.time, "monotonic", lambda: now[0])

    def work(now_ms: int, limit: int) -> int:
        limits.append(limit)
        now[0] += limit * 1e-5
        return limit

    background = scheduler_of(Work("a", work))
    for _ in range(8):
        background.next_batch(beside_clients=True)
    assert limits[0] == MIN_ROWS // PARTS_BESIDE_CLIENTS
    assert BATCH_S / 2 <= limits[-1] * 1e-5 * PARTS_BESIDE_CLIENTS <= BATCH_S
    background.next_batch()
    assert limits[-1] == limits[-2] * PARTS_BESIDE_CLIENTS
