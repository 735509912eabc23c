"""Changes of a window of time, for random changes, compared with a model."""

from __future__ import annotations

import random

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.history import change_windows
from tablegate.gateway.features.history.backup_commands import KeepHistory
from tablegate.gateway.features.jobs.job_commands import StartJob
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.tables.tables import Table, namespace_of_job
from tablegate.gateway.model.values.rows import TICKS_PER_MS
from tablegate.gateway.model.values.values import decimal
from tests.gateway.engine.conftest import Client, do_background_work, make_table
from tests.gateway.features.history.test_restoring import run
from tests.support.clock import Clock

_KEYS = 40
_STEPS = 240
_WINDOWS = 6


def rows_of(engine: Engine, job_id: int, name: str) -> dict[object, object]:
    table = run(engine, FindTable(namespace_of_job(job_id), name))
    assert isinstance(table, Table)
    return {
        row.position: row.contents.body if name != change_windows.CHANGED else row.modified_at
        for row in Client(engine, table).rows()
    }


def states_of(client: Client) -> dict[object, object]:
    return {row.position: row.contents.body for row in client.rows()}


def test_windows_equal_a_model(engine: Engine, clock: Clock) -> None:
    chance = random.Random(5)
    table = make_table(engine, "t")
    kept = run(engine, KeepHistory(table, 35))
    assert isinstance(kept, Table)
    client = Client(engine, kept)
    model: list[tuple[int, dict[object, object]]] = []  # what there was from a millisecond on
    changed: list[tuple[int, object]] = []
    begun: list[tuple[int, tuple[int, int]]] = []
    for step in range(_STEPS):
        clock.ns = (clock.ms + chance.randrange(1, 4)) * 1_000_000
        key = f"{chance.randrange(_KEYS)}"
        before = states_of(client)
        if chance.random() < 0.4:
            client.write(client.remove(key))
        else:
            client.write(client.put(key, n=decimal(step)))
        after = states_of(client)
        changed += [
            (clock.ms, each) for each in before.keys() | after.keys() if before.get(each) != after.get(each)
        ]
        model.append((clock.ms, after))
        if step > 30 and len(begun) < _WINDOWS and step % 30 == 0:
            first, last = sorted(chance.sample([at for at, _ in model], 2))
            window = first * TICKS_PER_MS, last * TICKS_PER_MS
            job = run(engine, StartJob("kind", "", "t", {}, "running", 100, None, client.table, None, window))
            begun.append((job.id, (first, last)))  # type: ignore[attr-defined]
            client = Client(engine, run(engine, FindTable("", "t")))  # type: ignore[arg-type]
            if chance.random() < 0.5:
                engine.background.next_batch()
    do_background_work(engine)

    def at(moment: int) -> dict[object, object]:
        """Return the rows just before a millisecond."""
        return next((state for since, state in reversed(model) if since < moment), {})

    assert len(begun) == _WINDOWS
    for job_id, (first, last) in begun:
        inside = {key: when for when, key in changed if first <= when < last}
        found = rows_of(engine, job_id, change_windows.CHANGED)
        assert found.keys() == inside.keys()
        assert {key: ticks // TICKS_PER_MS for key, ticks in found.items()} == inside  # type: ignore[operator]
        assert rows_of(engine, job_id, change_windows.BEFORE) == {
            key: body for key, body in at(first).items() if key in inside
        }
        assert rows_of(engine, job_id, change_windows.AFTER) == {
            key: body for key, body in at(last).items() if key in inside
        }
