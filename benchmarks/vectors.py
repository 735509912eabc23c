"""Vector searches against numpy on the same array: `python -m benchmarks.vectors [VECTORS [DIMENSIONS]]`.

Prints milliseconds, and the ratio to numpy, as medians of alternating rounds:

- numpy's product of the array with the search vector, and its ten greatest values
- a search of the server's index in memory, of all vectors and with filters of several selectivities
- the first search, which reads the index
- a search without memory, which reads the database

It also prints the recall of the ten nearest against numpy with 64 bits. On SQLite the same follows for approximate
searches (`--vector-approximate-from`), with the cost of building their graph. Entries are stored as by the write
path, but their rows have no vectors, which would take most of the setup time.

Vectors are points in 32 dimensions, rotated into the requested number, with a little noise, like embeddings. On
SQLite, random vectors follow. All their distances are similar, which is the worst case for approximate search.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import machine
from benchmarks.contestants import Postgres, Workspace
from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.features.vectors import vector_store
from tablegate.gateway.features.vectors.install import install
from tablegate.gateway.features.vectors.vectors import (
    Metric,
    SearchVectors,
    VectorEntry,
    VectorIndex,
    VectorMatch,
    digest_of,
    vector_indexes,
)
from tablegate.gateway.model.commands.table_commands import CreateTable
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import Kind, Value, decimal, text
from tablegate.gateway.store.migrating import migrate
from tablegate.gateway.store.opening import open_database
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.store import Store

ROUNDS = 15
TOP = 10
BATCH = 1_000
SEARCHES = 20
HIDDEN = 32
SCHEMA = KeySchema((KeyColumn("pk", Kind.TEXT),), ())
# The number of vectors in a thousand that have one value of the filter.
SELECTIVITIES = (1, 10, 100, 500)
Array = NDArray[np.float32]
_OPTIONS = EngineOptions(vector_memory_bytes=4 << 30)
Search = Callable[[Array, dict[str, Value]], list[VectorMatch]]


@contextmanager
def databases() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        postgres = Postgres(Workspace(machine.cores().server, Path(folder) / "postgres"))
        try:
            yield {"SQLite": f"sqlite:///{folder}/vectors.sqlite", "PostgreSQL": postgres.new_database()}
        finally:
            postgres.stop()


def filled(store: Store, engine: Engine, array: Array) -> Table:
    """Create a table with these vectors in its index."""
    filters = tuple(KeyColumn(f"in_{share}", Kind.DECIMAL) for share in SELECTIVITIES)
    index = VectorIndex(
        0, "plain", "v", array.shape[1], Metric.DOT_PRODUCT, IndexProjection.KEYS, filters=filters
    )
    [table] = engine.run([CreateTable("", "", "things", SCHEMA, other_indexes=(index,))])
    [vector_index] = vector_indexes(table)
    matching, other = digest_of(decimal(1)), digest_of(decimal(0))
    for start in range(0, len(array), BATCH):
        entries = []
        for at in range(start, min(start + BATCH, len(array))):
            key: dict[str, Value] = {"pk": text(f"item {at:09}")}
            row = Row(SCHEMA.key(key).position, Contents.of_values(key), 1)
            digests = b"".join(matching if at % 1_000 < share else other for share in SELECTIVITIES)
            entries.append(VectorEntry(row, array[at].tobytes(), b"", digests, array.shape[1] * 4))
        with store.write() as session:
            rows.load(
                session,
                sorted(((table.id, entry.row) for entry in entries), key=lambda pair: pair[1].position),
            )
            vector_store.fill(session, vector_index.id, entries)
    return table


def medians(runs: dict[str, Callable[[], Any]]) -> dict[str, tuple[float, float]]:
    """Return milliseconds, and CPU of this process, of alternating runs."""
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            began, cpu_before = time.perf_counter(), time.process_time()
            run()
            cpu = time.process_time() - cpu_before
            took[name].append((1_000 * (time.perf_counter() - began), 1_000 * cpu))
    return {
        name: (statistics.median(wall for wall, _ in times), statistics.median(cpu for _, cpu in times))
        for name, times in took.items()
    }


def by_numpy(array: Array, query: Array) -> NDArray[np.intp]:
    scores = array @ query
    nearest = np.argpartition(-scores, TOP)[:TOP]
    return nearest[np.argsort(-scores[nearest])]


def measure(name: str, url: str, array: Array, queries: Array, approximately: bool) -> None:
    database = open_database(url, "normal")
    migrate(database)
    store = Store(database)
    engine = new_engine(store, _OPTIONS)
    table = filled(store, engine, array)
    [index] = vector_indexes(table)

    def search(query: Array, filters: dict[str, Value]) -> list[VectorMatch]:
        [matches] = engine.run([SearchVectors(table, index, query.tobytes(), TOP, None, filters)])
        assert isinstance(matches, list), matches
        return matches

    print(f"{name}: {array.shape[0]:,} vectors of {array.shape[1]} dimensions")
    began = time.perf_counter()
    search(queries[0], {})
    print(f"  the first search, which reads the index  {1_000 * (time.perf_counter() - began):10.1f} ms")
    compare(array, queries, search)
    if approximately:
        compare_approximate(engine, array, queries, search)
    install(engine, EngineOptions(vector_memory_bytes=0))
    began = time.perf_counter()
    search(queries[0], {})
    print(f"  a search without index in memory      {1_000 * (time.perf_counter() - began):10.1f} ms")
    engine.close()


def compare_approximate(engine: Engine, array: Array, queries: Array, search: Search) -> None:
    """Print the figures of approximate searches and the cost of their graph."""
    searches = install(engine, _OPTIONS._replace(vector_approximate_from=1_000))
    search(queries[0], {})
    began, cpu_before = time.perf_counter(), time.process_time()
    while searches.grow_graphs(0, 0):
        pass
    took, cpu = time.perf_counter() - began, time.process_time() - cpu_before
    print(f"  the graph of approximate searches        {took:10.1f} s, CPU {cpu:.1f} s")
    compare(array, queries, search)


def compare(array: Array, queries: Array, search: Search) -> None:
    """Print durations and results of searches."""
    turn = itertools.cycle(queries)
    runs: dict[str, Callable[[], Any]] = {"numpy": lambda: by_numpy(array, next(turn))}
    every: dict[str, dict[str, Value]] = {"": {}}
    for share in SELECTIVITIES:
        every[f", filter matches {share / 10:g} %"] = {f"in_{share}": decimal(1)}
    for text_of_filter, filters in every.items():
        runs[f"search{text_of_filter}"] = partial(lambda filters: search(next(turn), filters), filters)
    durations = medians(runs)
    of_numpy, cpu_of_numpy = durations["numpy"]
    for run, (took, cpu) in durations.items():
        compared = f"{took / of_numpy:5.2f} times numpy, in CPU {cpu / cpu_of_numpy:5.2f}"
        print(f"  {run:40} {took:10.1f} ms  {compared}")
    wide = array.astype(np.float64)
    for text_of_filter, filters in every.items():
        shares = [share for share in SELECTIVITIES if f"in_{share}" in filters]
        candidates = np.flatnonzero(np.arange(len(array)) % 1_000 < min(shares, default=1_000))
        hits = sum(len(expected(wide, candidates, query) & keys(search(query, filters))) for query in queries)
        print(
            f"  recall of {TOP}, {len(queries)} searches{text_of_filter:30} {hits / (TOP * len(queries)):10.4f}"
        )


def expected(wide: NDArray[np.float64], candidates: NDArray[np.intp], query: Array) -> set[str]:
    merits = wide[candidates] @ query.astype(np.float64) if len(candidates) < len(wide) else wide @ query
    return {f"item {at:09}" for at in candidates[np.argsort(-merits)[:TOP]].tolist()}


def keys(matches: list[VectorMatch]) -> set[str]:
    return {nearest.row.latest["pk"].data for nearest in matches}


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    dimensions = int(sys.argv[2]) if len(sys.argv) > 2 else 768
    with databases() as urls:
        for name, url in urls.items():
            measure(name, url, *vectors_like_embeddings(number, dimensions), approximately=name == "SQLite")
        array, queries = random_vectors(number, dimensions)
        measure("SQLite, random numbers", f"{urls['SQLite']}-random", array, queries, approximately=True)


def vectors_like_embeddings(number: int, dimensions: int) -> tuple[Array, Array]:
    """Return vectors and further ones to search for."""
    chance = np.random.default_rng(1)
    points = chance.standard_normal((number + SEARCHES, HIDDEN), dtype=np.float32)
    array = points @ chance.standard_normal((HIDDEN, dimensions), dtype=np.float32) / np.float32(HIDDEN**0.5)
    for start in range(0, len(array), BATCH):
        some = array[start : start + BATCH]
        some += chance.standard_normal(some.shape, dtype=np.float32) / 10
        some /= np.linalg.norm(some, axis=1, keepdims=True)
    return array[:number], array[number:]


def random_vectors(number: int, dimensions: int) -> tuple[Array, Array]:
    """Return random vectors and further ones to search for."""
    array = np.random.default_rng(1).standard_normal((number + SEARCHES, dimensions), dtype=np.float32)
    return array[:number], array[number:]


if __name__ == "__main__":
    main()
