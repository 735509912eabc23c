"""Rows expire by their rule, unless they were written in the meantime."""

from __future__ import annotations

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.engine.tables import expiring
from tablegate.gateway.model.commands.table_commands import AlterTable
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules
from tablegate.gateway.model.values.values import Value, decimal, text
from tests.gateway.engine.conftest import Client, do_background_work, make_table
from tests.support.clock import Clock


def expiring_table(engine: Engine) -> Client:
    return Client(engine, make_table(engine, rules=Rules(expiry=ExpiryRule(attribute="ttl"))))


def in_seconds(clock: Clock, seconds: float) -> Value:
    return decimal(clock.ms // 1000 + int(seconds))


def names(things: Client) -> list[str]:
    return [row.latest["p"].data for row in things.rows()]


def test_a_row_goes_when_its_second_has_passed(engine: Engine, clock: Clock) -> None:
    things = expiring_table(engine)
    things.write(
        things.put("soon", ttl=in_seconds(clock, 10)), things.put("later", ttl=in_seconds(clock, 100))
    )
    do_background_work(engine)
    assert names(things) == ["later", "soon"]
    clock.advance(11)
    do_background_work(engine)
    assert names(things) == ["later"]


def test_only_numbers_of_the_last_five_years_count(engine: Engine, clock: Clock) -> None:
    """docs/protocols/dynamodb.md rule 39."""
    things = expiring_table(engine)
    years = 365 * 86_400
    things.write(
        things.put("text", ttl=text("1")),
        things.put("none"),
        things.put("long-ago", ttl=in_seconds(clock, -6 * years)),
        things.put("ago", ttl=in_seconds(clock, -4 * years)),
        things.put("endless", ttl=decimal("1e100")),
    )
    do_background_work(engine)
    assert names(things) == ["endless", "long-ago", "none", "text"]


def test_a_row_that_was_written_since_stays(engine: Engine, clock: Clock) -> None:
    things = expiring_table(engine)
    things.write(things.put("a", ttl=in_seconds(clock, -10)))
    found = expiring.sweep(engine._store, clock.ms, 10)
    things.write(things.put("a", ttl=in_seconds(clock, 100)))
    engine.run(list(found))
    assert names(things) == ["a"]


def test_changing_the_rule_changes_what_expires(engine: Engine, clock: Clock) -> None:
    things = Client(engine, make_table(engine))
    things.write(*(things.put(f"p{n}", ttl=in_seconds(clock, -10)) for n in range(600)))
    before = {row.position: row.modified_at for row in things.rows()}
    do_background_work(engine)
    assert len(things.rows()) == 600
    assert {row.position: row.modified_at for row in things.rows()} == before
    [things.table] = engine.run(
        [AlterTable("test", things.table, rules=Rules(expiry=ExpiryRule(attribute="ttl")))]
    )
    do_background_work(engine)
    assert things.rows() == []


def test_without_a_rule_nothing_expires_any_more(engine: Engine, clock: Clock) -> None:
    things = expiring_table(engine)
    things.write(*(things.put(f"p{n}", ttl=in_seconds(clock, 10)) for n in range(3)))
    [things.table] = engine.run([AlterTable("test", things.table, rules=Rules())])
    clock.advance(20)
    do_background_work(engine)
    assert len(things.rows()) == 3
