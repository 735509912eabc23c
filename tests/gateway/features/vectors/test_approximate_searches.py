"""Searches that go by a graph: how much of what is nearest they find, and that all else about them is as of an exact one."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.features.vectors import exact_search, index_images, vector_search
from tablegate.gateway.features.vectors.exact_search import NearestSoFar, VectorSearch
from tablegate.gateway.features.vectors.index_images import (
    BYTES_PER_VECTOR,
    IndexImage,
    IndexImages,
    VectorGraph,
)
from tablegate.gateway.features.vectors.install import install
from tablegate.gateway.features.vectors.vector_store import IndexVersions
from tablegate.gateway.features.vectors.vectors import Metric, SearchVectors, VectorIndex, pack, vector_index
from tablegate.gateway.model.commands.table_commands import CreateTable, DropTable, FindTable
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules
from tablegate.gateway.model.values.values import decimal, text
from tablegate.gateway.store.store import Store
from tablegate.gateway.wiring import open_store
from tests.gateway.engine.conftest import PAIR, Client, column, do_background_work
from tests.gateway.features.vectors.test_vector_search import (
    by_meaning,
    check,
    list_of,
    make,
    names,
    score,
    search,
)
from tests.support.clock import Clock

Array = NDArray[np.float32]
MEMORY = 1 << 30


def grow(engine: Engine) -> int:
    """Add all vectors in images to the graphs. Returns their number."""
    rows = 0
    while (batch := engine.background.batch_of("vector_graphs")) is not None:
        rows += batch.rows
    return rows


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of candidates for each graph search."""
    found: list[int] = []
    candidates = VectorGraph.candidates

    def noted(self: VectorGraph, vector: Array, number: int) -> index_images.Candidates:
        answer = candidates(self, vector, number)
        found.append(sum(len(rows) for rows in answer.near.values()))
        return answer

    monkeypatch.setattr(VectorGraph, "candidates", noted)
    return found


@pytest.fixture(autouse=True)
def _needs_images(request: pytest.FixtureRequest) -> None:
    """Skip the test if the database keeps no images. Graphs belong to images, which need a snapshot of all nodes."""
    if (
        "engine" in request.fixturenames
        and not request.getfixturevalue("engine")._store.database.has_snapshots
    ):
        pytest.skip("without snapshots of all nodes nothing is kept in memory")


@pytest.fixture
def approximate(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine that uses graphs for any number of vectors, and then finds all of them."""
    if not engine._store.database.has_snapshots:
        pytest.skip(
            "where reads are not of one moment no image is kept, and searches are exact (docs/operate/scaling.md)"
        )
    monkeypatch.setattr(vector_search, "_GRAPH_COST", 0)
    engine.install_capabilities()
    install(engine, EngineOptions(vector_approximate_from=1))
    return engine


@pytest.fixture
def fewer_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of a server's candidates.

    The graph then applies to a quarter of the vectors, and the results are no better.
    """
    monkeypatch.setattr(vector_search, "_MIN_CANDIDATES", 100)


# Results


def index_of(dimensions: int, metric: Metric, filters: int = 0) -> VectorIndex:
    columns = tuple(column(f"f{at}") for at in range(filters))
    return VectorIndex(1, "i", "v", dimensions, metric, IndexProjection.KEYS, filters=columns)


def image_of(
    array: Array, metric: Metric, digests: list[bytes] | None = None
) -> tuple[IndexImages, IndexImage]:
    """Return an image of these vectors with a complete graph."""
    index = index_of(array.shape[1], metric, 0 if digests is None else len(digests[0]) // 16)
    images = IndexImages(MEMORY, approximate_from=1)
    entries = [
        (at + 1, None, b"" if digests is None else digests[at], row.tobytes()) for at, row in enumerate(array)
    ]
    assert images.add(index, None, entries, len(entries), IndexVersions(len(entries), 0, ""))
    while images.grow_graph():
        pass
    image = images.get(1, "")
    assert image is not None
    return images, image


def target_of(metric: Metric, vector: bytes, count: int, digests: Any = ()) -> VectorSearch:
    return exact_search.search_near(metric, vector, count, digests)


def looked_up(image: IndexImage, target: VectorSearch, at_least: int = 1) -> list[tuple[int, float]] | None:
    slices = vector_search._search_graph(image, target, at_least)
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return None if end.value is None else end.value.results()


def exact(image: IndexImage, target: VectorSearch) -> list[tuple[int, float]]:
    best = NearestSoFar(target)
    for part in image.parts:
        best.scan(part)
    return best.results()


def random_vectors(number: int, dimensions: int) -> Array:
    return np.random.default_rng(1).standard_normal((number, dimensions), dtype=np.float32)


def clustered_vectors(number: int, dimensions: int) -> Array:
    """Forty clusters, of a tenth of the width of what they lie in."""
    chance = np.random.default_rng(2)
    centres = chance.standard_normal((40, dimensions), dtype=np.float32)
    around = chance.standard_normal((number, dimensions), dtype=np.float32) / 10
    return centres[chance.integers(40, size=number)] + around


@pytest.mark.parametrize("metric", list(Metric))
@pytest.mark.parametrize("vectors", [random_vectors, clustered_vectors])
def test_recall_of_the_ten_nearest_is_high(metric: Metric, vectors: Any, fewer_candidates: None) -> None:
    """Scores are those of an exact search, to the last bit."""
    array = vectors(3_000, 24)
    _, image = image_of(array[:-20], metric)
    hits = 0
    for query in array[-20:]:
        target = target_of(metric, query.tobytes(), 10)
        found, wanted = looked_up(image, target), exact(image, target)
        assert found is not None
        scores = dict(wanted)
        assert [found_score for version, found_score in found if version in scores] == [
            scores[version] for version, _ in found if version in scores
        ]
        hits += len({*scores} & {version for version, _ in found})
    assert hits >= 0.95 * 200


@pytest.fixture(scope="module")
def filtered() -> IndexImage:
    """An image in which half has one digest, and one in fifty another one."""
    array = random_vectors(8_000, 8)
    return image_of(
        array, Metric.COSINE, [bytes([at % 2]) * 16 + bytes([at % 50]) * 16 for at in range(len(array))]
    )[1]


HALF, ONE_IN_FIFTY = [(0, bytes(16))], [(1, bytes(16))]


def test_recall_is_as_high_with_a_filter(
    filtered: IndexImage, asked: list[int], fewer_candidates: None
) -> None:
    """If half of the vectors pass the filter, twice as many candidates are requested."""
    hits = 0
    for query in random_vectors(30, 8):
        target = target_of(Metric.COSINE, query.tobytes(), 10, HALF)
        found = looked_up(filtered, target)
        assert found is not None and all(version % 2 == 1 for version, _ in found)
        hits += len({*found} & {*exact(filtered, target)})
    assert hits >= 0.95 * 300
    assert asked == [2 * vector_search._MIN_CANDIDATES] * 30


def test_all_vectors_are_compared_if_few_pass_the_filter(filtered: IndexImage, asked: list[int]) -> None:
    target = target_of(Metric.COSINE, random_vectors(1, 8)[0].tobytes(), 10, ONE_IN_FIFTY)
    assert looked_up(filtered, target) is None and asked == []


def test_a_search_is_approximate_from_a_number_of_candidates_on(
    filtered: IndexImage, fewer_candidates: None
) -> None:
    """Counted are those that pass the filter."""
    query = random_vectors(1, 8)[0].tobytes()
    for digests, number in (((), 8_000), (HALF, 4_000)):
        target = target_of(Metric.COSINE, query, 10, digests)
        assert looked_up(filtered, target, number) is not None
        assert looked_up(filtered, target, number + 1) is None


def test_all_vectors_are_compared_if_the_filter_passes_only_distant_ones(
    asked: list[int], fewer_candidates: None
) -> None:
    """All that the filter lets through is at the other end of space."""
    array = random_vectors(8_000, 8)
    array[:4_000, 0], array[4_000:, 0] = 50, -50
    digests = [bytes([at // 4_000]) * 16 for at in range(len(array))]
    _, image = image_of(array, Metric.EUCLIDEAN, digests)
    query = array[0].tobytes()
    assert looked_up(image, target_of(Metric.EUCLIDEAN, query, 10, [(0, bytes(16))])) is not None
    assert looked_up(image, target_of(Metric.EUCLIDEAN, query, 10, [(0, b"\1" * 16)])) is None
    assert len(asked) == 2 and asked[0] == asked[1]


def test_vectors_that_are_not_yet_in_the_graph_are_found(asked: list[int], fewer_candidates: None) -> None:
    array = random_vectors(4_000, 8)
    images, image = image_of(array[:2_500], Metric.COSINE)
    index = index_of(8, Metric.COSINE)
    more = array[2_500:]
    entries = [(2_501 + at, None, b"", row.tobytes()) for at, row in enumerate(more)]
    assert images.add(index, image, entries, 4_000, IndexVersions(4_000, 0, ""))
    grown = images.get(1, "")
    assert grown is not None and grown.length == 4_000
    for query in more[::150]:
        target = target_of(Metric.COSINE, query.tobytes(), 10)
        found = looked_up(grown, target)
        assert found is not None
        assert len({*found} & {*exact(grown, target)}) >= 9
        # A reader of the older image finds no later vectors.
        older = looked_up(image, target)
        assert older is not None and max(version for version, _ in older) <= 2_500
    while images.grow_graph():
        pass
    assert max(asked) == 100
    older = looked_up(image, target)
    assert older is not None and max(version for version, _ in older) <= 2_500


@pytest.mark.parametrize("metric", list(Metric))
def test_vectors_that_no_graph_can_have(approximate: Engine, metric: Metric, asked: list[int]) -> None:
    """Vectors that are too long, too short or of length zero are compared directly.

    A search for such a vector compares all vectors directly.
    """
    client = make(approximate, by_meaning(metric))
    odd = [(3e38, 3e38, 3e38), (-3e38, 0, 0), (1e-40, 1e-40, 0), (0, 0, 0), (1e-30, 0, 0)]
    chance = random.Random(1)
    even = [[chance.uniform(-1, 1) for _ in range(3)] for _ in range(40)]
    client.write(*(client.put(f"p{at}", v=list_of(vector)) for at, vector in enumerate([*odd, *even])))
    for query in [*odd, *even[:5]]:
        search(client, query)
        grow(approximate)
        found = [match.score for match in search(client, query, 10)]
        rows = [[float(number.data) for number in row.latest["v"].data] for row in client.rows()]
        scores = np.clip([score(metric, one, query) for one in rows], -3.4028235e38, 3.4028235e38)
        wanted = sorted(scores, reverse=metric is Metric.DOT_PRODUCT)[:10]
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-9)
    assert asked and max(asked) == len(even)


# As an exact search


def test_approximate_searches_follow_random_writes(approximate: Engine, asked: list[int]) -> None:
    """Updates and deletions are seen at once, whatever the graph has by then."""
    client = make(approximate, by_meaning(Metric.EUCLIDEAN, filters=(column("kind"),)))
    chance = random.Random(7)
    grown = 0
    for turn in range(40):
        writes = []
        for _ in range(chance.randint(1, 12)):
            p, s = chance.choice("abcdefghij"), chance.randint(0, 9)
            vector = list_of([chance.uniform(-2, 2) for _ in range(3)])
            is_removed = chance.random() < 0.3
            writes.append(
                client.remove(p, s) if is_removed else client.put(p, s, v=vector, kind=text("xy"[turn % 2]))
            )
        client.write(*writes)
        check(client, Metric.EUCLIDEAN, [chance.uniform(-2, 2) for _ in range(3)], chance.choice([1, 5]))
        if chance.random() < 0.5:
            grown += grow(approximate)
        wanted = sorted(
            score(Metric.EUCLIDEAN, [float(number.data) for number in row.latest["v"].data], (1, 1, 1))
            for row in client.rows()
            if row.latest["kind"] == text("x")
        )
        found = search(client, (1, 1, 1), 5, filters={"kind": text("x")})
        assert [match.score for match in found] == pytest.approx(wanted[:5])
    assert grown > 60 and sum(1 for number in asked if number) > 25


def test_servers_that_share_a_database_see_each_others_writes(
    approximate: Engine, clock: Clock, asked: list[int]
) -> None:
    """Each server has a separate graph."""
    options = EngineOptions(vector_approximate_from=1)
    other = new_engine(Store(approximate._store.database), options, clock)
    other.register_view("test", lambda value, is_partition: value)
    one = make(approximate, by_meaning(Metric.EUCLIDEAN))
    [table] = other.run([FindTable("", "things")])
    two = Client(other, table)
    chance = random.Random(11)
    for turn in range(30):
        writer, reader = (one, two) if turn % 2 else (two, one)
        for _ in range(chance.randint(1, 5)):
            p = chance.choice("abcdefgh")
            vector = list_of([chance.uniform(-1, 1) for _ in range(3)])
            writer.write(writer.remove(p) if chance.random() < 0.3 else writer.put(p, v=vector))
        check(reader, Metric.EUCLIDEAN, (0.1, 0.2, 0.3), 2)
        grow(reader.engine)
    assert max(asked) > 5


def test_a_search_in_slices_sees_one_moment(approximate: Engine, asked: list[int]) -> None:
    client = make(approximate, by_meaning(Metric.EUCLIDEAN))
    chance = random.Random(5)
    vectors = [[chance.uniform(-1, 1) for _ in range(3)] for _ in range(60)]
    client.write(*(client.put(f"p{n}", v=list_of(vector)) for n, vector in enumerate(vectors)))
    wanted = names(search(client, (0.1, 0, 0), 10))
    grow(approximate)
    index = vector_index(client.table, "by_meaning")
    assert index is not None
    outcomes: dict[int, Any] = {}
    slices = approximate.run_in_slices(
        [SearchVectors(client.table, index, pack((0.1, 0, 0)), 10)], outcomes, 1
    )
    next(slices)
    client.write(client.put("later", v=list_of((0.1, 0, 0))), client.remove(wanted[0]))
    assert names(search(client, (0.1, 0, 0), 10))[0] == "later"
    grow(approximate)
    for _ in slices:
        pass
    assert names(outcomes[0]) == wanted
    assert max(asked) >= 60


def test_expiry_and_drops_are_seen(approximate: Engine, clock: Clock, asked: list[int]) -> None:
    def made() -> Client:
        rules = Rules(ExpiryRule("until"))
        command = CreateTable("test", "", "things", PAIR, rules=rules, other_indexes=(by_meaning(),))
        return Client(approximate, approximate.run([command])[0])

    client = made()
    until = decimal(clock.ms // 1000 + 60)
    client.write(*(client.put(f"p{n}", v=list_of((n, 1, 0))) for n in range(20)))
    client.write(client.put("short", v=list_of((1, 0, 0)), until=until))
    search(client, (1, 0, 0))
    grow(approximate)
    assert names(search(client, (1, 0, 0), 2)) == ["short", "p19"]
    clock.advance(120)
    do_background_work(approximate)
    assert names(search(client, (1, 0, 0), 2)) == ["p19", "p18"]
    assert asked == [0, 21, 21]
    approximate.run([DropTable(client.table)])
    do_background_work(approximate)
    client = made()
    client.write(client.put("new", v=list_of((0, 1, 0))))
    assert names(search(client, (1, 0, 0))) == ["new"]


def test_an_image_that_is_mostly_gone_is_made_anew_with_its_graph(approximate: Engine) -> None:
    client = make(approximate, by_meaning(Metric.EUCLIDEAN))
    client.write(*(client.put(f"p{n}", v=list_of((n, 1, 1))) for n in range(200)))
    search(client, (1, 1, 1))
    assert grow(approximate) == 200
    client.write(*(client.remove(f"p{n}") for n in range(150)))
    check(client, Metric.EUCLIDEAN, (1, 1, 1))
    check(client, Metric.EUCLIDEAN, (1, 1, 1))
    assert grow(approximate) == 50
    check(client, Metric.EUCLIDEAN, (1, 1, 1))


# Memory


def test_a_graph_takes_no_more_memory_than_is_counted() -> None:
    """The library allocates eight megabytes in advance, which do not count. The vectors are not copied."""
    array = random_vectors(4_000, 4)
    _, image = image_of(array, Metric.EUCLIDEAN)
    assert image.graph is not None
    assert image.graph._index.memory_usage <= (8 << 20) + BYTES_PER_VECTOR * len(array)
    counted = sum(part.block.size_bytes for part in image.parts)
    assert image.size_bytes >= counted + BYTES_PER_VECTOR * len(array)
    block = image.parts[0].block
    block.vectors[5] = 77
    [distance] = image.graph._index.search(block.vectors[5], 1, exact=True).distances
    assert distance == 0
    with_graph, without = IndexImages(2 * 15_000 * 32, 1), IndexImages(2 * 15_000 * 32)
    index = index_of(4, Metric.EUCLIDEAN)
    assert without.fits(index, 15_000) and not with_graph.fits(index, 15_000)


def test_an_index_that_does_not_fit_in_memory_is_read_from_the_database(
    approximate: Engine, asked: list[int]
) -> None:
    install(approximate, EngineOptions(vector_memory_bytes=10_000, vector_approximate_from=1))
    client = make(approximate, by_meaning(Metric.EUCLIDEAN))
    client.write(*(client.put(f"p{n}", v=list_of((n, 1, 1))) for n in range(100)))
    check(client, Metric.EUCLIDEAN, (7, 1, 1))
    assert grow(approximate) == 0 and asked == []


# The setting


@pytest.fixture
def without_usearch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in [name for name in sys.modules if name.partition(".")[0] == "usearch"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "usearch", None)
    return


def test_searches_that_are_exact_load_nothing(engine: Engine, without_usearch: None) -> None:
    client = make(engine, by_meaning(Metric.EUCLIDEAN))
    client.write(*(client.put(f"p{n}", v=list_of((n, 1, 1))) for n in range(100)))
    check(client, Metric.EUCLIDEAN, (7, 1, 1))
    assert "vector_graphs" not in engine.background.works


def test_the_setting_is_refused_without_its_packages(engine: Engine, without_usearch: None) -> None:
    with pytest.raises(BadSetting, match=r"vector_approximate_from.*pip install 'tablegate\[vectors\]'"):
        open_store(load({"vector_approximate_from": 5}, {}), engine._store.database)
    assert "vector_graphs" not in open_store(load({}, {}), engine._store.database).engine.background.works


def test_the_setting_reaches_the_engine(engine: Engine) -> None:
    opened = open_store(load({"vector_approximate_from": 5}, {}), engine._store.database)
    searches = opened.engine.background.works["vector_graphs"].batch.__self__
    assert searches._approximate_from == 5
    with pytest.raises(BadSetting):
        load({"vector_approximate_from": -1}, {})
