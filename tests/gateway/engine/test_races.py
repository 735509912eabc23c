"""Concurrent clients: one winner, no lost update, no partial group. The runs here are short. `make soak` runs them for
a minute.

On PostgreSQL, two engines with separate connections and caches represent two server processes.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from typing import Any

import pytest

from tablegate.gateway.engine import transactions
from tablegate.gateway.engine.engine import Engine, run_with_retries
from tablegate.gateway.model.commands.row_commands import Get, ReadAll, WriteGroup, WriteOutcome
from tablegate.gateway.model.errors import ConditionFailed, Contended, GroupRefused
from tablegate.gateway.model.expressions.predicates import (
    Attribute,
    Compare,
    Comparison,
    Literal,
    Not,
    RowExists,
)
from tablegate.gateway.model.expressions.updates import Current, Minus, Plus, SetTo
from tablegate.gateway.model.expressions.updates import Literal as Constant
from tablegate.gateway.model.values.values import decimal, text
from tests.gateway.engine.conftest import Client, make_table
from tests.support.concurrency import all_at_once

pytestmark = pytest.mark.soak

SECONDS = float(os.environ.get("TABLEGATE_TEST_SOAK_SECONDS", "1.5"))


def test_a_conditional_insert_has_one_winner(engines: list[Engine]) -> None:
    table = make_table(engines[0])
    rounds, writers = 40, 6
    barrier = threading.Barrier(writers)
    wins: list[tuple[int, int]] = []

    def insert(writer: int) -> None:
        client = Client(engines[writer % len(engines)], table)
        for number in range(rounds):
            barrier.wait()
            write = client.put(f"p{number}", condition=Not(RowExists()), winner=decimal(writer))
            [answer] = client.engine.run([WriteGroup((write,))])
            while isinstance(answer, Contended):  # a lock timed out on a busy machine, and nothing was done
                [answer] = client.engine.run([WriteGroup((write,))])
            assert isinstance(answer, (list, ConditionFailed)), answer
            if isinstance(answer, list):
                wins.append((number, writer))

    def insert_or_abort(writer: int) -> None:
        try:
            insert(writer)
        except BaseException:
            barrier.abort()  # the others would wait for this thread without end
            raise

    all_at_once([lambda writer=writer: insert_or_abort(writer) for writer in range(writers)])
    stored = {
        (int(row.latest["p"].data[1:]), int(row.latest["winner"].data))
        for row in Client(engines[0], table).rows()
    }
    assert len(wins) == rounds
    assert set(wins) == stored


def test_no_increment_is_lost(engines: list[Engine]) -> None:
    table = make_table(engines[0])
    increment = SetTo(("n",), Plus(Current(("n",)), Constant(decimal(1))))
    counters = 3
    Client(engines[0], table).write(
        *(Client(engines[0], table).put(f"c{n}", n=decimal(0)) for n in range(counters))
    )
    done: list[int] = []
    until = time.monotonic() + SECONDS

    def count(writer: int) -> None:
        client = Client(engines[writer % len(engines)], table)
        chance = random.Random(writer)
        total = 0
        while time.monotonic() < until:
            names = [f"c{chance.randrange(counters)}" for _ in range(chance.randint(1, 4))]
            client.write(*(client.edit(name, 0, increment) for name in names))
            total += len(names)
        done.append(total)

    all_at_once([lambda writer=writer: count(writer) for writer in range(4)])
    assert sum(int(row.latest["n"].data) for row in Client(engines[0], table).rows()) == sum(done)


def written(engine: Engine, command: Any) -> list[Any]:
    """The outcome of a command. It is sent again if a lock timed out, as on a busy machine: nothing was done then."""
    if engine.is_distributed:  # locks are taken in one order within each node only
        return run_with_retries(engine, [command])
    while isinstance((outcomes := engine.run([command]))[0], Contended):
        pass
    return outcomes


def test_transfers_keep_the_sum_and_no_reader_sees_half_of_one(engines: list[Engine]) -> None:
    """Groups of two writes move money between accounts. Every read of all accounts has the same sum."""
    table = make_table(engines[0])
    accounts, each = 8, 100
    first = Client(engines[0], table)
    first.write(*(first.put(f"a{n}", balance=decimal(each)) for n in range(accounts)))
    until = time.monotonic() + SECONDS
    moved: list[int] = []

    def transfer(writer: int) -> None:
        client = Client(engines[writer % len(engines)], table)
        chance = random.Random(writer)
        while time.monotonic() < until:
            source, target = chance.sample(range(accounts), 2)
            amount = decimal(chance.randint(1, 30))
            enough = Compare(Attribute(("balance",)), Comparison.GE, Literal(amount))
            take = SetTo(("balance",), Minus(Current(("balance",)), Constant(amount)))
            give = SetTo(("balance",), Plus(Current(("balance",)), Constant(amount)))
            group = WriteGroup(
                (client.edit(f"a{source}", 0, take, condition=enough), client.edit(f"a{target}", 0, give))
            )
            [answer] = written(client.engine, group)
            assert isinstance(answer, (list, GroupRefused)), answer
            if isinstance(answer, list):
                assert all(isinstance(outcome, WriteOutcome) for outcome in answer)
                moved.append(writer)

    def watch(reader: int) -> None:
        client = Client(engines[reader % len(engines)], table)
        gets = tuple(Get(table, client.key(f"a{n}").position) for n in range(accounts))
        while time.monotonic() < until:
            [rows] = written(client.engine, ReadAll(gets))
            assert sum(row.latest["balance"].data for row in rows) == accounts * each
            if client.engine._store.database.has_snapshots:  # else a Scan is of no single moment
                assert sum(row.latest["balance"].data for row in client.rows()) == accounts * each

    works = [lambda writer=writer: transfer(writer) for writer in range(3)]
    works += [lambda reader=reader: watch(reader) for reader in range(2)]
    all_at_once(works)
    assert len(moved) > 10
    assert sum(row.latest["balance"].data for row in first.rows()) == accounts * each
    assert all(row.latest["balance"].data >= 0 for row in first.rows())


def test_groups_that_overlap_in_opposite_order_do_not_deadlock(
    engines: list[Engine], caplog: pytest.LogCaptureFixture
) -> None:
    """A deadlock would be repeated, so it is looked for in the log."""
    caplog.set_level(logging.INFO, transactions.__name__)
    table = make_table(engines[0])
    until = time.monotonic() + SECONDS

    def write(writer: int) -> None:
        client = Client(engines[writer % len(engines)], table)
        chance = random.Random(writer)
        while time.monotonic() < until:
            names = chance.sample(range(12), 6)
            group = WriteGroup(tuple(client.put(f"p{n}", by=text(str(writer))) for n in names))
            [answer] = written(client.engine, group)
            assert isinstance(answer, list), answer

    all_at_once([lambda writer=writer: write(writer) for writer in range(4)])
    assert engines[0].is_distributed or "deadlock" not in caplog.text
