"""Behaviour of every endpoint of a cloud's API, on each server available for tests (transfer/endpoints/endpoint.py).

Values are compared by kind and value, including -0.0 and NaN.
"""

from __future__ import annotations

import json
from functools import partial

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tablegate.adapters.azuretable.keys import check_new_key
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model.tables.tables import ExpiryRule, Rules
from tablegate.gateway.model.values.rows import Cell, Row
from tablegate.gateway.model.values.values import text
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.errors import TableAbsent
from tests.support.examples import examples
from tests.support.running import Running
from tests.transfer.endpoints.conftest import open_dynamodb, open_table_store
from tests.transfer.endpoints.faulty_proxy import Answer, Asked, faulty_proxy
from tests.transfer.endpoints.places import (
    KEYS,
    SCALARS,
    SCHEMAS,
    Place,
    int64,
    key_of,
    numbered_key,
    numbered_rows,
    read_all,
    row_of,
    same,
    versioned_row,
)
from tests.transfer.support import tables


def test_a_value_of_every_kind_comes_back_as_it_was(place: Place) -> None:
    endpoint = place.new_table()
    schema = SCHEMAS[place.service]
    values = {name: value for name, value in SCALARS[place.service].items() if name not in place.lacks}
    row = row_of(schema, numbered_key(place.service, 1), values)
    assert endpoint.write([row]) == []
    [scanned] = read_all(endpoint)
    assert same(scanned) == same(row)
    [got] = endpoint.get([key_of(row, schema)])
    assert got is not None and same(got) == same(row)
    assert scanned.position == got.position == row.position


def test_keys_of_odd_characters_and_of_the_greatest_size(place: Place) -> None:
    endpoint = place.new_table()
    schema = SCHEMAS[place.service]
    rows = [row_of(schema, key, {"label": text(str(n))}) for n, key in enumerate(KEYS[place.service])]
    rows = [row for row in rows if f"key {row.latest['label'].data}" not in place.lacks]
    assert endpoint.write(rows) == []
    assert {row.position: same(row) for row in read_all(endpoint)} == {
        row.position: same(row) for row in rows
    }
    got = endpoint.get([key_of(row, schema) for row in rows])
    assert [same(row) for row in got if row is not None] == [same(row) for row in rows]
    endpoint.delete([key_of(row, schema) for row in rows])
    assert read_all(endpoint) == []


# Rows, and characters in each, that are a little more than a page: 1 MB, 1,000 entities, 4 MB.
MORE_THAN_A_PAGE = {
    Service.DYNAMODB: (300, 4000),
    Service.AZURE_TABLE: (1020, 10),
    Service.TABLE_STORE: (300, 16_000),
}


def test_pages_and_segments_have_every_row_once_and_go_on_after_each_page(place: Place) -> None:
    endpoint = place.new_table()
    rows = numbered_rows(place.service, *MORE_THAN_A_PAGE[place.service])
    assert endpoint.write(rows) == []
    for wanted in (1, 5):
        segments = endpoint.segments(wanted)
        assert json.loads(json.dumps(segments)) == segments
        by_segment = [list(endpoint.scan(segment)) for segment in segments]
        found = [row.position for pages in by_segment for page in pages for row in page.rows]
        assert len(found) == len(rows)
        assert set(found) == {row.position for row in rows}
        for segment, pages in zip(segments, by_segment, strict=True):
            assert [page.resume is None for page in pages] == [False] * (len(pages) - 1) + [True]
            assert wanted > 1 or len(pages) > 1
            for number, page in enumerate(pages[:-1], start=1):
                resume = json.loads(json.dumps(page.resume))
                rest = [row.position for later in pages[number:] for row in later.rows]
                other = place.open_table(endpoint.describe().name, 20)  # as another process has it
                assert [row.position for later in other.scan(segment, resume) for row in later.rows] == rest
                other.close()


def test_a_server_that_does_not_divide_scans_is_read_once(ours: Running) -> None:
    """DynamoDB Local ignores Segment and TotalSegments ("DynamoDB local usage notes", developer guide)."""

    def script(asked: Asked) -> Answer:
        request = json.loads(asked.body)
        request.pop("Segment", None)
        request.pop("TotalSegments", None)
        return asked.forward(json.dumps(request).encode())

    place = Place("undivided", Service.DYNAMODB, partial(open_dynamodb, ours.url))
    rows = numbered_rows(Service.DYNAMODB, 50)
    whole = place.new_table()
    whole.write(rows)
    with faulty_proxy(ours.url, script) as url:
        endpoint = open_dynamodb(url, whole.describe().name)
        assert endpoint.segments(4) == [{"segment": 0, "of": 1}]
        assert len(read_all(endpoint, 4)) == len(rows)


def test_rows_replace_and_the_last_of_a_key_stays(place: Place) -> None:
    endpoint = place.new_table()
    schema, key = SCHEMAS[place.service], numbered_key(place.service, 1)
    endpoint.write([row_of(schema, key, {"old": text("x"), "both": text("1")})])
    endpoint.write([row_of(schema, key, {"both": text("2")}), row_of(schema, key, {"both": text("3")})])
    [row] = read_all(endpoint)
    assert same(row) == same(row_of(schema, key, {"both": text("3")}))


def test_gets_are_in_order_and_absent_rows_none(place: Place) -> None:
    endpoint = place.new_table()
    schema = SCHEMAS[place.service]
    rows = numbered_rows(place.service, 130)
    endpoint.write(rows)
    keys = [key_of(row, schema) for row in [*reversed(rows), rows[0]]]
    absent = key_of(numbered_rows(place.service, 1, first=5000)[0], schema)
    got = endpoint.get([absent, *keys])
    assert got[0] is None
    assert [row and row.position for row in got[1:]] == [key.position for key in keys]


def test_present_and_absent_rows_can_be_deleted(place: Place) -> None:
    endpoint = place.new_table()
    schema = SCHEMAS[place.service]
    rows = numbered_rows(place.service, 150)
    endpoint.write(rows[10:])
    endpoint.delete([key_of(row, schema) for row in rows[:140]])
    assert {row.position for row in read_all(endpoint)} == {row.position for row in rows[140:]}


def test_a_refused_row_is_named_and_all_others_are_written(place: Place) -> None:
    endpoint = place.new_table()
    rows = numbered_rows(place.service, 40)
    too_large = 2_500_000 if place.service is Service.TABLE_STORE else 500_000
    bad = row_of(SCHEMAS[place.service], numbered_key(place.service, 17), {"pad": text("x" * too_large)})
    rejects = endpoint.write([bad if row.position == bad.position else row for row in rows])
    assert [reject.row.position for reject in rejects] == [bad.position]
    assert rejects[0].code and rejects[0].reason
    found = {row.position for row in read_all(endpoint)}
    assert found == {row.position for row in rows} - {bad.position}


def test_an_existing_table_is_not_changed(place: Place) -> None:
    endpoint = place.new_table()
    endpoint.write(numbered_rows(place.service, 3))
    definition = endpoint.describe()
    assert definition.service is place.service
    assert definition.key_schema == SCHEMAS[place.service]
    assert endpoint.create(definition) == []
    assert len(read_all(endpoint)) == 3


def test_an_absent_table_is_absent_and_a_new_one_listed(place: Place) -> None:
    absent = place.open_table("nowhere", 20)
    with pytest.raises(TableAbsent):
        absent.describe()
    with pytest.raises(TableAbsent):
        absent.write(numbered_rows(place.service, 1))
    name = place.new_table().describe().name
    assert name in absent.list_tables()
    assert "nowhere" not in absent.list_tables()


def test_an_empty_table_has_one_empty_page_at_least(place: Place) -> None:
    endpoint = place.new_table()
    assert read_all(endpoint, 4) == []
    assert endpoint.write([]) == [] and endpoint.get([]) == []


def test_versions_and_times_of_cells_in_table_store(ours: Running) -> None:
    place = Place("versions", Service.TABLE_STORE, partial(open_table_store, ours.url))
    endpoint = place.new_table(rules=Rules(max_versions=3, stamped=True))
    schema = SCHEMAS[Service.TABLE_STORE]
    cells = {
        "several": (Cell(int64(3), 1_700_000_000_002), Cell(text("2"), 1_700_000_000_001), Cell(int64(1), 1)),
        "one": (Cell(text(""), 1_600_000_000_000),),
    }
    row = versioned_row(schema, numbered_key(Service.TABLE_STORE, 1), cells)
    assert endpoint.write([row]) == []
    [found] = read_all(endpoint)
    assert {name: found.cells[name] for name in cells} == cells
    [got] = endpoint.get([key_of(row, schema)])
    assert got is not None and {name: got.cells[name] for name in cells} == cells


def test_a_definition_without_a_counterpart_is_reported(our_place: Place) -> None:
    other = (
        Rules(expiry=ExpiryRule(attribute="ttl"))
        if our_place.service is Service.TABLE_STORE
        else Rules(expiry=ExpiryRule(age_ms=86_400_000), max_versions=3)
    )
    name = f"said{our_place.name}"
    endpoint = our_place.open_table(name, 20)
    notes = endpoint.create(Definition(name, our_place.service, SCHEMAS[our_place.service], rules=other))
    expected = {Service.DYNAMODB: 2, Service.AZURE_TABLE: 2, Service.TABLE_STORE: 1}
    assert len(notes) == expected[our_place.service]


@given(data=st.data())
@examples(25, suppress_health_check=list(HealthCheck))
def test_any_rows_come_back_as_they_were(our_place: Place, data: st.DataObject) -> None:
    rules = Rules(max_versions=3, stamped=True) if our_place.service is Service.TABLE_STORE else Rules()
    definition = Definition("any", our_place.service, SCHEMAS[our_place.service], rules=rules)
    drawn = data.draw(st.lists(tables.rows(definition), max_size=6, unique_by=lambda row: row.position))
    rows = [row for row in drawn if is_legal(definition, row)]
    endpoint = our_place.kept_table(definition)
    assert endpoint.write(rows) == []
    found = {row.position: row for row in read_all(endpoint)}
    assert {at: same(row) for at, row in found.items()} == {row.position: same(row) for row in rows}
    if rules.stamped:
        names = definition.key_schema.names
        for row in rows:
            cells = {name: repr(versions) for name, versions in row.cells.items() if name not in names}
            got = found[row.position].cells
            assert {name: repr(got[name]) for name in got if name not in names} == cells
    endpoint.delete([key_of(row, definition.key_schema) for row in rows])


def is_legal(definition: Definition, row: Row) -> bool:
    """True if a service's own clients can write a row with these names and keys."""
    names = definition.key_schema.names
    if definition.service is Service.AZURE_TABLE:
        try:
            check_new_key(*(row.latest[name].data for name in names))
        except ServiceError:
            return False
    return all(tables.is_name_in(definition, name) for name in row.latest if name not in names)
