"""Search indexes: `python -m benchmarks.search [ROWS [PUTS]]`, by default 20,000 rows and 2,000 puts, on SQLite and PostgreSQL.

Prints for each database:

- the rows per second of filling an index of ten fields over ROWS existing rows
- the server's CPU for a put, without an index and with it, each until the index has the row
- the latency of ten kinds of query, as the median and the maximum of 15 runs with different values, and the mean CPU of
  the server without the processes of PostgreSQL
- the lag of the index while PUTS rows are put, ten in a request and at most 1,000 a second
- the memory of the server, before and after

The server indexes with all of a core (`--background-cpu-share 1`).
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import struct
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from google.protobuf.message import Message

from benchmarks.contestants import Postgres, Workspace, start_ours
from benchmarks.processes import Tree
from benchmarks.signing import HOST, Client, tablestore
from tablegate.adapters.tablestore.wire.plainbuffer import WireCell, WireRow, encode_row
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as search
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.model.values.values import FALSE, TRUE, Kind, Value, text

ROWS, PUTS = 20_000, 2_000
_BATCH = 200
_RUNS = 15
_PUTS_PER_S = 1_000
_PUTS_TOGETHER = 10
_WORDS = 5_000
_KINDS = 100
_LAG = re.compile(r'^tablegate_follower_lag_seconds\{kind="search"\} (\S+)', re.MULTILINE)


class Server:
    """A running server with one connection to it."""

    def __init__(self, port: int, process_id: int) -> None:
        self.tree = Tree([process_id])
        self._client = Client(port)

    def call(self, operation: str, message: Message) -> bytes:
        """Return the body of an answer. Raises RuntimeError for an error."""
        request = tablestore(self._client.port, operation, message.SerializeToString())
        status, body = self._client.send(request)
        if status != 200:
            raise RuntimeError(f"{operation}: {status} {body[:300]!r}")
        return body

    def lag_s(self) -> float:
        """Return the lag of search indexes, as the server measures it."""
        with urllib.request.urlopen(f"http://{HOST}:{self._client.port}/metrics", timeout=30) as reply:
            found = _LAG.search(reply.read().decode())
        return float(found[1]) if found else 0.0

    def memory_mb(self) -> float:
        return self.tree.memory_mb()[0]


# Rows and the index


def _row(number: int) -> bytes:
    words = " ".join(f"w{number * step % _WORDS}" for step in (1, 7, 13, 101, 997, 4_001))
    cells = [
        WireCell("kind", text(f"k{number % _KINDS}")),
        WireCell("name", text(f"name {number:09}")),
        WireCell("number", Value(Kind.INT64, number)),
        WireCell("share", Value(Kind.DOUBLE, number % 1_000 / 1_000)),
        WireCell("open", FALSE if number % 3 else TRUE),
        WireCell("words", text(words)),
        WireCell("place", text(f"{number % 170 - 85}.5,{number % 350 - 175}.25")),
        WireCell("day", text(f"2026-{number % 12 + 1:02}-{number % 28 + 1:02}")),
        WireCell("address", text(f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}")),
        WireCell("parts", text(f'[{{"name": "p{number % 50}", "count": {number % 7}}}]')),
    ]
    return encode_row(WireRow((WireCell("pk", Value(Kind.INT64, number)),), tuple(cells)))


def _field(name: str, kind: Any, **members: Any) -> search.FieldSchema:
    return search.FieldSchema(field_name=name, field_type=kind, **members)


def _schema() -> search.IndexSchema:
    inner = [_field("name", search.KEYWORD), _field("count", search.LONG)]
    return search.IndexSchema(
        field_schemas=[
            _field("kind", search.KEYWORD),
            _field("name", search.KEYWORD),
            _field("number", search.LONG),
            _field("share", search.DOUBLE),
            _field("open", search.BOOLEAN),
            _field("words", search.TEXT),
            _field("place", search.GEO_POINT),
            _field("day", search.DATE, date_formats=["yyyy-MM-dd"]),
            _field("address", search.IP),
            _field("parts", search.NESTED, field_schemas=inner),
        ]
    )


def _make_table(server: Server, name: str) -> None:
    key = [messages.PrimaryKeySchema(name="pk", type=messages.INTEGER)]
    no_units = messages.ReservedThroughput(capacity_unit=messages.CapacityUnit(read=0, write=0))
    request = messages.CreateTableRequest(
        table_meta=messages.TableMeta(table_name=name, primary_key=key),
        reserved_throughput=no_units,
        table_options=messages.TableOptions(time_to_live=-1, max_versions=1),
    )
    server.call("CreateTable", request)


def _fill(server: Server, name: str, rows: int) -> None:
    for first in range(0, rows, _BATCH):
        _put_together(server, name, range(first, min(rows, first + _BATCH)))


def _put_together(server: Server, name: str, numbers: range) -> None:
    condition = messages.Condition(row_existence=messages.IGNORE)
    changes = [
        messages.RowInBatchWriteRowRequest(type=messages.PUT, row_change=_row(number), condition=condition)
        for number in numbers
    ]
    table = messages.TableInBatchWriteRowRequest(table_name=name, rows=changes)
    server.call("BatchWriteRow", messages.BatchWriteRowRequest(tables=[table]))


def _put(server: Server, name: str, number: int) -> None:
    condition = messages.Condition(row_existence=messages.IGNORE)
    server.call("PutRow", messages.PutRowRequest(table_name=name, row=_row(number), condition=condition))


def _make_index(server: Server, name: str) -> None:
    request = search.CreateSearchIndexRequest(table_name=name, index_name="i", schema=_schema())
    server.call("CreateSearchIndex", request)


def _wait_for_index(server: Server, name: str, rows: int) -> None:
    """Wait until an index has all rows and changes."""
    query = search.SearchQuery(query=_all(), limit=0, get_total_count=True)
    while search.SearchResponse.FromString(_search(server, name, query)).total_hits != rows:
        time.sleep(0.05)


def make_rows(server: Server, name: str, rows: int) -> None:
    """Make a table with a search index, and wait until the index has all rows."""
    _make_table(server, name)
    _fill(server, name, rows)
    _make_index(server, name)
    _wait_for_index(server, name, rows)


def search_request(name: str, query: search.SearchQuery) -> search.SearchRequest:
    """Return a request for all columns of the rows that a query finds."""
    columns = search.ColumnsToGet(return_type=search.RETURN_ALL)
    return search.SearchRequest(
        table_name=name, index_name="i", columns_to_get=columns, search_query=query.SerializeToString()
    )


def _search(server: Server, name: str, query: search.SearchQuery) -> bytes:
    return server.call("Search", search_request(name, query))


# Queries


def _query(kind: Any, message: Message) -> search.Query:
    return search.Query(type=kind, query=message.SerializeToString())


def _all() -> search.Query:
    return _query(search.MATCH_ALL_QUERY, search.MatchAllQuery())


def _variant(value: int | str) -> bytes:
    if isinstance(value, int):
        return b"\x00" + struct.pack("<q", value)
    return b"\x03" + struct.pack("<I", len(value.encode())) + value.encode()


def _term(name: str, value: int | str) -> search.Query:
    return _query(search.TERM_QUERY, search.TermQuery(field_name=name, term=_variant(value)))


def _range(name: str, low: int, high: int) -> search.Query:
    bounds = search.RangeQuery(
        field_name=name, range_from=_variant(low), range_to=_variant(high), include_lower=True
    )
    return _query(search.RANGE_QUERY, bounds)


def _queries(rows: int) -> dict[str, Callable[[int], search.SearchQuery]]:
    """Return kinds of queries, each a function of a number that chooses the values."""
    by_number = search.Sort(
        sorter=[search.Sorter(field_sort=search.FieldSort(field_name="number", order=search.SORT_ORDER_DESC))]
    )
    by_score = search.Sort(sorter=[search.Sorter(score_sort=search.ScoreSort())])
    body = search.FieldAggregation(field_name="number").SerializeToString()
    total = search.Aggregations(aggs=[search.Aggregation(name="s", type=search.AGG_SUM, body=body)])

    def words(n: int) -> search.Query:
        return _query(search.MATCH_QUERY, search.MatchQuery(field_name="words", text=f"w{n} w{n + 1}"))

    def near(n: int) -> search.Query:
        center = search.GeoDistanceQuery(
            field_name="place", center_point=f"{n % 80},{n % 170}", distance=200_000
        )
        return _query(search.GEO_DISTANCE_QUERY, center)

    def part(n: int) -> search.Query:
        inner = search.NestedQuery(path="parts", query=_term("parts.name", f"p{n % 50}"))
        return _query(search.NESTED_QUERY, inner)

    def both(n: int) -> search.Query:
        parts = [_term("kind", f"k{n % _KINDS}"), _range("number", rows // 4, rows // 2)]
        return _query(search.BOOL_QUERY, search.BoolQuery(must_queries=parts))

    def prefix(n: int) -> search.Query:
        message = search.PrefixQuery(field_name="name", prefix=f"name {n * rows // _RUNS:09}"[:-2])
        return _query(search.PREFIX_QUERY, message)

    return {
        "term, one row": lambda n: search.SearchQuery(query=_term("number", n * rows // _RUNS)),
        "term, 1 % of the rows, with their number": lambda n: search.SearchQuery(
            query=_term("kind", f"k{n}"), get_total_count=True
        ),
        "range of 100 rows": lambda n: search.SearchQuery(query=_range("number", n, n + 100)),
        "prefix of 100 rows": lambda n: search.SearchQuery(query=prefix(n)),
        "term and range": lambda n: search.SearchQuery(query=both(n), get_total_count=True),
        "match of two words, by score": lambda n: search.SearchQuery(query=words(n), sort=by_score),
        "places within 200 km": lambda n: search.SearchQuery(query=near(n)),
        "object of a nested field": lambda n: search.SearchQuery(query=part(n)),
        "1 % of the rows, by a field": lambda n: search.SearchQuery(
            query=_term("kind", f"k{n}"), sort=by_number
        ),
        "sum over 1 % of the rows": lambda n: search.SearchQuery(
            query=_term("kind", f"k{n}"), aggs=total, limit=0
        ),
    }


# Measurements


def measure(workspace: Workspace, database: str, rows: int, puts: int) -> Iterator[str]:
    """Yield the lines of one database."""
    port, process = start_ours(workspace, "--background-cpu-share", "1", database=database)
    try:
        server = Server(port, process.pid)
        before_mb = server.memory_mb()
        _make_table(server, "full")
        _fill(server, "full", rows)
        began = time.perf_counter()
        _make_index(server, "full")
        _wait_for_index(server, "full", rows)
        took = time.perf_counter() - began
        yield f"filling an index over {rows:,} rows: {rows / took:,.0f} rows/s"
        yield from _of_puts(server, puts)
        for name, query_of in _queries(rows).items():
            before_s = server.tree.cpu_seconds()
            times = [_milliseconds(server, query_of(number)) for number in range(_RUNS)]
            cpu_ms = (server.tree.cpu_seconds() - before_s) / _RUNS * 1_000
            yield (
                f"{name}: median {statistics.median(times):.1f} ms, greatest {max(times):.1f} ms,"
                f" CPU of the server {cpu_ms:.1f} ms"
            )
        yield from _of_lag(server, rows, puts)
        yield f"memory: {before_mb:.0f} MB at the start, {server.memory_mb():.0f} MB at the end"
    finally:
        process.stop()


def _milliseconds(server: Server, query: search.SearchQuery) -> float:
    began = time.perf_counter()
    _search(server, "full", query)
    return (time.perf_counter() - began) * 1_000


def _of_puts(server: Server, puts: int) -> Iterator[str]:
    costs = []
    for name in ("without", "with"):
        _make_table(server, name)
        if name == "with":
            _make_index(server, name)
            _wait_for_index(server, name, 0)
        before_s = server.tree.cpu_seconds()
        for number in range(puts):
            _put(server, name, number)
        if name == "with":
            _wait_for_index(server, name, puts)
        costs.append((server.tree.cpu_seconds() - before_s) / puts * 1_000)
    without, including = costs
    yield f"CPU of a put: {without:.2f} ms without an index, {including:.2f} ms with it ({including / without:.1f} times)"


def _of_lag(server: Server, rows: int, puts: int) -> Iterator[str]:
    lags = [0.0]
    began = time.monotonic()
    for number in range(0, puts, _PUTS_TOGETHER):
        _put_together(server, "full", range(rows + number, rows + number + _PUTS_TOGETHER))
        if number % _PUTS_PER_S == 0:
            lags.append(server.lag_s())
        time.sleep(max(0.0, began + (number + _PUTS_TOGETHER) / _PUTS_PER_S - time.monotonic()))
    took = time.monotonic() - began
    ended = time.perf_counter()
    _wait_for_index(server, "full", rows + puts)
    caught_up = time.perf_counter() - ended
    yield f"lag under {puts / took:,.0f} puts/s: at most {max(lags):.1f} s, caught up {caught_up:.1f} s after the last one"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=int, nargs="?", default=ROWS)
    parser.add_argument("puts", type=int, nargs="?", default=PUTS)
    options = parser.parse_args()
    rows, puts = options.rows, options.puts
    folder = Path(tempfile.mkdtemp(prefix="tablegate-bench-"))
    workspace = Workspace(frozenset(os.sched_getaffinity(0)), folder)
    postgres = Postgres(Workspace(workspace.cores, folder / "postgres"))
    try:
        for name, url in (
            ("SQLite", f"sqlite:///{folder}/search.sqlite"),
            ("PostgreSQL", postgres.new_database()),
        ):
            print(f"{name}, {rows:,} rows:")
            for line in measure(workspace, url, rows, puts):
                print(f"  {line}", flush=True)
    finally:
        postgres.stop()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
