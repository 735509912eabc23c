"""Local transactions: what they see, what others see, whom they keep out, and how they end."""

from __future__ import annotations

import threading

import pytest

from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.local_transactions import (
    local_transaction_store as local_transactions_of_store,
)
from tablegate.gateway.features.local_transactions import local_transactions
from tablegate.gateway.features.local_transactions.local_transaction_commands import (
    AbortTransaction,
    BeginTransaction,
    CommitTransaction,
    FindTransaction,
    ReadInTransaction,
    StageWrites,
)
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import (
    Get,
    IdempotencyToken,
    Read,
    ReplayedOutcome,
    WriteGroup,
    WriteOutcome,
)
from tablegate.gateway.model.commands.table_commands import FindTable
from tablegate.gateway.model.commands.writes import Replace, Write
from tablegate.gateway.model.errors import (
    ConditionFailed,
    Contended,
    GatewayError,
    InvalidInput,
    LimitExceeded,
    PartitionLocked,
    TransactionMissing,
)
from tablegate.gateway.model.expressions.predicates import Not, RowExists
from tablegate.gateway.model.expressions.ranges import within
from tablegate.gateway.model.expressions.updates import Add
from tablegate.gateway.model.tables.pages import PageLimits
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules, Table
from tablegate.gateway.model.values.keys import AUTO_INCREMENT, SLOTS, Key, encode_column, slot_of
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import decimal, text
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store
from tests.gateway.engine.conftest import Client, by_color, make_table
from tests.gateway.engine.streams.test_streaming import ask, everything, make, stream_of
from tests.support.clock import Clock
from tests.support.databases import at_another_node

LIMIT = 4 << 20


def named(name: str, p: str = "a") -> str:
    """An id for a transaction of a partition: it ends in the partition's slot."""
    return f"{name}-{slot_of(encode_column(text(p))):04x}"


ID = named("transaction")


def current(client: Client) -> Client:
    """Return this client with the current descriptor, which the first transaction changes."""
    table = ask(client.engine, FindTable("", client.table.name))
    assert isinstance(table, Table)
    return Client(client.engine, table)


def begin(client: Client, p: str = "a", transaction: str = ID, lifetime_ms: int = 60_000) -> Client:
    client = current(client)
    ask(
        client.engine,
        BeginTransaction(client.table, client.key(p).position.partition, transaction, lifetime_ms),
    )
    return current(client)


def stage(client: Client, *writes: Write, transaction: str = ID, limit: int = LIMIT) -> list[WriteOutcome]:
    """Writes of one group in the transaction."""
    answers = ask(client.engine, StageWrites(transaction, (WriteGroup(writes),), limit))
    assert isinstance(answers, list)
    [answer] = answers
    if isinstance(answer, GatewayError):
        raise answer
    return answer


def seen(client: Client, p: str = "a", s: int = 0, transaction: str = "") -> dict[str, object] | None:
    get = Get(client.table, client.key(p, s).position)
    row = ask(client.engine, within_transaction(get, transaction))
    assert row is None or isinstance(row, Row)
    return (
        None
        if row is None
        else {name: value.data for name, value in row.latest.items() if name not in ("p", "s")}
    )


def within_transaction(read: Get | Read, transaction: str) -> Command[object]:
    return ReadInTransaction(transaction, read) if transaction else read


def listed(client: Client, p: str = "a", transaction: str = "", **options: object) -> list[int]:
    bounds = within(client.key(p).position.partition)
    read = Read(client.table, bounds, PageLimits(), **options)  # type: ignore[arg-type]
    page = ask(client.engine, within_transaction(read, transaction))
    return [int(row.latest["s"].data) for row in page.rows]  # type: ignore[attr-defined]


@pytest.fixture
def held(things: Client) -> Client:
    """Partition `a` with rows 1 and 2, held by a transaction."""
    things.write(things.put("a", 1, n=decimal(1)), things.put("a", 2, n=decimal(2)), things.put("b", 1))
    return begin(things)


def test_a_replay_is_answered_while_a_transaction_holds_its_partition(things: Client) -> None:
    """API reference of TransactWriteItems, ClientRequestToken: repeated calls have the same effect as a single one."""
    token = IdempotencyToken("test", "t", b"request", 600_000)
    ask(things.engine, WriteGroup((things.put("a", 1),), token))
    held = begin(things)
    assert isinstance(ask(held.engine, WriteGroup((held.put("a", 1),), token)), ReplayedOutcome)


def test_the_transaction_sees_its_own_writes_and_others_do_not(held: Client) -> None:
    stage(held, held.put("a", 1, n=decimal(10)))
    stage(held, held.edit("a", 1, Add(("n",), decimal(5))))
    stage(held, held.remove("a", 2))
    stage(held, held.put("a", 3, n=decimal(3)))
    assert seen(held, "a", 1, ID) == {"n": 15}
    assert seen(held, "a", 2, ID) is None
    assert listed(held, "a", ID) == [1, 3]
    assert listed(held, "a", ID, reverse=True) == [3, 1]
    assert seen(held, "a", 1) == {"n": 1}
    assert listed(held, "a") == [1, 2]
    assert seen(held, "b", 1, ID) == {}


def test_a_commit_applies_the_staged_writes(held: Client) -> None:
    stage(held, held.put("a", 1, n=decimal(10)), held.remove("a", 2))
    stage(held, held.edit("a", 1, Add(("n",), decimal(1))))
    ask(held.engine, CommitTransaction(ID))
    assert seen(held, "a", 1) == {"n": 11}
    assert listed(held, "a") == [1]
    held.write(held.put("a", 1, n=decimal(12)))


def test_an_abort_discards_the_staged_writes(held: Client) -> None:
    stage(held, held.put("a", 1, n=decimal(10)))
    ask(held.engine, AbortTransaction(ID))
    assert seen(held, "a", 1) == {"n": 1}
    held.write(held.put("a", 1, n=decimal(12)))


def test_an_empty_transaction_can_end(held: Client) -> None:
    ask(held.engine, CommitTransaction(ID))
    begin(held, transaction=named("another"))
    ask(held.engine, AbortTransaction(named("another")))


def assert_missing(client: Client, transaction: str) -> None:
    position = client.key("a").position
    for command in (
        FindTransaction(transaction),
        CommitTransaction(transaction),
        AbortTransaction(transaction),
        StageWrites(transaction, (WriteGroup((client.put("a"),)),), LIMIT),
        ReadInTransaction(transaction, Get(client.table, position)),
        ReadInTransaction(transaction, Read(client.table, within(position.partition), PageLimits())),
    ):
        with pytest.raises(TransactionMissing):
            ask(client.engine, command)


@pytest.mark.parametrize("end", [CommitTransaction, AbortTransaction])
def test_an_ended_transaction_is_missing(
    held: Client, end: type[CommitTransaction] | type[AbortTransaction]
) -> None:
    ask(held.engine, end(ID))
    assert_missing(held, ID)


@pytest.mark.parametrize("digits", ["1a0a", "7fff", "8000", "ffff"])
def test_an_id_that_ends_in_no_slot_is_of_no_transaction(held: Client, digits: str) -> None:
    assert int(digits, 16) not in SLOTS
    assert_missing(held, f"transaction-{digits}")


def test_other_writers_are_refused_in_the_locked_partition_only(held: Client) -> None:
    [refused, fine] = held.engine.run([WriteGroup((held.put("a", 9),)), WriteGroup((held.put("b", 9),))])
    assert isinstance(refused, PartitionLocked)
    assert not isinstance(fine, GatewayError)
    with pytest.raises(PartitionLocked):
        ask(held.engine, BeginTransaction(held.table, held.key("a").position.partition, named("other"), 1000))
    begin(held, "b", named("other", "b"))


def test_a_group_of_several_partitions_is_refused_whole(held: Client) -> None:
    [refused] = held.engine.run([WriteGroup((held.put("b", 9), held.put("a", 9)))])
    assert isinstance(refused, PartitionLocked)
    assert seen(held, "b", 9) is None


def test_time_runs_out(held: Client, clock: Clock) -> None:
    stage(held, held.put("a", 1, n=decimal(10)))
    clock.advance(59)
    assert seen(held, "a", 1, ID) == {"n": 10}
    clock.advance(2)
    with pytest.raises(TransactionMissing):
        ask(held.engine, CommitTransaction(ID))
    held.write(held.put("a", 1, n=decimal(12)))
    begin(held, transaction=named("another"))
    assert seen(held, "a", 1, named("another")) == {"n": 12}


def test_transactions_past_their_time_are_forgotten(held: Client, clock: Clock) -> None:
    stage(held, held.put("a", 1))
    clock.advance(61)
    local_transactions.sweep(held.engine._store, clock.ms, 10)
    with held.engine._store.read() as session:
        assert session.query("SELECT count(*) FROM staged_writes")[0][0] == 0
        assert session.query("SELECT count(*) FROM partition_locks")[0][0] == 0


def test_conditions_are_evaluated_on_staged_rows(held: Client) -> None:
    stage(held, held.remove("a", 1))
    stage(held, held.put("a", 1, condition=Not(RowExists())))
    with pytest.raises(ConditionFailed):
        stage(held, held.put("a", 1, condition=Not(RowExists())))


def test_groups_of_one_command_are_answered_singly(held: Client) -> None:
    groups = (
        WriteGroup((held.put("a", 5),)),
        WriteGroup((held.put("a", 5, condition=Not(RowExists())),)),
        WriteGroup((held.put("a", 6),)),
    )
    answers = ask(held.engine, StageWrites(ID, groups, LIMIT))
    assert isinstance(answers, list)
    assert [isinstance(answer, ConditionFailed) for answer in answers] == [False, True, False]
    assert listed(held, "a", ID) == [1, 2, 5, 6]


def test_writes_elsewhere_and_drawn_keys_are_refused(held: Client) -> None:
    with pytest.raises(InvalidInput) as told:
        stage(held, held.put("b", 1))
    assert told.value.rule == "other-partition"
    key = held.key("a")
    drawn = Key((key.values[0], AUTO_INCREMENT), key.position)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput) as told:
        stage(held, Write(held.table, drawn, Replace(held.contents("a"))))
    assert told.value.rule == "auto-increment"


def test_size_is_limited(held: Client) -> None:
    blob = text("x" * 1000)
    size = Contents.of_values({"p": text("a"), "s": decimal(1), "blob": blob}).size_bytes
    stage(held, held.put("a", 1, blob=blob), limit=2 * size)
    stage(held, held.put("a", 1, blob=blob), limit=2 * size)
    with pytest.raises(LimitExceeded):
        stage(held, held.put("a", 1, blob=blob), limit=2 * size)


def test_indexes_follow_the_commit(engine: Engine) -> None:
    table = Client(engine, make_table(engine, indexes=(by_color(),)))
    table.write(table.put("a", 1, color=text("red")))
    table = begin(table)
    stage(table, table.put("a", 1, color=text("blue")), table.put("a", 2, color=text("red")))
    index = table.table.index("by_color")
    assert index is not None
    red = within(index.key_schema.position([text("red")]).partition)
    assert len(table.rows(bounds=red, index=index)) == 1
    ask(engine, CommitTransaction(ID))
    assert [row.latest["s"].data for row in table.rows(bounds=red, index=index)] == [2]


def test_streams_get_each_write_at_commit(engine: Engine) -> None:
    table = begin(make(engine))
    stage(table, table.put("a", 1, n=decimal(1)))
    stage(table, table.edit("a", 1, Add(("n",), decimal(1))))
    stage(table, table.remove("a", 2))
    assert everything(engine, stream_of(engine)) == []
    ask(engine, CommitTransaction(ID))
    changes = everything(engine, stream_of(engine))
    assert [change.kind.value for change in changes] == ["put", "update", "delete"]
    assert changes[1].old is not None
    assert changes[1].new is not None
    assert (changes[1].old.latest["n"].data, changes[1].new.latest["n"].data) == (1, 2)


def test_a_page_through_a_transaction_stops_and_goes_on(held: Client) -> None:
    stage(held, *(held.put("a", number) for number in range(0, 10, 2)))
    bounds = within(held.key("a").position.partition)
    limits = PageLimits(returned=3, peek=True)
    page = ask(held.engine, ReadInTransaction(ID, Read(held.table, bounds, limits)))
    assert [row.latest["s"].data for row in page.rows] == [0, 1, 2]  # type: ignore[attr-defined]
    assert page.next.latest["s"].data == 4  # type: ignore[attr-defined]
    rest = bounds.after(page.last.position)  # type: ignore[attr-defined]
    page = ask(held.engine, ReadInTransaction(ID, Read(held.table, rest, limits)))
    assert [row.latest["s"].data for row in page.rows] == [4, 6, 8]  # type: ignore[attr-defined]


def test_the_sweep_leaves_a_held_partition_alone(engine: Engine, clock: Clock) -> None:
    rules = Rules(expiry=ExpiryRule(attribute="dies"))
    table = Client(engine, make_table(engine, rules=rules))
    table.write(table.put("a", 1, dies=decimal(clock.ms // 1000 + 1)))
    table = begin(table, lifetime_ms=600_000)
    clock.advance(5)
    engine.background.next_batch()
    assert seen(table, "a", 1) is not None
    ask(engine, AbortTransaction(ID))
    engine.background.catch_up()  # a new sweep
    assert seen(table, "a", 1) is None


def test_a_transaction_on_many_nodes_locks_only_its_partition(held: Client, database: Database) -> None:
    """A write to one partition blocks a new transaction in that partition, and none in another partition."""
    with database.read() as session:
        if not session.statements.guards_partitions:
            return
    others = Store(open_database(at_another_node(database.engine.url.render_as_string(hide_password=False))))
    partition = held.key("c").position.partition
    with others.write() as session:
        assert others.catalog.check(session, [held.table], lock=True, near=partition)() == set()
        local_transactions_of_store.guard(session, [(held.table.id, partition)])
        begin(held, "b", named("other", "b"))
        with pytest.raises(Contended):
            begin(held, "c", named("kept-out", "c"))
    begin(held, "c", named("let-in", "c"))
    others.close()


def test_no_writer_slips_into_a_held_partition(engines: list[Engine]) -> None:
    """Writers and transactions race on one counter. Each adds one, and no increment is lost."""
    first = Client(engines[0], make_table(engines[0]))
    first.write(first.put("a", 1, n=decimal(0)))
    done = [0] * 4

    def write(number: int) -> None:
        engine = engines[number % len(engines)]
        for _ in range(25):
            client = current(Client(engine, first.table))
            [answer] = engine.run([WriteGroup((client.edit("a", 1, Add(("n",), decimal(1))),))])
            done[number] += not isinstance(answer, GatewayError)

    def transact(number: int) -> None:
        engine = engines[number % len(engines)]
        for turn in range(12):
            transaction = named(f"{number}-{turn}")
            try:
                client = begin(Client(engine, first.table), transaction=transaction)
                stage(client, client.edit("a", 1, Add(("n",), decimal(1))), transaction=transaction)
                ask(engine, CommitTransaction(transaction))
            except GatewayError:
                engine.run([AbortTransaction(transaction)])
                continue
            done[number] += 1

    threads = [
        threading.Thread(target=work, args=(number,))
        for number, work in enumerate([write, transact, write, transact])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen(current(first), "a", 1) == {"n": sum(done)}
    assert sum(done) > 0
