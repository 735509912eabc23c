"""An engine on each database, with a clock that tests turn by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import Engine, EngineOptions, run_with_retries
from tablegate.gateway.engine.tables import row_counting
from tablegate.gateway.model.commands.row_commands import Read, WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.table_commands import CreateTable, NewIndex
from tablegate.gateway.model.commands.writes import Edit, Remove, Replace, Write
from tablegate.gateway.model.expressions.predicates import ALWAYS, Predicate
from tablegate.gateway.model.expressions.ranges import EVERYTHING
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.pages import Page, PageLimits
from tablegate.gateway.model.tables.tables import Rules, Table
from tablegate.gateway.model.values.keys import Key, KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, decimal, text
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.postgresql.database import PostgreSQL
from tablegate.gateway.store.postgresql.distributed.database import DistributedPostgreSQL
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store
from tests.conftest import KINDS, new_database
from tests.support.clock import Clock
from tests.support.databases import OWN_URL, at_another_node
from tests.support.statements import listener, statements_say_where  # noqa: F401

# A plain PostgreSQL under the statements that are for a distributed one, so that they are tried where there is no Citus.
DISTRIBUTED_FORMS = "distributed forms"


@pytest.fixture(
    params=KINDS if OWN_URL else [*KINDS, pytest.param(DISTRIBUTED_FORMS, marks=pytest.mark.extended)]
)
def database_url(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Return the URL of a migrated, empty database for one test."""
    if request.param == DISTRIBUTED_FORMS:
        monkeypatch.setattr(
            "tablegate.gateway.store.postgresql.database.is_url_distributed", lambda url, schema: True
        )
        monkeypatch.setattr(PostgreSQL, "verifies_distribution", False)
        monkeypatch.setattr(DistributedPostgreSQL, "reaches_nodes", False)
    with new_database(request, tmp_path) as url:
        yield url


@pytest.fixture
def clock() -> Clock:
    """The clock advances at each reading, so no two events are simultaneous."""
    return Clock(step_ns=1_000)


@pytest.fixture
def engine(request: pytest.FixtureRequest, database: Database, clock: Clock) -> Iterator[Engine]:
    """An engine with a view. After the test, the stored row counts must be those of the rows."""
    made = new_engine(Store(database), EngineOptions(sweep_period_s=0), clock)
    made.register_view("test", lambda value, is_partition: value)
    yield made
    if not request.node.get_closest_marker("damages_rows"):
        assert list(row_counting.mismatches(made._store)) == []
    made.close()


@pytest.fixture
def engines(database: Database) -> Iterator[list[Engine]]:
    """Two servers on one database where the database allows it, else one."""
    made = [new_engine(Store(database))]
    if database.shared:
        url = database.engine.url.render_as_string(hide_password=False)
        made.append(new_engine(Store(open_database(at_another_node(url)))))
    yield made
    for engine in made:
        engine.close()


def column(name: str, kind: Kind = Kind.TEXT) -> KeyColumn:
    return KeyColumn(name, kind)


PAIR = KeySchema((column("p"),), (column("s", Kind.DECIMAL),))


@dataclass
class Client:
    """Common operations of tests on one table."""

    engine: Engine
    table: Table

    def key(self, p: str, s: int = 0) -> Key:
        return self.table.key_schema.key({"p": text(p), "s": decimal(s)})

    def contents(self, p: str, s: int = 0, **more: Value) -> Contents:
        return Contents.of_values({"p": text(p), "s": decimal(s), **more})

    def put(self, p: str, s: int = 0, condition: Predicate = ALWAYS, **more: Value) -> Write:
        return Write(self.table, self.key(p, s), Replace(self.contents(p, s, **more)), condition)

    def edit(self, p: str, s: int, *actions: object, condition: Predicate = ALWAYS) -> Write:
        return Write(self.table, self.key(p, s), Edit(actions), condition)  # type: ignore[arg-type]

    def remove(self, p: str, s: int = 0, condition: Predicate = ALWAYS) -> Write:
        return Write(self.table, self.key(p, s), Remove(), condition)

    def write(self, *writes: Write) -> list[WriteOutcome]:
        """Write each as a separate group, in one list, with the retries of a server. Raises the first error."""
        answers = run_with_retries(self.engine, [WriteGroup((write,)) for write in writes])
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return [answer[0] for answer in answers]

    def page(self, bounds: object = EVERYTHING, **options: object) -> Page:
        limits = options.pop("limits", PageLimits())
        [answer] = self.engine.run([Read(self.table, bounds, limits, **options)])  # type: ignore[arg-type]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def rows(self, **options: object) -> list[Row]:
        return self.page(**options).rows


def make_table(
    engine: Engine,
    name: str = "things",
    schema: KeySchema = PAIR,
    indexes: tuple[NewIndex, ...] = (),
    rules: Rules = Rules(),
) -> Table:
    [table] = engine.run([CreateTable("test", "", name, schema, indexes, rules)])
    assert isinstance(table, Table), table
    return table


def by_color(projection: IndexProjection = IndexProjection.ALL) -> NewIndex:
    return NewIndex("by_color", KeySchema((column("color"),), (column("s", Kind.DECIMAL),)), projection)


@pytest.fixture
def things(engine: Engine) -> Client:
    """A table with key (p TEXT, s DECIMAL)."""
    return Client(engine, make_table(engine))


def do_background_work(engine: Engine) -> None:
    """Everything that waits to be done in the background."""
    while engine.background.next_batch():
        pass
