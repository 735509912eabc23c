"""Numbers of one hash take no longer in groups and terms of searches than others (values/test_hash_keys.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tablegate.gateway.features.search.aggregations import GroupByField, Inner, Metric, MetricKind
from tablegate.gateway.features.search.collecting import Collector, Hit
from tablegate.gateway.features.search.queries import Terms, matches
from tablegate.gateway.features.search.schema import FieldType, SearchField
from tablegate.gateway.model.values.keys import Position
from tests.gateway.model.values.test_hash_keys import MODULUS, NUMBERS, OF_ONE_HASH, Compared

LONG = SearchField("n", FieldType.LONG, "n")


def hit(*numbers: int) -> Hit:
    return Hit({"n": list(numbers)}, b"", Position(b"p", b""))


def collect(inner: Inner, hits: list[Hit]) -> Any:
    collector = Collector(inner)
    for each in hits:
        collector.add(each)
    return collector.result()


SEARCHES: dict[str, Callable[[list[Any]], Any]] = {
    "groups": lambda numbers: collect(Inner((), (GroupByField("g", LONG, Inner(), 9),)), [hit(*numbers)]),
    "distinct values": lambda numbers: collect(
        Inner((Metric("m", MetricKind.DISTINCT_COUNT, LONG),)), [hit(*numbers)]
    ),
    "terms": lambda numbers: matches(Terms(LONG, tuple(numbers)), {"n": [MODULUS, *numbers[:1]]}),
}


@pytest.mark.parametrize("search", SEARCHES)
def test_numbers_of_one_hash_are_not_compared_with_each_other(search: str) -> None:
    Compared.count = 0
    SEARCHES[search](list(map(Compared, OF_ONE_HASH)))
    assert Compared.count <= 2 * NUMBERS


def test_groups_have_their_numbers_as_keys() -> None:
    aggregations = collect(Inner((), (GroupByField("g", LONG, Inner(), 9),)), [hit(7, 7), hit(7, -1), hit()])
    assert [(group.key, group.rows) for group in aggregations.groups[0]] == [(7, 2), (-1, 1)]
