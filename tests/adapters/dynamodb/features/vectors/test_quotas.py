"""Quotas hold for searches of vectors."""

from __future__ import annotations

from tests.adapters.dynamodb.features.exports_imports.conftest import Exporter
from tests.adapters.dynamodb.features.exports_imports.test_quotas import (
    assert_takes_read_units,
    big,
    exporter,
    namespaces,
)
from tests.adapters.dynamodb.features.vectors.test_vectors import definition, index, put, searching, vector

__all__ = ["exporter", "namespaces"]


def test_searches_take_read_units(exporter: Exporter) -> None:
    service = exporter.service
    service.call("CreateTable", definition(index()))
    exporter.work()
    put(service, "a", emb=vector(1, 0, 0), **big(8_000))
    assert_takes_read_units(exporter, lambda: service.call("SearchVectors", searching(1, 0, 0)))
