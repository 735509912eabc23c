"""The metrics of several workers are the sums of their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from tablegate.gateway.observability import metrics, prometheus

_CAPACITY = 'tablegate_consumed_capacity_total{dialect="test"'


def test_a_file_that_a_worker_has_just_created_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    counts = MmapedDict(str(tmp_path / "counter_1.db"))
    counts.write_value(mmap_key("seen", "seen_total", (), (), "A counter."), 3.0, 0.0)
    counts.close()
    (tmp_path / "counter_2.db").touch()
    assert [(sample.name, sample.value) for sample in prometheus.samples()] == [("seen_total", 3.0)]
    text, _ = prometheus.exposition()
    assert b"seen_total 3.0" in text


def test_further_tables_share_a_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "_capacity_labels", set())
    monkeypatch.setattr(prometheus, "MAX_CAPACITY_SERIES", 2)
    prometheus._capacity.cache_clear()
    units = {("test", f"many{number}", "", "read"): 1.0 for number in range(5)}
    prometheus.count(units, {}, [])
    prometheus.count(units, {}, [])

    def series(text: bytes) -> list[str]:
        return [line for line in text.decode().splitlines() if line.startswith(_CAPACITY)]

    labels = [("many0", 2), ("many1", 2), (prometheus.OTHER_TABLES, 6)]
    text, _ = prometheus.exposition(frozenset({"many0", "many1"}))
    assert series(text) == [
        f'{_CAPACITY},index="",kind="read",table="{name}"}} {number:.1f}' for name, number in labels
    ]
    # A dropped table leaves its place to another one.
    prometheus.exposition(frozenset({"many1"}))
    prometheus.count({("test", "many2", "", "read"): 1.0}, {}, [])
    text, _ = prometheus.exposition(frozenset({"many2"}))
    assert [line.rpartition("table=")[2] for line in series(text)] == [
        '"(other tables)"} 6.0',
        '"many2"} 1.0',
    ]
    prometheus.exposition(frozenset())
    prometheus._CONSUMED_CAPACITY.remove("test", prometheus.OTHER_TABLES, "", "read")


def test_connections_above_the_limit_are_a_counter() -> None:
    def number() -> float:
        [line] = [
            line
            for line in metrics.exposition()[0].decode().splitlines()
            if line.startswith("tablegate_excess_connections_total ")
        ]
        return float(line.rpartition(" ")[2])

    before = number()
    metrics.record_excess_connection()
    metrics.record_excess_connection()
    assert number() == before + 2
