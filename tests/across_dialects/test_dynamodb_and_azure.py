"""Data written by one dialect, read and changed by the other, through their official SDKs on one live server.

Source: docs/architecture.md section 7. The dialects here are DynamoDB and Azure Table. `view` and key spellings have
tests beside each adapter.
"""

from __future__ import annotations

import datetime
import math
import re
import uuid
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.data.tables import EdmType, EntityProperty, TableClient, UpdateMode
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.live_azure import LiveAzure
from tests.support.live_dynamodb import Live
from tests.support.running import Running

GUID = uuid.UUID("c9da6455-213d-42c9-9a79-3e9149a57833")
MOMENT = datetime.datetime(2024, 2, 29, 12, 34, 56, 789000, tzinfo=datetime.UTC)


class Both:
    """One server, seen by boto3 and by azure-data-tables."""

    def __init__(self, url: str) -> None:
        self.dynamodb = Live(url).client
        self.azure = LiveAzure(url).service
        self._live = Live(url)

    def item(self, table: str, **key: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.dynamodb.get_item(TableName=table, Key=key)["Item"]
        return found

    def azure_table(self, name: str) -> TableClient:
        return self.azure.get_table_client(name)

    def create(self, *keys: str, name: str = "things") -> TableClient:
        """A table that DynamoDB makes, as Azure's client of it."""
        self._live.create(*keys, name=name)
        return self.azure_table(name)


@pytest.fixture
def both(server: Running) -> Both:
    return Both(server.url)


KEY = {"PartitionKey": {"S": "p"}, "RowKey": {"S": "r"}}
AZURE_VALUES: dict[str, tuple[Any, dict[str, Any]]] = {
    # property: (what Azure wrote, what DynamoDB reads)
    "text": ("Grüße", {"S": "Grüße"}),
    "blank": ("", {"S": ""}),
    "small": (-5, {"N": "-5"}),
    "big": (EntityProperty(2**63 - 1, EdmType.INT64), {"N": str(2**63 - 1)}),
    "ratio": (0.1, {"N": "0.1"}),
    "whole": (2.0, {"N": "2"}),
    "exact": (1234567890123456768.0, {"N": "1234567890123456768"}),
    "huge": (1e300, {"S": "1e+300"}),  # beyond DynamoDB's numbers, so shown as text
    "infinite": (math.inf, {"S": "inf"}),
    "yes": (True, {"BOOL": True}),
    "data": (b"\x00\xff", {"B": b"\x00\xff"}),
    "guid": (GUID, {"S": str(GUID)}),
    "moment": (MOMENT, {"S": "2024-02-29T12:34:56.7890000Z"}),
}


def azure_entity() -> dict[str, Any]:
    return {"PartitionKey": "p", "RowKey": "r", **{name: value for name, (value, _) in AZURE_VALUES.items()}}


def made_by_azure(both: Both, name: str = "people") -> TableClient:
    table = both.azure.create_table(name)
    table.create_entity(azure_entity())
    return table


def test_dynamodb_reads_every_kind_that_azure_writes(both: Both) -> None:
    made_by_azure(both)
    item = both.item("people", **KEY)
    numbers = {name: seen for name, (_, seen) in AZURE_VALUES.items() if name not in ("huge", "infinite")}
    assert {name: item[name] for name in numbers} == numbers
    for name, number in (("huge", 1e300), ("infinite", math.inf)):
        assert float(item[name]["S"]) == number
    assert set(item) == {*AZURE_VALUES, *KEY}  # Timestamp is no attribute elsewhere


def test_a_table_of_azure_is_described_by_dynamodb(both: Both) -> None:
    made_by_azure(both)
    described = both.dynamodb.describe_table(TableName="people")["Table"]
    assert [(key["AttributeName"], key["KeyType"]) for key in described["KeySchema"]] == [
        ("PartitionKey", "HASH"),
        ("RowKey", "RANGE"),
    ]
    assert both.dynamodb.list_tables()["TableNames"] == ["people"]


def test_dynamodb_writes_back_what_it_read_and_azures_kinds_stay(both: Both) -> None:
    table = made_by_azure(both)
    before = table.get_entity("p", "r")
    both.dynamodb.put_item(TableName="people", Item=both.item("people", **KEY))
    after = table.get_entity("p", "r")
    assert dict(after) == dict(before) == azure_entity()
    assert after.metadata["etag"] != before.metadata["etag"]


def test_an_update_of_dynamodb_touches_only_what_it_names(both: Both) -> None:
    table = made_by_azure(both)
    both.dynamodb.update_item(
        TableName="people",
        Key=KEY,
        UpdateExpression="SET added = :list ADD small :one REMOVE blank",
        ExpressionAttributeValues={":list": {"L": [{"N": "1"}]}, ":one": {"N": "1"}},
    )
    expected = azure_entity() | {"small": -4, "added": '{"L":[{"N":"1"}]}'}
    del expected["blank"]
    assert dict(table.get_entity("p", "r")) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "guid = :guid AND begins_with(guid, :start)",
        "moment BETWEEN :from AND :to",
        "ratio = :ratio AND big > :ratio AND whole = :two",
        "attribute_type(small, :number) AND attribute_type(guid, :string)",
        "size(guid) = :size",
    ],
)
def test_dynamodb_conditions_see_what_dynamodb_reads(both: Both, condition: str) -> None:
    made_by_azure(both)
    values = {
        ":guid": {"S": str(GUID)},
        ":start": {"S": "c9da"},
        ":from": {"S": "2024-02-29"},
        ":to": {"S": "2024-03"},
        ":ratio": {"N": "0.1"},
        ":two": {"N": "2.0"},
        ":number": {"S": "N"},
        ":string": {"S": "S"},
        ":size": {"N": "36"},
    }
    used = {name: values[name] for name in set(re.findall(r":\w+", condition))}
    update = {
        "TableName": "people",
        "Key": KEY,
        "UpdateExpression": "REMOVE absent",
        "ExpressionAttributeValues": used,
    }
    both.dynamodb.update_item(ConditionExpression=condition, **update)
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        both.dynamodb.update_item(ConditionExpression=f"NOT ({condition})", **update)


def test_an_optimistic_lock_of_each_holds_for_the_other(both: Both) -> None:
    table = made_by_azure(both)
    mine = table.get_entity("p", "r")
    both.dynamodb.update_item(
        TableName="people",
        Key=KEY,
        UpdateExpression="SET ratio = :new",
        ConditionExpression="ratio = :old",
        ExpressionAttributeValues={":new": {"N": "0.2"}, ":old": {"N": "0.1"}},
    )
    with pytest.raises(ResourceModifiedError):
        table.update_entity(mine, etag=mine.metadata["etag"], match_condition=MatchConditions.IfNotModified)
    assert isinstance(table.get_entity("p", "r")["ratio"], float)


# The other way round

DYNAMODB_VALUES: dict[str, tuple[dict[str, Any], Any]] = {
    # attribute: (what DynamoDB wrote, what Azure reads)
    "text": ({"S": "Grüße"}, "Grüße"),
    "small": ({"N": "5"}, 5),
    "whole": ({"N": "5.00"}, 5),
    "big": ({"N": "5000000000"}, EntityProperty(5000000000, EdmType.INT64)),
    "ratio": ({"N": "0.1"}, 0.1),
    "exact": ({"N": "0.1234567890123456789"}, "0.1234567890123456789"),
    "long": ({"N": "12345678901234567890123456789012345678"}, "12345678901234567890123456789012345678"),
    "yes": ({"BOOL": False}, False),
    "data": ({"B": b"\x00\xff"}, b"\x00\xff"),
    "listed": ({"L": [{"N": "1"}, {"S": "a"}, {"NULL": True}]}, '{"L":[{"N":"1"},{"S":"a"},{"NULL":true}]}'),
    "mapped": ({"M": {"a": {"BOOL": True}}}, '{"M":{"a":{"BOOL":true}}}'),
    "texts": ({"SS": ["a", "b"]}, '{"SS":["a","b"]}'),
    "numbers": ({"NS": ["1", "2"]}, '{"NS":["1","2"]}'),
    "blobs": ({"BS": [b"\x00", b"\x01"]}, '{"BS":["AA==","AQ=="]}'),
    "my-attr": ({"S": "spelled"}, "spelled"),
}
SPELLED = {"my-attr": "my_x002D_attr"}


def dynamodb_item(**key: dict[str, Any]) -> dict[str, Any]:
    return {**key, **{name: value for name, (value, _) in DYNAMODB_VALUES.items()}}


def test_azure_reads_every_kind_that_dynamodb_writes(both: Both) -> None:
    table = both.create("pk:S", "sk:S")
    both.dynamodb.put_item(TableName="things", Item=dynamodb_item(pk={"S": "USER#1"}, sk={"S": "a/b"}))
    entity = dict(table.get_entity("USER#1", "a/b"))
    seen = {SPELLED.get(name, name): value for name, (_, value) in DYNAMODB_VALUES.items()}
    assert entity == {"PartitionKey": "USER#1", "RowKey": "a/b", **seen}


@pytest.mark.parametrize("mode", [UpdateMode.REPLACE, UpdateMode.MERGE])
def test_azure_writes_back_what_it_read_and_dynamodbs_kinds_stay(both: Both, mode: UpdateMode) -> None:
    table = both.create("pk:S", "sk:S")
    item = dynamodb_item(pk={"S": "USER#1"}, sk={"S": "a/b"})
    both.dynamodb.put_item(TableName="things", Item=item)
    table.update_entity(table.get_entity("USER#1", "a/b"), mode=mode)
    expected = {**item, "whole": {"N": "5"}}
    found = both.item("things", pk={"S": "USER#1"}, sk={"S": "a/b"})
    for name in ("texts", "numbers", "blobs"):
        (members,) = found[name].values()
        members.sort()
    assert found == expected


def test_azure_filters_see_what_azure_reads(both: Both) -> None:
    table = both.create("pk:S", "sk:N")
    both.dynamodb.put_item(TableName="things", Item=dynamodb_item(pk={"S": "p"}, sk={"N": "10"}))
    for expression in (
        "small eq 5 and whole eq 5 and big eq 5000000000L",
        "ratio eq 0.1 and exact eq '0.1234567890123456789'",
        "yes eq false and data eq X'00ff'",
        'texts eq \'{"SS":["a","b"]}\'',
        "my_x002D_attr eq 'spelled'",
        "PartitionKey eq 'p' and RowKey eq '10'",
        "PartitionKey eq 'p' and RowKey lt '2'",
    ):
        assert len(list(table.query_entities(expression))) == 1, expression
        assert list(table.query_entities(f"not ({expression})")) == []


@pytest.mark.parametrize(
    ("schema", "key", "shown"),
    [
        (("id:N",), {"id": {"N": "-1.5"}}, ("-1.5", "")),
        (("id:B",), {"id": {"B": b"\x00\xff"}}, ("00ff", "")),
        (("id:S", "at:N"), {"id": {"S": "it's"}, "at": {"N": "1E+2"}}, ("it's", "100")),
        (("id:S", "at:S"), {"id": {"S": "\x01\x7f"}, "at": {"S": "k" * 1024}}, ("\x01\x7f", "k" * 1024)),
        (("id:S",), {"id": {"S": "字" * 680}}, ("字" * 680, "")),
    ],
)
def test_keys_of_dynamodb_are_addressable_in_azure(
    both: Both, schema: tuple[str, ...], key: dict[str, Any], shown: tuple[str, str]
) -> None:
    table = both.create(*schema)
    both.dynamodb.put_item(TableName="things", Item={**key, "n": {"N": "1"}})
    assert table.get_entity(*shown)["n"] == 1
    table.update_entity({"PartitionKey": shown[0], "RowKey": shown[1], "m": "x"}, mode=UpdateMode.MERGE)
    assert both.item("things", **key)["m"] == {"S": "x"}
    table.delete_entity(*shown)
    assert "Item" not in both.dynamodb.get_item(TableName="things", Key=key)


def test_tables_with_names_that_azure_lacks_are_listed_under_another_name(both: Both) -> None:
    for name in ("my-table", "Things", "things", "a" * 255):
        both.create("id:S", name=name)
    names = [table.name for table in both.azure.list_tables()]
    assert len({name.lower() for name in names}) == 4
    assert "Things" in names
    for name in names:
        both.azure_table(name).create_entity({"PartitionKey": "x", "RowKey": ""})
    for name in ("my-table", "Things", "things", "a" * 255):
        assert both.dynamodb.scan(TableName=name)["Count"] == 1


def test_a_transaction_of_each_is_one_for_the_other(both: Both) -> None:
    table = both.azure.create_table("people")
    table.submit_transaction([("create", {"PartitionKey": "p", "RowKey": str(row)}) for row in range(3)])
    assert both.dynamodb.scan(TableName="people")["Count"] == 3
    both.dynamodb.transact_write_items(
        TransactItems=[
            {"Delete": {"TableName": "people", "Key": {"PartitionKey": {"S": "p"}, "RowKey": {"S": "0"}}}},
            {"Put": {"TableName": "people", "Item": {"PartitionKey": {"S": "p"}, "RowKey": {"S": "9"}}}},
        ]
    )
    assert [entity["RowKey"] for entity in table.list_entities()] == ["1", "2", "9"]


_leaf = st.one_of(
    st.text('aé"🙂', max_size=4).map(lambda text: {"S": text}),
    st.integers(-(10**20), 10**20).map(lambda number: {"N": str(number)}),
    st.decimals(-1000, 1000, places=4).map(lambda number: {"N": format(number, "f")}),
    st.booleans().map(lambda truth: {"BOOL": truth}),
    st.binary(max_size=4).map(lambda data: {"B": data}),
)
_attribute = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(lambda members: {"L": members}),
        st.dictionaries(st.text("ab-", min_size=1, max_size=2), inner, max_size=2).map(
            lambda members: {"M": members}
        ),
    ),
    max_leaves=4,
)


@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.dictionaries(st.text("ab-.1", min_size=1, max_size=3), _attribute, min_size=1, max_size=5))
def test_a_round_trip_through_azure_changes_nothing_of_an_item(
    both: Both, attributes: dict[str, Any]
) -> None:
    try:
        table = both.create("id:S", name="trips")
    except ClientError:
        table = both.azure_table("trips")
    both.dynamodb.put_item(TableName="trips", Item={"id": {"S": "x"}, **attributes})
    before = both.item("trips", id={"S": "x"})
    for mode in (UpdateMode.MERGE, UpdateMode.REPLACE):
        table.update_entity(table.get_entity("x", ""), mode=mode)
        assert both.item("trips", id={"S": "x"}) == before


@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "d"]),
        st.one_of(
            st.text("aé", max_size=3),
            st.integers(-(2**31), 2**31 - 1),
            st.floats(allow_nan=False),
            st.integers(-(2**63), 2**63 - 1).map(lambda number: EntityProperty(number, EdmType.INT64)),
            st.uuids(),
            st.binary(max_size=3),
            st.booleans(),
            st.datetimes(datetime.datetime(1601, 1, 1), timezones=st.just(datetime.UTC)),
        ),
        min_size=1,
    )
)
def test_a_round_trip_through_dynamodb_changes_nothing_of_an_entity(
    both: Both, properties: dict[str, Any]
) -> None:
    table = both.azure.create_table_if_not_exists("trips")
    entity = {"PartitionKey": "p", "RowKey": "r", **properties}
    table.upsert_entity(entity, mode=UpdateMode.REPLACE)
    both.dynamodb.put_item(TableName="trips", Item=both.item("trips", **KEY))
    assert dict(table.get_entity("p", "r")) == entity
