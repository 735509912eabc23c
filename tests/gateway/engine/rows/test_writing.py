"""The write path: conditions, groups, tokens, and lists of groups that write the same rows."""

from __future__ import annotations

import random
import threading

import pytest

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.commands.row_commands import Get, IdempotencyToken, ReplayedOutcome, WriteGroup
from tablegate.gateway.model.commands.table_commands import AlterTable, DropTable
from tablegate.gateway.model.commands.writes import CheckOnly, Write
from tablegate.gateway.model.errors import ConditionFailed, GroupRefused, StaleTable, TokenReused
from tablegate.gateway.model.expressions.predicates import (
    ALWAYS,
    And,
    Attribute,
    Compare,
    Comparison,
    Exists,
    Literal,
    Not,
    Predicate,
    RevisionIs,
    RowExists,
)
from tablegate.gateway.model.expressions.updates import Current, Plus, SetTo
from tablegate.gateway.model.expressions.updates import Literal as Constant
from tablegate.gateway.model.tables.tables import Rules
from tablegate.gateway.model.values.values import Value, decimal, text
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import Client, make_table
from tests.support.clock import Clock
from tests.support.concurrency import all_at_once
from tests.support.databases import at_another_node


def test_a_put_replaces_the_whole_row(things: Client) -> None:
    things.write(things.put("a", x=text("1"), y=text("2")))
    [outcome] = things.write(things.put("a", x=text("3")))
    assert outcome.old is not None and outcome.old.latest["y"] == text("2")
    [row] = things.rows()
    assert row.latest == {"p": text("a"), "s": decimal(0), "x": text("3")}


def test_a_remove_of_nothing_succeeds(things: Client) -> None:
    [outcome] = things.write(things.remove("a"))
    assert (outcome.old, outcome.new) == (None, None)
    assert things.rows() == []


def test_a_condition_is_evaluated_on_the_old_row(things: Client) -> None:
    absent = Not(RowExists())
    things.write(things.put("a", condition=absent))
    with pytest.raises(ConditionFailed) as failure:
        things.write(things.put("a", condition=absent, x=text("new")))
    assert failure.value.row is not None
    assert "x" not in things.rows()[0].latest


def test_writes_of_one_list_see_each_other_in_order(things: Client) -> None:
    increment = SetTo(("n",), Plus(Current(("n",)), Constant(decimal(1))))
    things.write(things.put("a", n=decimal(0)), *(things.edit("a", 0, increment) for _ in range(5)))
    assert things.rows()[0].latest["n"] == decimal(5)


def test_one_failing_group_of_a_list_fails_alone(things: Client) -> None:
    answers = things.engine.run(
        [
            WriteGroup((things.put("a"),)),
            WriteGroup((things.put("b", condition=RowExists()),)),
            WriteGroup((things.put("c"),)),
        ]
    )
    assert isinstance(answers[1], ConditionFailed)
    assert [row.latest["p"].data for row in things.rows()] == ["a", "c"]


def test_a_group_happens_all_or_not_at_all(things: Client) -> None:
    things.write(things.put("a", 1))
    [answer] = things.engine.run(
        [WriteGroup((things.remove("a", 1), things.put("a", 2), things.put("a", 3, condition=RowExists())))]
    )
    assert isinstance(answer, GroupRefused)
    assert [type(reason) for reason in answer.reasons] == [type(None), type(None), ConditionFailed]
    assert [row.latest["s"] for row in things.rows()] == [decimal(1)]


def test_keep_checks_and_changes_nothing(things: Client) -> None:
    things.write(things.put("a"))
    [before] = things.rows()
    things.write(Write(things.table, things.key("a"), CheckOnly(), RowExists()))
    assert things.rows()[0].modified_at == before.modified_at
    with pytest.raises(ConditionFailed):
        things.write(Write(things.table, things.key("b"), CheckOnly(), RowExists()))
    assert len(things.rows()) == 1


def test_modified_at_grows_with_every_write_even_in_one_list(things: Client) -> None:
    outcomes = things.write(*(things.put("a") for _ in range(4)))
    stamps = [outcome.new.modified_at for outcome in outcomes if outcome.new]
    assert stamps == sorted(set(stamps))
    assert len(stamps) == 4


def test_a_revision_matches_only_itself(things: Client) -> None:
    [outcome] = things.write(things.put("a"))
    assert outcome.new is not None
    things.write(things.put("a", condition=RevisionIs(outcome.new.modified_at)))
    with pytest.raises(ConditionFailed):
        things.write(things.put("a", condition=RevisionIs(outcome.new.modified_at)))


def token(name: str, digest: bytes = b"request") -> IdempotencyToken:
    return IdempotencyToken("test", name, digest, 600_000)


def test_a_token_is_answered_once_and_replayed_after(things: Client) -> None:
    group = WriteGroup((things.put("a", x=text("v")), things.put("b")), token("t"))
    [first] = things.engine.run([group])
    [again] = things.engine.run([group])
    assert len(first) == 2
    assert isinstance(again, ReplayedOutcome)
    assert again.sizes == ((None, first[0].new.size_bytes), (None, first[1].new.size_bytes))


def test_a_token_may_be_any_text(things: Client) -> None:
    for number, name in enumerate(("t", "t\0", "t\\0", "\0", "\\", "\\\\", "é")):
        group = WriteGroup((things.put(str(number)),), token(name))
        [first] = things.engine.run([group])
        [again] = things.engine.run([group])
        assert (type(first), type(again)) == (list, ReplayedOutcome), name


def test_equal_tokens_of_one_list_agree(things: Client) -> None:
    increment = SetTo(("n",), Plus(Current(("n",)), Constant(decimal(1))))
    things.write(things.put("a", n=decimal(0)))
    group = WriteGroup((things.edit("a", 0, increment),), token("t"))
    answers = things.engine.run([group, group])
    assert [type(answer) for answer in answers] == [list, ReplayedOutcome]
    assert things.rows()[0].latest["n"] == decimal(1)


def test_a_token_of_another_request_is_refused(things: Client) -> None:
    things.engine.run([WriteGroup((things.put("a"),), token("t"))])
    [answer] = things.engine.run([WriteGroup((things.put("b"),), token("t", b"another"))])
    assert isinstance(answer, TokenReused)
    assert len(things.rows()) == 1


def test_a_token_of_a_refused_group_can_be_used_again(things: Client) -> None:
    refused = WriteGroup((things.put("a", condition=RowExists()),), token("t"))
    assert isinstance(things.engine.run([refused])[0], ConditionFailed)
    things.write(things.put("a"))
    assert isinstance(things.engine.run([refused])[0], list)


def test_a_token_is_forgotten_after_its_time(things: Client, clock) -> None:
    group = WriteGroup((things.put("a"),), token("t"))
    things.engine.run([group])
    clock.advance(601)
    assert isinstance(things.engine.run([group])[0], list)


def test_an_outdated_descriptor_is_parsed_again(things: Client) -> None:
    old = things.table
    [altered] = things.engine.run([AlterTable("test", old, rules=Rules(max_versions=2))])
    assert altered.version > old.version
    [answer] = things.engine.run([WriteGroup((things.put("a"),))])
    assert isinstance(answer, StaleTable)


def test_no_row_of_a_list_is_written_if_one_table_is_outdated(engine: Engine, things: Client) -> None:
    """Groups of one request can be in one list. The request is retried as a whole, so no part of it may be applied."""
    other = Client(engine, make_table(engine, "other"))
    engine.run([AlterTable("test", other.table, rules=Rules(max_versions=2))])
    answers = engine.run([WriteGroup((things.put("a"),)), WriteGroup((other.put("a"),))])
    assert [type(answer) for answer in answers] == [StaleTable, StaleTable]
    assert things.rows() == []


@pytest.mark.parametrize("newer_last", [True, False])
def test_two_versions_of_one_table_are_not_written_together(things: Client, newer_last: bool) -> None:
    """The older would pass the check in the shadow of the newer, and lose entries of an index that it has not seen."""
    old = things.table
    [new] = things.engine.run([AlterTable("test", old, rules=Rules(max_versions=2))])
    groups = [
        WriteGroup((things.put(name)._replace(table=table),)) for name, table in (("a", old), ("b", new))
    ]
    answers = things.engine.run(groups if newer_last else groups[::-1])
    assert [type(answer) for answer in answers] == [StaleTable, StaleTable]


def test_no_write_is_acknowledged_into_a_dropped_table(engine: Engine, things: Client) -> None:
    engine.run([DropTable(things.table)])
    anew = make_table(engine)
    [answer] = engine.run([WriteGroup((things.put("a"),))])
    assert isinstance(answer, StaleTable)
    assert anew.id != things.table.id
    assert engine.run([Get(anew, things.key("a").position)]) == [None]


def test_a_condition_reads_values(things: Client) -> None:
    things.write(things.put("a", n=decimal(7)))
    is_seven = Compare(Attribute(("n",)), Comparison.EQ, Literal(decimal("7.0")))
    things.write(things.put("a", condition=is_seven))
    with pytest.raises(ConditionFailed):
        things.write(things.put("a", condition=is_seven))


def test_the_revision_grows_even_when_the_clock_stands(engine: Engine, clock: Clock) -> None:
    things = Client(engine, make_table(engine))
    things.write(things.put("a"), things.put("b"))
    before = [row.modified_at for row in things.rows()]
    clock.ns -= 10**9
    things.write(things.put("a", n=decimal(1)), things.put("b"))
    things.write(things.put("a", n=decimal(2)))
    assert [row.modified_at for row in things.rows()] == [before[0] + 2, before[1] + 1]


def test_no_row_is_put_into_a_missing_table(engine: Engine, database: Database) -> None:
    things = Client(engine, make_table(engine))
    other = Client(engine, make_table(engine, "other"))
    [_] = engine.run([DropTable(things.table)])
    answers = engine.run([WriteGroup((client.put("a"),)) for client in (things, other)])
    assert [type(answer) for answer in answers] == [StaleTable, StaleTable]
    assert other.rows() == []
    with database.read() as session:
        assert session.query("SELECT count(*) FROM rows") == [(0,)]


def test_puts_of_two_servers_neither_deadlock_nor_lose_a_revision(database: Database) -> None:
    engines = [new_engine(Store(database))]
    if database.shared:
        url = database.engine.url.render_as_string(hide_password=False)
        engines.append(new_engine(Store(open_database(at_another_node(url)))))
    table = make_table(engines[0])
    lists, keys = 40, [f"p{number}" for number in range(6)]
    together = threading.Barrier(4)

    def put(writer: int) -> None:
        choice = random.Random(writer)
        client = Client(engines[writer % len(engines)], table)
        together.wait()
        for _ in range(lists):
            client.write(*(client.put(p, writer=text(str(writer))) for p in choice.sample(keys, 4)))

    client = Client(engines[0], table)
    client.write(*(client.put(p) for p in keys))
    before = {row.position: row.modified_at for row in client.rows()}
    all_at_once([lambda writer=writer: put(writer) for writer in range(4)])  # type: ignore[misc]
    after = client.rows()
    assert len(after) == len(keys)
    assert all(row.modified_at > before[row.position] and "writer" in row.latest for row in after)
    for engine in engines[1:]:
        engine.close()


# Inserts


def insert(client: Client, p: str, **values: Value) -> Write:
    return client.put(p, **values)._replace(condition=Not(RowExists()))


@pytest.mark.parametrize(
    "condition", [Not(RowExists()), Not(Exists(("p",))), And((Not(Exists(("p",))), ALWAYS))]
)
def test_an_insert_that_meets_a_row_fails_alone(engine: Engine, condition: Predicate) -> None:
    things = Client(engine, make_table(engine))
    things.write(things.put("b", n=decimal(1)))
    groups = [
        WriteGroup((things.put(p, n=decimal(2))._replace(condition=condition),)) for p in ("a", "b", "c")
    ]
    first, second, third = engine.run(groups)
    assert isinstance(second, ConditionFailed)
    assert second.row.latest["n"] == decimal(1)
    assert first[0].old is None and third[0].old is None
    assert [row.latest["n"] for row in things.rows()] == [decimal(2), decimal(1), decimal(2)]


def test_a_group_of_inserts_is_whole_or_not_at_all(engine: Engine) -> None:
    things = Client(engine, make_table(engine))
    things.write(things.put("b"))
    [answer] = engine.run([WriteGroup(tuple(insert(things, p) for p in ("a", "b", "c")))])
    assert isinstance(answer, GroupRefused)
    assert [row.latest["p"] for row in things.rows()] == [text("b")]


def test_two_inserts_of_one_row_have_one_winner(engine: Engine) -> None:
    things = Client(engine, make_table(engine))
    first, second = engine.run([WriteGroup((insert(things, "a", n=decimal(n)),)) for n in (1, 2)])
    assert first[0].new.latest["n"] == decimal(1)
    assert isinstance(second, ConditionFailed)
