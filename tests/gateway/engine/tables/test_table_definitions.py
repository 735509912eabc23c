"""Tables: names, states with a delay, drops in constant time, ids that are never given twice."""

from __future__ import annotations

import pytest

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.model.commands import table_commands
from tablegate.gateway.model.commands.row_commands import Get, WriteGroup
from tablegate.gateway.model.errors import StaleTable, TableBusy, TableExists, TableMissing
from tablegate.gateway.model.tables.tables import Rules, State, Table
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import PAIR, Client, by_color, do_background_work, make_table
from tests.support.clock import Clock


def test_a_table_is_found_as_it_was_created(engine: Engine) -> None:
    made = make_table(engine, "Things.and-more_1", indexes=(by_color(),), rules=Rules(max_versions=3))
    [found] = engine.run([table_commands.FindTable("", "Things.and-more_1")])
    assert found == made


def test_tables_are_found_together_in_the_order_of_the_commands(engine: Engine) -> None:
    first, second = make_table(engine, "first", indexes=(by_color(),)), make_table(engine, "second")
    found = engine.run(
        [
            table_commands.FindTable("", "second"),
            table_commands.FindTable("", "absent"),
            table_commands.FindTable("", "FIRST", by_azure_name=True),
            table_commands.FindTable("", "first\0"),
        ]
    )
    assert [found[0], found[2]] == [second, first]
    assert [type(each) for each in found[1::2]] == [TableMissing, TableMissing]


def test_names_differ_by_case_and_namespace(engine: Engine) -> None:
    first, second = make_table(engine, "abc"), make_table(engine, "ABC")
    [elsewhere] = engine.run([table_commands.CreateTable("test", "other", "abc", PAIR)])
    assert len({first.id, second.id, elsewhere.id}) == 3
    [again] = engine.run([table_commands.CreateTable("test", "", "abc", PAIR)])
    assert isinstance(again, TableExists)


def test_each_table_has_an_azure_name_unique_without_case(engine: Engine) -> None:
    names = [
        make_table(engine, name).azure_name
        for name in ("orders", "Orders", "my.table-1", "_x", "tables", "a" * 255)
    ]
    assert names[0] == "orders"
    assert len({name.lower() for name in names}) == len(names)
    assert all(name.isalnum() and name[0].isalpha() and 3 <= len(name) <= 63 for name in names)
    [found] = engine.run([table_commands.FindTable("", names[2].upper(), by_azure_name=True)])
    assert found.name == "my.table-1"


def test_azure_does_not_create_a_case_variant(engine: Engine) -> None:
    make_table(engine, "orders")
    [answer] = engine.run([table_commands.CreateTable("test", "", "ORDERS", PAIR, ignoring_case=True)])
    assert isinstance(answer, TableExists)


def test_no_table_has_a_name_with_a_nul(engine: Engine) -> None:
    """PostgreSQL rejects such a text. Clients can send it as a name or as a start for the next page."""
    make_table(engine, "things")
    for by_azure_name in (False, True):
        for name in ("things\0", "\0things", "\0"):
            assert isinstance(
                engine.run([table_commands.FindTable("", name, by_azure_name=by_azure_name)])[0], TableMissing
            )
        for after, names in (("thing\0z", ["things"]), ("things\0", []), ("\0", ["things"])):
            [page] = engine.run([table_commands.ListTables("", after, 5, by_azure_name=by_azure_name)])
            assert [table.name for table in page] == names


def test_tables_are_listed_in_code_point_order(engine: Engine) -> None:
    for name in ("b", "a", "B", "a.b", "a-b", "_"):
        make_table(engine, name)
    [tables] = engine.run([table_commands.ListTables("")])
    assert [table.name for table in tables] == sorted(["b", "a", "B", "a.b", "a-b", "_"])
    [page] = engine.run([table_commands.ListTables("", after="B", limit=2)])
    assert [table.name for table in page] == ["_", "a"]


def test_a_missing_table_is_looked_for_again(engine: Engine, database: Database, clock: Clock) -> None:
    """Another process may have made it in the meantime."""
    assert isinstance(engine.run([table_commands.FindTable("", "late")])[0], TableMissing)
    make_table(new_engine(Store(database), now=clock), "late")
    assert isinstance(engine.run([table_commands.FindTable("", "late")])[0], Table)


def test_a_drop_leaves_nothing_behind_and_ids_are_never_used_again(engine: Engine) -> None:
    things = Client(engine, make_table(engine, indexes=(by_color(),)))
    things.write(*(things.put(f"p{n}") for n in range(2_500)))
    engine.run([table_commands.DropTable(things.table)])
    anew = Client(engine, make_table(engine, indexes=(by_color(),)))
    assert anew.rows() == []
    anew.write(anew.put("kept"))
    do_background_work(engine)
    with engine._store.read() as session:
        assert session.query("SELECT count(*) FROM rows") == [(1,)]
    assert anew.table.id > things.table.id


def test_an_alteration_of_an_outdated_table_is_refused(engine: Engine, things: Client) -> None:
    engine.run([table_commands.AlterTable("test", things.table, properties={"test": {"a": 1}})])
    [answer] = engine.run([table_commands.AlterTable("test", things.table, properties={"test": {"b": 1}})])
    assert isinstance(answer, StaleTable)


def test_properties_of_dialects_are_kept_apart(engine: Engine, things: Client) -> None:
    [table] = engine.run([table_commands.AlterTable("test", things.table, properties={"one": {"a": 1}})])
    [table] = engine.run([table_commands.AlterTable("test", table, properties={"two": {"b": 2}})])
    assert table.properties == {"one": {"a": 1}, "two": {"b": 2}}


def test_rows_and_bytes_are_counted(things: Client) -> None:
    outcomes = things.write(*(things.put(f"p{n}") for n in range(5)))
    [statistics] = things.engine.run([table_commands.CountRows(things.table)])
    assert statistics.rows == 5
    assert statistics.size_bytes == sum(outcome.new.size_bytes for outcome in outcomes if outcome.new)


@pytest.fixture
def slow(database: Database, clock: Clock) -> Engine:
    """An engine that takes ten seconds to create, update or delete a table."""
    return new_engine(Store(database), EngineOptions(table_creation_delay_ms=10_000), clock)


def test_a_table_is_creating_until_its_delay_is_over(slow: Engine, clock: Clock) -> None:
    table = make_table(slow)
    things = Client(slow, table)
    assert table.state_at(clock.ms) is State.CREATING
    assert isinstance(slow.run([WriteGroup((things.put("a"),))])[0], TableBusy)
    assert isinstance(slow.run([Get(table, things.key("a").position)])[0], TableBusy)
    assert isinstance(slow.run([table_commands.DropTable(table)])[0], TableBusy)
    clock.advance(10)
    assert table.state_at(clock.ms) is State.ACTIVE
    things.write(things.put("a"))


def test_a_table_is_updating_and_usable_meanwhile(slow: Engine, clock: Clock) -> None:
    table = make_table(slow)
    clock.advance(10)
    [updating] = slow.run([table_commands.AlterTable("test", table, properties={})])
    assert updating.state_at(clock.ms) is State.UPDATING
    Client(slow, updating).write(Client(slow, updating).put("a"))
    assert isinstance(slow.run([table_commands.AlterTable("test", updating, properties={})])[0], TableBusy)


def test_an_instant_change_leaves_the_state_as_it_is(slow: Engine, clock: Clock) -> None:
    table = make_table(slow)
    assert isinstance(slow.run([table_commands.AlterTable("test", table, instant=True)])[0], TableBusy)
    clock.advance(10)
    [altered] = slow.run(
        [table_commands.AlterTable("test", table, properties={"test": {"a": 1}}, instant=True)]
    )
    assert altered.state_at(clock.ms) is State.ACTIVE
    [updating] = slow.run([table_commands.AlterTable("test", altered, properties={})])
    [still] = slow.run(
        [table_commands.AlterTable("test", updating, properties={"test": {"a": 2}}, instant=True)]
    )
    assert (still.state_at(clock.ms), still.properties["test"]) == (State.UPDATING, {"a": 2})
    clock.advance(10)
    assert still.state_at(clock.ms) is State.ACTIVE


def test_a_table_is_deleting_until_its_delay_is_over(slow: Engine, clock: Clock) -> None:
    table = make_table(slow)
    clock.advance(10)
    [deleting] = slow.run([table_commands.DropTable(table)])
    assert deleting.state_at(clock.ms) is State.DELETING
    assert isinstance(slow.run([table_commands.CreateTable("test", "", "things", PAIR)])[0], TableBusy)
    [found] = slow.run([table_commands.FindTable("", "things")])
    assert found.state_at(clock.ms) is State.DELETING
    assert isinstance(slow.run([WriteGroup((Client(slow, found).put("a"),))])[0], TableBusy)
    clock.advance(10)
    assert isinstance(slow.run([table_commands.FindTable("", "things")])[0], TableMissing)
    assert make_table(slow).id != table.id
