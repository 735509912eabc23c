"""CPU time of a whole request with each fast path (gateway/model/fast_paths.py) and with its general code.

`python -m benchmarks.fast_paths [NAME ...]` prints microseconds of CPU for a request and the ratio for each fast
path. Figures are medians of interleaved rounds with 16 requests together, in this process without sockets
(benchmarks/in_process.py). Databases are SQLite in memory and PostgreSQL for fast paths of servers, where only the
CPU of this process counts. Requests do not reach two fast paths: `fast_load` is measured as a command,
`fast_add_bodies` as a page of `tablegate verify`.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import orjson

from benchmarks import signing
from benchmarks.in_process import (
    PORT,
    REQUESTS,
    InProcess,
    dynamodb_request,
    in_process,
    row_key,
    row_of,
    tablestore_request,
)
from tablegate.adapters.azuretable.entities import entity_renderer
from tablegate.adapters.dynamodb.operation_table import OPERATIONS
from tablegate.adapters.dynamodb.validation import fast_validator
from tablegate.adapters.dynamodb.values import keys, values
from tablegate.adapters.tablestore.rows import selections
from tablegate.adapters.tablestore.rows import writes as tablestore_writes
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import EngineOptions
from tablegate.gateway.engine.rows import loading, reading
from tablegate.gateway.engine.tables import expiring
from tablegate.gateway.model.commands.row_commands import BulkLoad
from tablegate.gateway.model.commands.table_commands import CreateTable
from tablegate.gateway.model.expressions import updates
from tablegate.gateway.model.fast_paths import FAST_PATHS
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, text
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.store import Store
from tablegate.transfer.comparing.checksums import TableSums
from tablegate.transfer.comparing.sides import CompareOptions, TablePair
from tablegate.transfer.endpoints.database import DatabaseEndpoint
from tablegate.transfer.endpoints.endpoint import Definition, ScanPage, Service

_ROUNDS = 31
_MANY = 1_000
Switch = Callable[[], AbstractContextManager[Any]]
"""Return a context in which the general code runs."""


class Case(NamedTuple):
    """A fast path by the end of its name, the requests that use it (signed for each round), and its switch."""

    name: str
    work: str
    requests: Callable[[], list[bytes]]
    general: Switch


def _set(module: object, **names: Any) -> Switch:
    return lambda: mock.patch.multiple(module, **names)


def _none(*_: object) -> None:
    return None


_NUMBERS = count()


def _many_puts() -> list[bytes]:
    """Return puts of many items with different sort keys, for the page reads."""
    item = {f"v{number}": {"S": "x" * 80} for number in range(3)}
    return [
        dynamodb_request("PutItem", TableName="items", Item={"pk": {"S": "many"}, "sk": {"S": f"{n:05}"}, **item})
        for n in range(_MANY)
    ]  # fmt: skip


def _query(number: int, partition: str, **members: Any) -> list[bytes]:
    of = {":p": {"S": partition}, **members.pop("Values", {})}
    request = dynamodb_request(
        "Query", TableName="items", KeyConditionExpression="pk = :p", ExpressionAttributeValues=of, **members
    )
    return [request] * number


def _filtered(name: str, number: int) -> list[bytes]:
    return _query(
        number, "many" if number < 160 else "p1", FilterExpression=f"v1 {name} :v", Values={":v": {"S": "z"}}
    )


def _conditional_updates() -> list[bytes]:
    return [
        dynamodb_request(
            "UpdateItem", TableName="items", Key={"pk": {"S": f"p{n % 4}"}, "sk": {"S": f"{n // 4:04}"}},
            UpdateExpression="SET v1 = :v, #n = if_not_exists(#n, :o) + :o REMOVE gone", ConditionExpression="v2 <> :v",
            ExpressionAttributeNames={"#n": "count"}, ExpressionAttributeValues={":v": {"S": "y" * 80}, ":o": {"N": "1"}},
        )
        for n in range(160)
    ]  # fmt: skip


_WIDE = 100


def _wide_puts() -> list[bytes]:
    item = {f"v{number}": {"S": "x" * 80} for number in range(_WIDE)}
    return [
        dynamodb_request(
            "PutItem", TableName="items", Item={"pk": {"S": "wide"}, "sk": {"S": str(n)}, **item}
        )
        for n in range(32)
    ]


def _wide_updates() -> list[bytes]:
    return [
        dynamodb_request(
            "UpdateItem", TableName="items", Key={"pk": {"S": "wide"}, "sk": {"S": str(n)}},
            UpdateExpression="SET v1 = :v", ExpressionAttributeValues={":v": {"S": "y" * 80}},
        )
        for n in range(32)
    ]  # fmt: skip


def _wide_row_puts() -> list[bytes]:
    cells = tuple(WireCell(f"v{number}", text("x" * 80)) for number in range(_WIDE))
    ignore = messages.Condition(row_existence=messages.IGNORE)
    return [
        tablestore_request(
            "PutRow",
            messages.PutRowRequest(table_name="rows", row=row_of(1_000 + n, *cells), condition=ignore),
        )
        for n in range(32)
    ]


def _entities() -> list[bytes]:
    return [signing.azure(PORT, "GET", "/people()?$filter=PartitionKey%20eq%20'p'")] * 16


def _range(limit: int) -> list[bytes]:
    message = messages.GetRangeRequest(
        table_name="rows", direction=messages.FORWARD, max_versions=1, limit=limit,
        inclusive_start_primary_key=row_key(0), exclusive_end_primary_key=row_key(limit),
    )  # fmt: skip
    return [tablestore_request("GetRange", message)] * 32


@contextmanager
def _full_validator() -> Iterator[None]:
    checker = OPERATIONS["PutItem"].check
    before = checker.fast_check
    object.__setattr__(checker, "fast_check", fast_validator.leave_to_full_validator)
    try:
        yield
    finally:
        object.__setattr__(checker, "fast_check", before)


@contextmanager
def _rendered_generally() -> Iterator[None]:
    render_row, render_rows = values.render_row_generally, values.render_rows_generally
    with mock.patch.multiple(keys, render_row=render_row, render_rows=render_rows):
        yield


def _cases() -> Iterator[Case]:
    puts, updated = REQUESTS["DynamoDB PutItem"], REQUESTS["DynamoDB UpdateItem"]
    yield Case("fast_check", "PutItem of eleven attributes", puts, _full_validator)
    yield Case("fast_check", "PutItem of 102 attributes", _wide_puts, _full_validator)
    yield Case("fast_render_rows", "filtered Query of 50", partial(_filtered, "<>", 160), _rendered_generally)
    yield Case(
        "fast_rows:put_of",
        "PutRow of 102 columns",
        _wide_row_puts,
        _set(tablestore_writes, _fast_put_of=_none),
    )
    yield Case(
        "FastDraft",
        "UpdateItem of 102 attributes",
        _wide_updates,
        _set(updates, _draft_of=updates.RowDraft.of),
    )
    yield Case("fast_pages:entities", "Azure query of 200", _entities, _set(entity_renderer, _SPLICED=()))
    row_puts, row_gets = REQUESTS["Table Store PutRow"], REQUESTS["Table Store GetRow"]
    yield Case("fast_rows:put_of", "PutRow", row_puts, _set(tablestore_writes, _fast_put_of=_none))
    yield Case("fast_rows:encoder", "GetRow", row_gets, _set(selections, _ENCODES=False))
    in_range = partial(_range, 200)
    yield Case("fast_rows:encoder", "GetRange of 200", in_range, _set(selections, _ENCODES=False))
    yield Case("FastDraft", "UpdateItem", updated, _set(updates, _draft_of=updates.RowDraft.of))
    yield Case(
        "FastDraft",
        "UpdateItem on a condition",
        _conditional_updates,
        _set(updates, _draft_of=updates.RowDraft.of),
    )
    page = partial(_query, 16, "many")
    concatenated = _set(reading, _concatenated=reading._no_bodies)
    yield Case("fast_concatenated", "Query of 50", REQUESTS["DynamoDB Query of 50"], concatenated)
    yield Case("fast_concatenated", "Query of 1,000", page, concatenated)
    row_by_row = _set(reading, _prefiltered=reading._row_by_row)
    yield Case("fast_prefiltered", "Query of 1,000, none passes", partial(_filtered, "=", 16), row_by_row)


async def _measure(running: InProcess, cases: list[Case]) -> None:
    await running.send(_many_puts())
    await running.send(_wide_puts())
    gc.collect()
    gc.freeze()
    for case in cases:
        times: tuple[list[float], list[float]] = ([], [])
        for at in range(2 * (_ROUNDS + 1)):
            requests = case.requests()
            with ExitStack() as stack:
                if at % 2:
                    stack.enter_context(case.general())
                began = time.process_time()
                await running.send(requests)
                times[at % 2].append((time.process_time() - began) / len(requests) * 1e6)
        _print(case.name, case.work, times[0][1:], times[1][1:])


def _print(name: str, work: str, fast: list[float], general: list[float]) -> None:
    [path] = [path for path in FAST_PATHS if path.fast.endswith(name)]
    ratio = statistics.median(slow / quick for quick, slow in zip(fast, general, strict=True))
    times = f"{statistics.median(fast):8.1f} {statistics.median(general):8.1f} us"
    print(f"{path.fast:70} {work:28} {times} {ratio:6.2f} times", flush=True)


# Fast paths that requests do not reach


_PAIR = KeySchema((KeyColumn("p", Kind.TEXT),), (KeyColumn("s", Kind.TEXT),))


def _item(number: int) -> bytes:
    members = {f"a{at}": {"S": "x" * 10} for at in range(8)}
    return orjson.dumps(
        {"p": {"S": "partition"}, "s": {"S": f"{number:08}"}, **members, "n": {"N": str(number)}}
    )


def _alone(
    name: str,
    work: str,
    fast: Callable[[], object],
    general: Callable[[], object],
    prepare: Callable[[], object] = lambda: None,
) -> None:
    times_of: tuple[list[float], list[float]] = ([], [])
    for _ in range(_ROUNDS):
        for run, times in zip((fast, general), times_of, strict=True):
            prepare()
            began = time.process_time()
            run()
            times.append((time.process_time() - began) * 1e6)
    _print(name, work, *times_of)


def _load(folder: Path) -> None:
    database = open_database(f"sqlite:///{folder}/loaded.sqlite", synchronous="off")
    migrate(database)
    engine = new_engine(Store(database))
    [table] = engine.run([CreateTable("bench", "", "things", _PAIR)])

    def load() -> None:
        numbers = [next(_NUMBERS) for _ in range(_MANY)]
        positions = [_PAIR.position((text("partition"), text(f"{number:08}"))) for number in numbers]
        contents = [Contents(_item(number), None, 300) for number in numbers]
        engine.run([BulkLoad(table, list(zip(positions, contents, strict=True)))])

    def generally() -> None:
        with mock.patch.multiple(loading, load=loading._never):
            load()

    _alone("fast_load", "1,000 new rows loaded", load, generally)


def _expire(folder: Path) -> None:
    database = open_database(f"sqlite:///{folder}/expired.sqlite", synchronous="off")
    migrate(database)
    engine = new_engine(Store(database), EngineOptions(sweep_period_s=0))
    rules = Rules(expiry=ExpiryRule(attribute="t"))
    [table] = engine.run([CreateTable("bench", "", "things", _PAIR, rules=rules)])

    def expire() -> None:
        engine.background.catch_up()

    def fill() -> None:
        numbers = [next(_NUMBERS) for _ in range(_MANY)]
        positions = [_PAIR.position((text("partition"), text(f"{number:08}"))) for number in numbers]
        expired_at = {"t": {"N": str(int(time.time()) - 1_000)}}
        contents = [
            Contents(json.dumps(json.loads(_item(number)) | expired_at).encode(), None, 310)
            for number in numbers
        ]
        engine.run([BulkLoad(table, list(zip(positions, contents, strict=True)))])

    def generally() -> None:
        with mock.patch.multiple(expiring, remove=expiring._write_all):
            expire()

    _alone("fast_remove", "1,000 rows expired", expire, generally, fill)


def _comparing(folder: Path) -> None:
    url = f"sqlite:///{folder}/compared.sqlite"
    database = open_database(url)
    migrate(database)
    database.close()
    end = DatabaseEndpoint(f"{url}#things")
    end.create(Definition("things", Service.TABLEGATE, _PAIR, is_stored=True))
    side = TablePair(end, end, CompareOptions()).sides[0]
    bodies = [_item(number) for number in range(100)]

    def stored() -> list[Row]:
        return [
            Row(_PAIR.position((text("partition"), text(f"{number:08}"))), Contents(body, None, 900), 0)
            for number, body in enumerate(bodies)
        ]

    sums = TableSums()
    _alone(
        "fast_add_bodies",
        "a page of 100 rows of verify",
        lambda: side.sum_page(sums, ScanPage(stored(), None)),
        lambda: side.sum_page_generally(sums, stored()),
    )
    end.close()


def main() -> None:
    """Print a line for each fast path, or for the named ones."""
    names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = [case for case in _cases() if not names or case.name in names]
        if cases:
            in_process(partial(_measure, cases=cases))
        for end, measure in (
            ("fast_load", _load),
            ("fast_remove", _expire),
            ("fast_add_bodies", _comparing),
        ):
            if not names or end in names:
                measure(folder)


if __name__ == "__main__":
    main()
