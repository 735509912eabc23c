"""UpdateSearchIndex: the switch to another schema, and the time to live."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.protocol import search_pb2 as messages
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as table_messages
from tablegate.gateway.features.search import search_engine
from tests.adapters.tablestore.client import Refused, TableStoreService
from tests.adapters.tablestore.search_messages import (
    Searches,
    exists,
    field,
    keys_of,
    match_all,
    schema,
    term,
)
from tests.support.clock import Clock

KEYWORD, LONG = messages.KEYWORD, messages.LONG
DAY_S = 86_400


@pytest.fixture
def table(service: TableStoreService) -> Searches:
    return Searches(service)


@pytest.fixture
def stored(clock: Clock, database_url: str) -> Iterator[Searches]:
    """A table in each database."""
    with TableStoreService.opened(clock, database=database_url) as made:
        yield Searches(made)


def described(table: Searches, index: str = "i") -> Any:
    return table.service.call("DescribeSearchIndex", table_name="t", index_name=index)


def update(table: Searches, **members: Any) -> None:
    members.setdefault("index_name", "i")
    table.service.call("UpdateSearchIndex", table_name="t", **members)


def create_index(table: Searches, name: str, *fields: tuple[str, int], **members: Any) -> None:
    table.service.call(
        "CreateSearchIndex", table_name="t", index_name=name, schema=schema(*fields), **members
    )


# Another schema. Source: aliyun-tablestore-go-sdk, search_api_test.go, TestUpdateSchemaAndDescribeSearchIndex


def test_an_index_is_switched_to_another_schema(stored: Searches) -> None:
    table = stored
    table.create(("k", KEYWORD))
    table.service.put({"pk": 1}, {"k": "a", "l": 5})
    create_index(table, "i_reindex", ("k", KEYWORD), ("l", LONG), source_index_name="i")
    table.catch_up()
    assert described(table).brother_index_name == "i_reindex"
    assert described(table, "i_reindex").brother_index_name == "i"
    weights = [
        messages.QueryFlowWeight(index_name=name, weight=weight)
        for name, weight in (("i", 0), ("i_reindex", 100))
    ]
    update(table, query_flow_weight=weights)
    assert list(described(table).query_flow_weight) == weights
    assert table.find(exists("l")) == [1]
    update(table, switch_index_name="i_reindex")
    assert [each.field_name for each in described(table).schema.field_schemas] == ["k", "l"]
    assert [each.field_name for each in described(table, "i_reindex").schema.field_schemas] == ["k"]
    assert table.find(term("l", 5)) == [1]
    table.service.put({"pk": 2}, {"l": 5})
    table.catch_up()
    assert table.find(term("l", 5)) == [1, 2]
    table.service.call("DeleteSearchIndex", table_name="t", index_name="i_reindex")
    assert not described(table).brother_index_name
    assert table.find(term("l", 5)) == [1, 2]


def test_weights_direct_searches(table: Searches, monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: aliyun-tablestore-java-sdk, UpdateSearchIndexRequest: the percentages of the searches of the first index."""
    table.create(("k", KEYWORD))
    for key in range(3):
        table.service.put({"pk": key}, {"k": "a", "l": key})
    create_index(table, "i_reindex", ("l", LONG), source_index_name="i")
    table.catch_up()
    weights = [
        messages.QueryFlowWeight(index_name="i", weight=70),
        messages.QueryFlowWeight(index_name="i_reindex", weight=30),
    ]
    update(table, query_flow_weight=weights)
    monkeypatch.setattr("secrets.randbelow", lambda most: 30)
    assert table.find(exists("k")) == [0, 1, 2]
    monkeypatch.setattr("secrets.randbelow", lambda most: 29)
    first = table.search(exists("l"), limit=2)
    assert keys_of(first) == [0, 1]
    monkeypatch.setattr("secrets.randbelow", lambda most: 99)
    assert keys_of(table.search(exists("l"), limit=2, token=first.next_token)) == [2]
    monkeypatch.setattr("secrets.randbelow", lambda most: 0)
    with pytest.raises(Refused, match="token"):
        table.search(exists("k"), limit=2, token=b"none")
    table.service.call("DeleteSearchIndex", table_name="t", index_name="i_reindex")
    assert table.find(exists("k")) == [0, 1, 2]
    create_index(table, "i_reindex", ("l", LONG), source_index_name="i")
    assert list(described(table).query_flow_weight) == []
    assert table.find(exists("k")) == [0, 1, 2]


def test_invalid_updates_are_refused(table: Searches) -> None:
    table.create(("k", KEYWORD))
    create_index(table, "other", ("k", KEYWORD))
    create_index(table, "i_reindex", ("k", KEYWORD), source_index_name="i")
    weight = messages.QueryFlowWeight
    for members in (
        {},
        {"time_to_live": -1, "switch_index_name": "i_reindex"},
        {"switch_index_name": "other"},
        {"switch_index_name": "i"},
        {"query_flow_weight": [weight(index_name="i", weight=100)]},
        {"query_flow_weight": [weight(index_name="i", weight=50), weight(index_name="other", weight=50)]},
        {
            "query_flow_weight": [
                weight(index_name="i", weight=-1),
                weight(index_name="i_reindex", weight=101),
            ]
        },
        {"query_flow_weight": [weight(index_name="i", weight=50), weight(index_name="i_reindex", weight=51)]},
        {"added_field_schemas": [messages.FieldSchema(field_name="k", field_type=LONG)]},
        {"added_field_schemas": [messages.FieldSchema(field_name="f", field_type=messages.FLATTENED)]},
        {"added_field_schemas": [messages.FieldSchema(field_name="l", field_type=LONG)], "time_to_live": -1},
    ):
        with pytest.raises(Refused, match="OTSParameterInvalid"):
            update(table, **members)
    for members in ({"switch_index_name": "absent"}, {"index_name": "absent", "time_to_live": -1}):
        with pytest.raises(Refused, match="OTSMetaNotMatch"):
            update(table, **members)
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        create_index(table, "new", ("k", KEYWORD), source_index_name="i")
    with pytest.raises(Refused, match="OTSMetaNotMatch"):
        create_index(table, "new_reindex", ("k", KEYWORD), source_index_name="absent")
    assert [each.field_name for each in described(table).schema.field_schemas] == ["k"]


# Added fields. Source: UpdateSearchIndexRequest of the Java SDK


def test_an_index_gets_more_fields(stored: Searches) -> None:
    table = stored
    table.create(("k", KEYWORD))
    for key in range(3):
        table.service.put({"pk": key}, {"k": "a", "l": key, "t": "some tea"})
    table.catch_up()
    more = [field("l", LONG), field("t", messages.TEXT)]
    update(table, added_field_schemas=more)
    assert described(table).sync_stat.sync_phase == messages.FULL
    assert [each.field_name for each in described(table).schema.field_schemas] == ["k", "l", "t"]
    assert table.find(term("k", "a")) == [0, 1, 2]
    assert table.find(term("l", 1)) == []
    table.service.put({"pk": 1}, {"k": "a", "l": 7})
    table.service.delete({"pk": 2})
    table.catch_up()
    assert described(table).sync_stat.sync_phase == messages.INCR
    assert table.find(exists("l")) == [0, 1]
    assert table.find(term("l", 7)) == [1]
    assert table.find(term("t", "tea")) == [0]
    assert table.find(term("k", "a")) == [0, 1]


def test_the_number_of_fields_after_an_addition(table: Searches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SEARCH_FIELDS_MAX", 3)
    table.create(("k", KEYWORD))
    update(table, added_field_schemas=[field("l", LONG), field("m", LONG)])
    with pytest.raises(Refused, match="exceeds the limit: 3"):
        update(table, added_field_schemas=[field("n", LONG)])


def test_fields_that_are_added_during_a_batch(stored: Searches, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch with documents of the old schema is not stored: the index is filled from the beginning."""
    table = stored
    table.create(("k", KEYWORD))
    for key in range(3):
        table.service.put({"pk": key}, {"k": "a", "l": key})
    document_of = search_engine.document_of
    added = iter(range(1))

    def slow(*arguments: Any) -> Any:
        for _ in added:
            update(table, added_field_schemas=[field("l", LONG)])
        return document_of(*arguments)

    monkeypatch.setattr(search_engine, "document_of", slow)
    table.catch_up()
    assert [*added] == []
    assert table.find(exists("l")) == [0, 1, 2]
    assert table.find(term("k", "a")) == [0, 1, 2]


# Progress


def test_lag_and_statistics_in_all_phases(stored: Searches) -> None:
    table = stored
    service = table.service
    engine = service.gateway.engine
    service.create()
    service.put({"pk": 1}, {"k": "a"})
    create_index(table, "i", ("k", KEYWORD))
    service.clock.ms += 5_000
    answer = described(table)
    assert (answer.sync_stat.sync_phase, answer.sync_stat.current_sync_timestamp) == (messages.FULL, 0)
    assert (answer.metering_info.row_count, answer.metering_info.storage_size) == (0, 0)
    assert engine.background.lag_s("search") == 5
    table.catch_up()
    assert engine.background.lag_s("search") == 0
    answer = described(table)
    assert answer.sync_stat.sync_phase == messages.INCR
    assert answer.sync_stat.current_sync_timestamp == service.clock.ms * 1_000_000
    assert (answer.metering_info.row_count, answer.metering_info.storage_size) == (1, len(b'{"k":["a"]}'))
    service.put({"pk": 2}, {"k": "bb"})
    written_at_ms = service.clock.ms
    service.clock.ms += 3_000
    assert engine.background.lag_s("search") == 3
    assert described(table).sync_stat.current_sync_timestamp == written_at_ms * 1_000_000
    table.catch_up()
    assert described(table).metering_info.storage_size == len(b'{"k":["a"]}{"k":["bb"]}')
    service.delete({"pk": 1})
    table.catch_up()
    assert described(table).metering_info.row_count == 1
    assert engine.background.lag_s("search") == 0


# The time to live. Source: "Specify the TTL of a search index" and "UpdateSearchIndex" (2026)


def create_table(table: Searches, **members: Any) -> None:
    options = table_messages.TableOptions(
        **{"time_to_live": -1, "max_versions": 1, "allow_update": False, **members}
    )
    table.service.create(table_options=options)


def test_rows_leave_an_index_after_its_time_to_live(table: Searches) -> None:
    create_table(table)
    service = table.service
    service.put({"pk": 1}, {"k": "early"})
    create_index(table, "i", ("k", KEYWORD), time_to_live=2 * DAY_S)
    assert described(table).time_to_live == 2 * DAY_S
    service.clock.ms += DAY_S * 1000
    service.put({"pk": 2}, {"k": "late"})
    service.put({"pk": 3}, {"k": "early"})
    table.catch_up()
    assert table.find(match_all()) == [1, 2, 3]
    service.clock.ms += DAY_S * 1000
    table.catch_up()
    assert table.find(match_all()) == [1, 2, 3]
    service.clock.ms += 1
    table.catch_up()
    assert table.find(match_all()) == [2, 3]
    assert table.find(term("k", "early")) == [3]
    assert service.get({"pk": 1}) is not None
    service.put({"pk": 1}, {"k": "again"})
    service.delete({"pk": 3})
    table.catch_up()
    assert table.find(match_all()) == [1, 2]


def test_an_index_gets_and_loses_a_time_to_live(stored: Searches) -> None:
    table = stored
    create_table(table)
    service = table.service
    service.put({"pk": 1}, {"k": "a"})
    create_index(table, "i", ("k", KEYWORD))
    table.catch_up()
    service.clock.ms += 3 * DAY_S * 1000
    service.put({"pk": 2}, {"k": "b"})
    update(table, time_to_live=DAY_S)
    assert described(table).time_to_live == DAY_S
    assert described(table).sync_stat.sync_phase == messages.FULL
    table.catch_up()
    assert table.find(match_all()) == [2]
    assert described(table).sync_stat.sync_phase == messages.INCR
    update(table, time_to_live=-1)
    assert described(table).time_to_live == -1
    service.clock.ms += 3 * DAY_S * 1000
    table.catch_up()
    assert table.find(match_all()) == [2]


def test_limits_of_times_to_live(table: Searches) -> None:
    """At least a day, and at most that of the table, whose rows must not be updated."""
    create_table(table, time_to_live=2 * DAY_S)
    for wrong in (DAY_S - 1, 0, -2, 2 * DAY_S + 1):
        with pytest.raises(Refused, match="OTSParameterInvalid"):
            create_index(table, "i", ("k", KEYWORD), time_to_live=wrong)
    create_index(table, "i", ("k", KEYWORD), time_to_live=DAY_S)
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        update(table, time_to_live=2 * DAY_S + 1)
    update(table, time_to_live=2 * DAY_S)
    for members in ({"allow_update": True}, {"time_to_live": DAY_S}, {"max_versions": 2}):
        options = table_messages.TableOptions(**members)
        with pytest.raises(Refused, match="OTSParameterInvalid"):
            table.service.call("UpdateTable", table_name="t", table_options=options)
    update(table, time_to_live=DAY_S)
    options = table_messages.TableOptions(time_to_live=DAY_S)
    table.service.call("UpdateTable", table_name="t", table_options=options)


def test_a_table_with_updates_has_no_index_with_a_time_to_live(table: Searches) -> None:
    table.create(("k", KEYWORD))
    with pytest.raises(Refused, match="allow_update"):
        update(table, time_to_live=DAY_S)
    with pytest.raises(Refused, match="allow_update"):
        create_index(table, "j", ("k", KEYWORD), time_to_live=DAY_S)
    options = table_messages.TableOptions(time_to_live=DAY_S)
    with pytest.raises(Refused, match="OTSParameterInvalid"):
        table.service.call("UpdateTable", table_name="t", table_options=options)
