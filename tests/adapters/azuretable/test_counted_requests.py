"""The requests of a table, in `tablegate_consumed_capacity_total`: one unit each, by reads and writes."""

from __future__ import annotations

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

from tablegate.gateway.observability import metrics
from tablegate.gateway.observability.metrics import Counter
from tests.conftest import Serve
from tests.support.live_azure import LiveAzure


def test_each_request_for_rows_is_a_unit_of_its_table(serve: Serve, database_url: str) -> None:
    table = LiveAzure(serve(database_url).url).service.create_table("counted")
    entity, before = {"PartitionKey": "p", "RowKey": "r"}, metrics.totals()

    def counted() -> tuple[float, float]:
        """Return the units of the table that were read and written."""
        totals, names = (
            metrics.totals(),
            [Counter("table", "counted", kind) for kind in ("read", "write")],
        )
        read, write = (totals.get(name, 0.0) - before.get(name, 0.0) for name in names)
        return read, write

    table.create_entity(entity)
    assert counted() == (0, 1)
    table.get_entity("p", "r")
    with pytest.raises(ResourceNotFoundError):
        table.get_entity("p", "absent")
    assert counted() == (2, 1)
    assert len(list(table.query_entities("PartitionKey eq 'p'"))) == 1
    assert counted() == (3, 1)
    with pytest.raises(HttpResponseError):  # a false condition costs the same
        table.update_entity(entity, etag='W/"x"', match_condition=MatchConditions.IfNotModified)
    table.submit_transaction([("upsert", {"PartitionKey": "p", "RowKey": each}) for each in "abc"])
    assert counted() == (3, 3)
