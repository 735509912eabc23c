"""What the general ways alone would cost: the CPU time of each fast path (gateway/model/fast_paths.py) and of its general way, on
work for which the fast path is made.

`python -m benchmarks.fast_paths` prints, for each, microseconds of CPU a unit of work and how many times as much the general
way takes: the medians of rounds in which both have their turn. Databases are a SQLite file without fsync and, where the fast
path is for servers only, a PostgreSQL.
"""

from __future__ import annotations

import asyncio
import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson

from adapters.azuretable.entities import entity_parser, entity_renderer
from adapters.azuretable.entities.entity_renderer import Level
from adapters.azuretable.values import keys as azure_keys
from adapters.dynamodb.expressions import request_clauses
from adapters.dynamodb.validation import fast_validator, operation_schemas
from adapters.dynamodb.values import keys, values
from adapters.dynamodb.wire.calls import Call
from adapters.tablestore.rows import fast_rows, rows, selections
from adapters.tablestore.wire.calls import Target
from adapters.tablestore.wire.plainbuffer import WireCell, WireRow, encode_row
from benchmarks import machine, signing
from benchmarks.contestants import Postgres, Workspace
from gateway.app import create_app, mounted
from gateway.dialect import Round
from gateway.engine import blind_writes, loading, page_builder, reading
from gateway.engine.engine import Engine
from gateway.http import Reply, Request
from gateway.model import fast_dataclasses, updates
from gateway.model.commands import AnyCommand, CreateTable, Get, Load, Read, WriteGroup
from gateway.model.fast_paths import FAST_PATHS
from gateway.model.keys import KeyColumn, KeySchema, Position
from gateway.model.pages import Concatenation, Page, PageLimits
from gateway.model.predicates import ALWAYS, Attribute, Compare, Comparison, Literal, Predicate
from gateway.model.ranges import within
from gateway.model.rows import Contents, Row
from gateway.model.tables import Rules, State, Table
from gateway.model.values import Kind, text
from gateway.model.writes import Replace, Write
from gateway.server import connection, wsgi
from gateway.server.connection import Connection
from gateway.server.pending_request import PendingRequest
from gateway.settings import load
from gateway.store.migrating import migrate
from gateway.store.opening import open_database
from gateway.store.store import Store
from gateway.wiring import connect, open_store
from transfer.comparing.sides import CompareOptions, Pair
from transfer.comparing.sums import Sums
from transfer.endpoints.database import DatabaseEndpoint
from transfer.endpoints.endpoint import Definition, Service

_ROUNDS, _SECONDS = 9, 0.05
_ROWS = 1000

Work = Callable[[], object]
Case = tuple[Work, Work]
"""A unit of work by the fast path, and by the general way."""


@contextmanager
def _set(module: object, **names: object) -> Iterator[None]:
    before = {name: getattr(module, name) for name in names}
    for name, value in names.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def _switched(work: Work, module: object, **general: object) -> Case:
    """Work that takes the general way where these names stand for something else."""

    def by_general_way() -> None:
        with _set(module, **general):
            work()

    return work, by_general_way


def _none(*_: object) -> None:
    return None


def _table(schema: KeySchema, rules: Rules = Rules()) -> Table:  # noqa: B008
    return Table(1, "", "things", "things", schema, (), rules, {}, State.ACTIVE, 0, 1, 0)


_PAIR = KeySchema((KeyColumn("p", Kind.TEXT),), (KeyColumn("s", Kind.TEXT),))


def _item(number: int, size: int = 100) -> dict[str, Any]:
    return {
        "p": {"S": "partition"},
        "s": {"S": f"{number:08}"},
        **{f"a{at}": {"S": "x" * (size // 10)} for at in range(8)},
        "n": {"N": str(number)},
    }


def _stored(bodies: list[bytes], kinds: bytes | None = None) -> list[Row]:
    return [Row(Position(b"", b""), Contents(body, kinds, 900), 10**16) for body in bodies]


# Adapters


def _dynamodb() -> Iterator[tuple[str, Case]]:
    put = orjson.dumps({"TableName": "things", "Item": _item(1)})
    fast = operation_schemas.checker("PutItem", "2026")
    general = dataclasses.replace(fast, fast_check=fast_validator.leave_to_full_validator)
    yield (
        "validation.fast_validator:fast_check",
        (lambda: fast(orjson.loads(put)), lambda: general(orjson.loads(put))),
    )
    table, key = _table(_PAIR), {"p": {"S": "partition"}, "s": {"S": "sort"}}
    yield "fast_text_key", _switched(lambda: keys.key_of(table, key), keys, _text_key=_none)
    bodies = [orjson.dumps(_item(number)) for number in range(100)]
    yield (
        "fast_render_rows",
        (
            lambda: values.fast_render_rows(_stored(bodies)),
            lambda: values.render_rows_generally(_stored(bodies)),
        ),
    )
    call = Call("UpdateItem", {}, None, SimpleNamespace(settings=SimpleNamespace(message_style="2026")))  # type: ignore[arg-type]
    wire = {"ExpressionAttributeValues": {":v": {"S": "x"}}}
    write = {"UpdateExpression": "SET a1 = :v", "ConditionExpression": "a2 = :v", **wire}
    read = {"KeyConditionExpression": "p = :v", **wire}
    for name, work in (
        ("write", lambda: request_clauses.WriteClauses(call, write)),
        ("read", lambda: request_clauses.ReadClauses(call, read)),
    ):
        yield f"fast_{name}", _switched(work, request_clauses, **{f"_prepared_{name}": _none})


def _azure() -> Iterator[tuple[str, Case]]:
    entity = {"PartitionKey": "p", "RowKey": "r", **{f"A{at}": "x" * 10 for at in range(8)}, "N": 5}
    body = orjson.dumps(entity)
    yield (
        "fast_members",
        _switched(lambda: entity_parser.parse_entity(body), entity_parser, _fast_members=_none),
    )
    shape = entity_renderer.EntityFormat(
        _table(azure_keys.OWN_SCHEMA), "http://host", "account", Level.MINIMAL
    )
    texts = {"PartitionKey": {"S": "p"}, **{f"A{at}": {"S": "x" * 10} for at in range(8)}, "N": {"I32": "5"}}
    bodies = [orjson.dumps({**texts, "RowKey": {"S": str(number)}}) for number in range(_ROWS)]
    yield (
        "fast_pages:entities",
        _switched(
            lambda: shape.many(Page(_stored(bodies, b"{}"), 0, 0, None, None)), entity_renderer, _SPLICED=()
        ),
    )


def _tablestore() -> Iterator[tuple[str, Case]]:
    cells = [WireCell(f"a{at}", text("x" * 10)) for at in range(9)]
    data = encode_row(WireRow([WireCell("p", text("p")), WireCell("s", text("s"))], cells))
    yield "fast_rows:put_of", _switched(lambda: rows.checked_put(data), rows, _fast_put_of=_none)
    target = Target.of_table(_table(_PAIR))
    selection = selections.everything()
    one = orjson.dumps({**_item(1), "n": {"I64": "5"}})
    many = [orjson.dumps({**_item(number), "n": {"I64": "5"}}) for number in range(_ROWS)]
    cut = selection.cutter(target)
    encode, encode_many = selection.encoder(target), selection.encoder_of_many(target)
    assert encode_many is not None

    def shown(found: list[Row]) -> None:
        for row in found:
            selection.row_bytes(target, row)

    yield (
        "fast_rows:encoder",
        (
            lambda: shown(list(map(encode, _stored([one], b"{}")))),
            lambda: shown(list(map(cut, _stored([one], b"{}")))),
        ),
    )
    yield (
        "fast_pages:encoder_of_many",
        (
            lambda: shown(encode_many(_stored(many, b"{}"))),
            lambda: shown(list(map(cut, _stored(many, b"{}")))),
        ),
    )
    assert isinstance(encode(_stored([one], b"{}")[0]), fast_rows.EncodedRow)


# The engine


def _updates() -> Iterator[tuple[str, Case]]:
    body = orjson.dumps(_item(1))
    actions = (updates.SetTo(("a1",), updates.Literal(text("y"))),)
    situation = updates.EditContext({"p": text("partition"), "s": text("00000001")}, 10**12, stamped=False)
    yield (
        "FastDraft",
        _switched(
            lambda: updates.edit(_stored([body])[0], actions, situation).body,
            updates,
            _draft_of=updates.Draft.of,
        ),
    )


def _classes() -> Iterator[tuple[str, Case]]:
    def made(decorator: Callable[..., Any]) -> Work:
        def work() -> object:
            members = {"__annotations__": dict.fromkeys("abcde", "int"), "__doc__": "Five numbers.", "e": 1}
            return decorator(frozen=True, slots=True)(type("Five", (), members))

        return work

    yield "fast_dataclass", (made(fast_dataclasses.fast_dataclass), made(dataclasses.dataclass))


class _Things:
    """A table of a thousand rows of one partition, in a database."""

    def __init__(self, url: str) -> None:
        database = open_database(url, synchronous="off")
        migrate(database)
        self.store = Store(database)
        self.engine = Engine(self.store)
        [self.table] = self.engine.run([CreateTable("bench", "", "things", _PAIR)])
        self._number = 0
        self.engine.run([WriteGroup((self.write(number),)) for number in range(_ROWS)])

    def write(self, number: int, wants_old: bool = False) -> Write:
        """A put of a row."""
        wire = _item(number)
        key = self.table.key_schema.key({"p": text("partition"), "s": text(wire["s"]["S"])})
        contents = Contents(orjson.dumps(wire), None, 300)
        return Write(self.table, key, Replace(contents), wants_old=wants_old)

    def put(self, is_new: bool) -> None:
        """Sixteen puts in one list, over rows that are there or of new ones."""
        first = _ROWS + self._number if is_new else 0
        self._number += 16
        self.engine.run([WriteGroup((self.write(first + at, is_new),)) for at in range(16)])

    def load(self) -> None:
        """A thousand new rows at once."""
        first = _ROWS + self._number
        self._number += _ROWS
        writes = [self.write(first + at) for at in range(_ROWS)]
        loaded = [(write.key.position, write.change.contents) for write in writes]  # type: ignore[union-attr]
        self.engine.run([Load(self.table, loaded)])

    def get(self) -> None:
        """Sixteen reads in one list."""
        reads: list[AnyCommand] = [Get(self.table, self.write(at).key.position) for at in range(16)]
        self.engine.run(reads)

    def page(self, condition: Predicate = ALWAYS, concatenation: Concatenation | None = None) -> None:
        """A thousand rows."""
        bounds = within(self.write(0).key.position.partition)
        limits = PageLimits(scanned=_ROWS)
        [page] = self.engine.run(
            [Read(self.table, bounds, limits, filter=condition, concatenation=concatenation)]
        )
        for row in page.rows:
            assert row.body


def _engine(folder: Path) -> Iterator[tuple[str, Case]]:
    things = _Things(f"sqlite:///{folder}/bench.sqlite")
    yield "fast_puts", _switched(lambda: things.put(False), blind_writes, puts=_none, inserts=_none)
    yield "fast_inserts", _switched(lambda: things.put(True), blind_writes, inserts=_none)
    yield "fast_load", _switched(things.load, loading, load=loading._never)
    yield "fast_fetch", _switched(things.get, reading, _FETCHES=False)
    things = _Things(f"sqlite:///{folder}/pages.sqlite")
    yield "_fast_take", _switched(things.page, page_builder, _TAKES_MANY=False)

    def in_one_piece() -> None:
        things.page(concatenation=Concatenation(","))

    yield (
        "fast_concatenated",
        _switched(in_one_piece, reading, _concatenated=reading._no_bodies),
    )
    rare = Compare(Attribute(("a1",)), Comparison.EQ, Literal(text("nothing")))
    yield (
        "fast_prefiltered",
        _switched(lambda: things.page(rare), reading, _prefiltered=reading._row_by_row),
    )


def _on_postgresql(folder: Path) -> Iterator[tuple[str, Case]]:
    """Of the CPU time only the part of this process, without the server's."""
    postgres = Postgres(Workspace(machine.cores().server, folder / "postgres"))
    try:
        things = _Things(postgres.new_database().replace("postgresql://", "postgresql+psycopg://", 1))
        yield "fast_look_up", _switched(things.get, reading, _LOOKS_UP=False)
    finally:
        postgres.stop()


def _entry(folder: Path) -> Iterator[tuple[str, Case]]:
    settings = load({"database": f"sqlite:///{folder}/entry.sqlite", "synchronous": "normal"}, {})
    database = connect(settings)
    migrate(database)
    app = create_app(settings, open_store(settings, database))
    dialects = mounted(app)

    def asked(operation: str, body: object) -> Request:
        head, _, content = signing.dynamodb(8000, operation, orjson.dumps(body)).partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")[1:]
        headers = tuple((name.lower(), value) for name, _, value in (line.partition(": ") for line in lines))
        return Request("POST", "/", headers, content)

    definitions = [{"AttributeName": "p", "AttributeType": "S"}]
    schema = [{"AttributeName": "p", "KeyType": "HASH"}]
    created = {"TableName": "things", "AttributeDefinitions": definitions, "KeySchema": schema}
    wsgi.call(app, asked("CreateTable", {**created, "BillingMode": "PAY_PER_REQUEST"}))
    request = asked("GetItem", {"TableName": "things", "Key": {"p": {"S": "x"}}})
    dialect = dialects.dialect_of(request)
    assert dialect is not None

    def entered() -> object:
        handler = dialect.enter(request)
        assert handler is not None
        begun = handler(request)
        assert isinstance(begun, Round)
        return begun.finish(dialects.gateway.engine.run(begun.commands))

    assert wsgi.call(app, request).status == 200
    yield "Dialect.enter", (entered, lambda: wsgi.call(app, request))


class _Silent(asyncio.Transport):
    """Where replies go that nobody reads."""

    def write(self, data: object) -> None:
        """Send nothing."""

    def is_closing(self) -> bool:
        """Never."""
        return False


class _Noting:
    """A reception (connection.Reception) that answers at once."""

    is_stopping = False
    buffered_bytes = 0
    settings = load({"memory": True}, {})

    def enter(self, made: Connection) -> bool:
        """Take every connection."""
        return True

    def leave(self, made: Connection) -> None:
        """Nobody leaves."""

    def head_began(self, made: Connection) -> None:
        """Nothing comes in parts."""

    def head_ended(self, made: Connection) -> None:
        """Nothing comes in parts."""

    def handle(self, pending: PendingRequest) -> None:
        """Answer."""
        pending.connection.answer(Reply(200, ()))

    def refuse(self, request: Request, error: Exception) -> Reply:
        """Nothing is refused."""
        raise error


def _heads() -> Iterator[tuple[str, Case]]:
    made = Connection(_Noting())
    made.connection_made(_Silent())
    body = orjson.dumps({"TableName": "things", "Key": {"p": {"S": "x"}}})
    sent = signing.dynamodb(8000, "GetItem", body)
    by_parser = connection._by_parser
    yield "whole_request", _switched(lambda: made.data_received(sent), connection, _whole_request=by_parser)


def _comparing(folder: Path) -> Iterator[tuple[str, Case]]:
    url = f"sqlite:///{folder}/compared.sqlite"
    database = open_database(url)
    migrate(database)
    database.close()
    end = DatabaseEndpoint(f"{url}#things")
    end.create(Definition("things", Service.TABLEGATE, _PAIR, is_stored=True))
    side = Pair(end, end, CompareOptions()).sides[0]
    bodies = [orjson.dumps(_item(number)) for number in range(100)]

    def stored() -> list[Row]:
        return [
            Row(_PAIR.position((text("partition"), text(f"{number:08}"))), Contents(body, None, 900), 0)
            for number, body in enumerate(bodies)
        ]

    sums = Sums()
    yield (
        "fast_add_bodies",
        (lambda: side.sum_page(sums, stored()), lambda: side.sum_page_generally(sums, stored())),
    )
    end.close()


def measured(case: Case) -> tuple[float, float]:
    """Microseconds of CPU a unit of work, of the fast path and of the general way."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        for work, times in zip(case, taken, strict=True):
            count, began = 0, time.process_time()
            while (spent := time.process_time() - began) < _SECONDS:
                work()
                count += 1
            times.append(spent / count * 1e6)
    return statistics.median(taken[0]), statistics.median(taken[1])


def main() -> None:
    """Print a line for each fast path."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = [*_dynamodb(), *_azure(), *_tablestore(), *_updates(), *_classes(), *_heads()]
        for cases_of in (
            iter(cases),
            _engine(folder),
            _on_postgresql(folder),
            _entry(folder),
            _comparing(folder),
        ):
            for end, case in cases_of:
                fast, general = measured(case)
                [path] = [path for path in FAST_PATHS if path.fast.endswith(end)]
                print(
                    f"{path.fast}: {fast:.1f} us, {path.general}: {general:.1f} us, {general / fast:.1f} times",
                    flush=True,
                )


if __name__ == "__main__":
    main()
