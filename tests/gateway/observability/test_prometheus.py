"""The metrics of several workers are the sums of their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from tablegate.gateway.observability import prometheus


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
