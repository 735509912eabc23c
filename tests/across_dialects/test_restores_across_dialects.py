"""Tables written by their own SDKs, restored to any moment and compared with the state stored after each write.

The tables are:

- items with transactions, an index and expiry;
- entities with merges and entity groups;
- rows with cell versions, an index, automatic numbers and local transactions.

One history covers all three dialects. Rows are compared byte by byte, with their times of modification. Index entries
are compared with those that the rows need.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import tablestore as ots
from azure.core.exceptions import HttpResponseError
from azure.data.tables import UpdateMode
from botocore.exceptions import ClientError

from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.app import application_of
from tablegate.gateway.engine.engine import Engine, run_with_retries
from tablegate.gateway.features.history.backup_commands import KeepHistory, ListBackups, RestoreTable
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.commands.table_commands import CreateTable, DropTable, FindTable
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.expressions.ranges import EVERYTHING
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.security.credentials import SHARED_NAMESPACE
from tests.support.across import Across
from tests.support.live_dynamodb import Index
from tests.support.live_tablestore import LiveTableStore
from tests.support.running import start
from tests.support.soak import minutes_long
from tests.support.stored_tables import StoredRows, stored_entries, stored_rows

IGNORE = ots.Condition(ots.RowExistenceExpectation.IGNORE)


@dataclass
class Kept:
    """A table with a history, random writes to it, and its state after each write."""

    engine: Engine
    name: str
    write: Callable[[random.Random], None]
    moments: list[tuple[int, StoredRows]] = field(default_factory=list)

    @property
    def table(self) -> Table:
        return found(self.engine, self.name)

    def note(self) -> None:
        """Record the stored state. Without other writers, it is also the state a little later."""
        rows = stored_rows(self.engine, self.table.id)
        self.moments.append((time.time_ns() // 100, rows))


def found(engine: Engine, name: str) -> Table:
    table = run(engine, FindTable(SHARED_NAMESPACE, name))
    assert isinstance(table, Table)
    return table


def run(engine: Engine, command: Any) -> Any:
    [answer] = run_with_retries(engine, [command])
    if isinstance(answer, GatewayError):
        raise answer
    return answer


def items(across: Across) -> tuple[str, Callable[[random.Random], None]]:
    """A table of DynamoDB's with a global index and a time to live, and one random write to it."""
    live = across.dynamodb
    name = live.create("p:S", "s:N", indexes=[Index("by_color", "color:S", "s:N")]).name
    specification = {"Enabled": True, "AttributeName": "until"}
    live.client.update_time_to_live(TableName=name, TimeToLiveSpecification=specification)

    def key(dice: random.Random) -> dict[str, Any]:
        return {"p": {"S": dice.choice("ab")}, "s": {"N": str(dice.randrange(6))}}

    def item(dice: random.Random) -> dict[str, Any]:
        more: dict[str, Any] = {"n": {"N": str(dice.random())}}
        if dice.random() < 0.6:
            more["color"] = {"S": dice.choice(["red", "blue"])}
        if dice.random() < 0.3:
            more["until"] = {"N": str(int(time.time()) - dice.randrange(-3600, 3600))}
        return key(dice) | more

    def write(dice: random.Random) -> None:
        match dice.randrange(6):
            case 0:
                live.client.put_item(TableName=name, Item=item(dice))
            case 1:
                live.client.update_item(
                    TableName=name, Key=key(dice), UpdateExpression="ADD hits :one SET color = :c",
                    ExpressionAttributeValues={":one": {"N": "1"}, ":c": {"S": dice.choice(["red", "green"])}},
                )  # fmt: skip
            case 2:
                live.client.delete_item(TableName=name, Key=key(dice))
            case 3:
                wanted = {f"{each['p']}{each['s']}": each for each in (item(dice) for _ in range(4))}
                requests = [{"PutRequest": {"Item": each}} for each in wanted.values()]
                live.client.batch_write_item(RequestItems={name: requests})
            case 4:
                first, second = dice.sample([0, 1, 2, 3], 2)
                actions = [
                    {"Put": {"TableName": name, "Item": item(dice) | {"s": {"N": str(first)}}}},
                    {
                        "Delete": {
                            "TableName": name,
                            "Key": key(dice) | {"s": {"N": str(second)}},
                            "ConditionExpression": "attribute_exists(p)",
                        }
                    },
                ]
                try:
                    live.client.transact_write_items(TransactItems=actions)
                except ClientError as error:
                    assert error.response["Error"]["Code"] == "TransactionCanceledException"
            case 5:
                there = item(dice)
                live.client.put_item(TableName=name, Item=there)
                statement = f'UPDATE "{name}" SET n = 7 WHERE p = ? AND s = ?'
                live.client.execute_statement(Statement=statement, Parameters=[there["p"], there["s"]])

    return name, write


def entities(across: Across) -> tuple[str, Callable[[random.Random], None]]:
    """A table of Azure's, and one random write to it."""
    name = across.new_name()
    table = across.azure.service.create_table(name)

    def entity(dice: random.Random) -> dict[str, Any]:
        names = dice.sample(["a", "b", "c"], 2)
        return {"PartitionKey": dice.choice("pq"), "RowKey": str(dice.randrange(6))} | {
            each: dice.choice([1, 2.5e300, "text", 0.5, True, b"bytes"]) for each in names
        }

    def write(dice: random.Random) -> None:
        match dice.randrange(4):
            case 0:
                table.upsert_entity(entity(dice), mode=UpdateMode.REPLACE)
            case 1:
                table.upsert_entity(entity(dice), mode=UpdateMode.MERGE)
            case 2:
                table.delete_entity(entity(dice))
            case 3:
                group = {each: {"PartitionKey": "g", "RowKey": each, "n": dice.random()} for each in "xyz"}
                operations: list[Any] = [("upsert", each) for each in group.values()]
                if dice.random() < 0.3:  # all of it is refused
                    operations.append(("create", {"PartitionKey": "g", "RowKey": "there"}))
                try:
                    table.submit_transaction(operations)
                except HttpResponseError as error:
                    assert error.status_code == 409

    table.upsert_entity({"PartitionKey": "g", "RowKey": "there"})
    return name, write


def versions(across: Across) -> tuple[str, Callable[[random.Random], None]]:
    """A table of Table Store's with three versions of each cell and a column of automatic numbers, and one random write."""
    name = across.new_name()
    client = across.tablestore
    meta = ots.TableMeta(name, [("p", "STRING"), ("s", "INTEGER", ots.PK_AUTO_INCR)])
    client.create_table(meta, ots.TableOptions(-1, 3), ots.ReservedThroughput(ots.CapacityUnit(0, 0)))
    numbers: list[int] = []

    def write(dice: random.Random) -> None:
        key = [("p", "a"), ("s", dice.choice(numbers) if numbers else 0)]
        match dice.randrange(3) if numbers else 0:
            case 0:
                row = ots.Row([("p", "a"), ("s", ots.PK_AUTO_INCR)], [("n", dice.randrange(100)), ("x", "y")])
                _, made = client.put_row(name, row, IGNORE, ots.ReturnType.RT_PK)
                numbers.append(made.primary_key[1][1])
            case 1:
                change: dict[str, Any] = {"PUT": [("n", dice.randrange(100))]}
                if dice.random() < 0.5:
                    change["DELETE_ALL"] = ["x"]
                client.update_row(name, ots.Row(key, change), IGNORE)
            case 2:
                client.delete_row(name, ots.Row(key), IGNORE)
                numbers.remove(key[1][1])  # Only the server gives numbers to new rows.

    return name, write


def indexed(across: Across) -> tuple[str, Callable[[random.Random], None]]:
    """A table of Table Store's with an index and local transactions, and one random write to it."""
    name = across.new_name()
    store = LiveTableStore(across.url)
    index = messages.IndexMeta(
        name=f"{name}by", primary_key=["color", "p", "s"], index_update_mode=messages.IUM_ASYNC_INDEX,
        index_type=messages.IT_GLOBAL_INDEX,
    )  # fmt: skip
    store.create(
        name, ("p", messages.STRING), ("s", messages.INTEGER), enable_local_txn=True, index_metas=[index],
        defined=[messages.DefinedColumnSchema(name="color", type=messages.DCT_STRING)],
    )  # fmt: skip
    client = across.tablestore

    def row(dice: random.Random) -> ots.Row:
        key = [("p", "a"), ("s", dice.randrange(8))]
        return ots.Row(key, [("n", dice.randrange(100)), ("color", dice.choice(["red", "blue"]))])

    def write(dice: random.Random) -> None:
        match dice.randrange(3):
            case 0:
                client.put_row(name, row(dice), IGNORE)
            case 1:
                client.delete_row(name, ots.Row(row(dice).primary_key), IGNORE)
            case 2:
                transaction = client.start_local_transaction(name, [("p", "a")])
                for _ in range(3):
                    client.put_row(name, row(dice), IGNORE, transaction_id=transaction)
                dice.choice([client.commit_transaction, client.abort_transaction])(transaction)

    return name, write


@pytest.fixture(scope="module")
def served(shared_database_url: str) -> Iterator[tuple[Across, Engine]]:
    running = start(shared_database_url, sweep_period=86_400)
    yield Across(running.url), application_of(running.app).gateway.engine
    running.stop()


def restored(engine: Engine, definition: Table, source: Any, at: int | None, name: str) -> Table:
    run(engine, RestoreTable(CreateTable.like(definition, SHARED_NAMESPACE, name), source, at))
    while (made := found(engine, name)).state_at(1 << 50) is State.CREATING:
        engine.background.next_batch()  # beside the server's own background work
    return made


def right_entries(engine: Engine, table: Table) -> int:
    """Return the number of index entries that the rows of a table need."""
    page = run(engine, Read(table, EVERYTHING, PageLimits()))
    return sum(index.entry(row) is not None for row in page.rows for index in table.indexes)


def go_back(across: Across, engine: Engine, make: Any, seed: int, restores: int) -> None:
    dice = random.Random(seed)
    name, write = make(across)
    run(engine, KeepHistory(found(engine, name), 35))
    kept = Kept(engine, name, write)
    kept.note()
    for _ in range(restores * 3):
        kept.write(dice)
        kept.note()
        if dice.random() < 0.1:
            engine.background.catch_up()  # what has expired goes
            kept.note()
    for number in range(restores):
        at, wanted = dice.choice(kept.moments)
        made = restored(engine, kept.table, kept.table, at, f"{name}r{number}")
        assert stored_rows(engine, made.id) == wanted
        assert sum(map(len, stored_entries(engine, made))) == right_entries(engine, made)
        run(engine, DropTable(made))
    last = stored_rows(engine, kept.table.id)
    definition = kept.table
    run(engine, DropTable(definition))
    [backup] = [each for each in run(engine, ListBackups(SHARED_NAMESPACE)) if each.table_name == name]
    made = restored(engine, definition, backup, None, name)
    assert stored_rows(engine, made.id) == last
    assert sum(map(len, stored_entries(engine, made))) == right_entries(engine, made)


@pytest.mark.parametrize("make", [items, entities, versions, indexed])
def test_a_restored_table_equals_its_earlier_state(served: tuple[Across, Engine], make: Any) -> None:
    go_back(*served, make, seed=1, restores=13)


@pytest.mark.soak
@minutes_long
@pytest.mark.parametrize("make", [items, entities, versions, indexed])
def test_a_restored_table_equals_its_state_at_many_times(served: tuple[Across, Engine], make: Any) -> None:
    for seed in range(2, 19):
        go_back(*served, make, seed, restores=20)
