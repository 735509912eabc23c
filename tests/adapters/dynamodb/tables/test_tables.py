"""CreateTable, DescribeTable, ListTables, DeleteTable, and how tables that other dialects made are described."""

from __future__ import annotations

import re

import pytest

from tablegate.adapters.dynamodb.tables.table_definitions import describe
from tablegate.adapters.dynamodb.wire.arns import key_arn
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.model.commands.table_commands import CreateTable, NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tests.adapters.dynamodb.client import signed

KMS = "arn:aws:kms:us-east-1:000000000000:"
OWN_KEY = key_arn(Caller("any", "000000000000", "us-east-1", ""), "alias/aws/dynamodb")
INVALID = "One or more parameter values were invalid: "
UNITS = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 3}
INDEX = {"KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}}


def definitions(**types: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def keys(*names: str) -> list[dict[str, str]]:
    """HASH and RANGE elements; a star marks HASH: "a*", "b"."""
    return [
        {"AttributeName": name.rstrip("*"), "KeyType": "HASH" if name.endswith("*") else "RANGE"}
        for name in names
    ]


def with_index(**more):
    return {
        "AttributeDefinitions": definitions(pk="S", g="S"),
        "GlobalSecondaryIndexes": [{"IndexName": "by-g", **INDEX, **more}],
    }


# CreateTable and DescribeTable


def test_a_table_on_demand_from_creation_to_its_description(service):
    at = service.clock.ms / 1000
    created = service.table()
    described = service.described()
    assert created["TableStatus"] == "CREATING"
    assert described["TableStatus"] == "ACTIVE"
    assert "WarmThroughput" not in created
    assert created["BillingModeSummary"] == {"BillingMode": "PAY_PER_REQUEST"}
    assert described == {
        "AttributeDefinitions": definitions(pk="S"),
        "TableName": "orders",
        "KeySchema": keys("pk*"),
        "TableStatus": "ACTIVE",
        "CreationDateTime": at,
        "ProvisionedThroughput": {
            "NumberOfDecreasesToday": 0,
            "ReadCapacityUnits": 0,
            "WriteCapacityUnits": 0,
        },
        "TableSizeBytes": 0,
        "ItemCount": 0,
        "TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/orders",
        "TableId": created["TableId"],
        "BillingModeSummary": {
            "BillingMode": "PAY_PER_REQUEST",
            "LastUpdateToPayPerRequestDateTime": at,
        },
        "TableThroughputModeSummary": {
            "TableThroughputMode": "PAY_PER_REQUEST",
            "LastUpdateToPayPerRequestDateTime": at,
        },
        "DeletionProtectionEnabled": False,
        "WarmThroughput": {"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 4000, "Status": "ACTIVE"},
    }


def test_a_provisioned_table_has_its_units_and_no_billing_summary(service):
    service.table(BillingMode=None, ProvisionedThroughput=UNITS)
    described = service.described()
    assert described["ProvisionedThroughput"] == {"NumberOfDecreasesToday": 0, **UNITS}
    assert "BillingModeSummary" not in described
    # ack-api-quirks 134: a provisioned table is as warm as its units.
    assert described["WarmThroughput"] == {
        "ReadUnitsPerSecond": 5,
        "WriteUnitsPerSecond": 3,
        "Status": "ACTIVE",
    }


def test_a_table_id_is_a_uuid_that_a_new_table_of_the_name_does_not_have(service):
    first = service.table()["TableId"]
    assert re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", first)
    assert service.described()["TableId"] == first
    service.call("DeleteTable", {"TableName": "orders"})
    assert service.table()["TableId"] != first


def test_account_and_region_of_the_signature_are_those_of_the_arns(service):
    service.table(**with_index())
    headers = signed("111122223333", "cn-north-1")
    table = service.call("DescribeTable", {"TableName": "orders"}, **headers)["Table"]
    assert table["TableArn"] == "arn:aws-cn:dynamodb:cn-north-1:111122223333:table/orders"
    assert table["GlobalSecondaryIndexes"][0]["IndexArn"] == table["TableArn"] + "/index/by-g"


def test_a_table_name_may_be_an_arn(service):
    arn = service.table()["TableArn"]
    assert service.described(arn)["TableName"] == "orders"
    text = "Requested resource not found: Table: others not found"
    missing = arn.replace("orders", "others")
    assert service.error("DescribeTable", {"TableName": missing}) == ("ResourceNotFoundException", text)


def test_a_taken_name_is_refused(service):
    service.table()
    assert service.error("CreateTable", _simple()) == (
        "ResourceInUseException",
        "Table already exists: orders",
    )


def _simple(**more):
    return {
        "TableName": "orders",
        "AttributeDefinitions": definitions(pk="S"),
        "KeySchema": keys("pk*"),
        "BillingMode": "PAY_PER_REQUEST",
        **more,
    }


def test_indexes_are_described_as_they_were_defined(service):
    local = {
        "IndexName": "by-l",
        "KeySchema": keys("pk*", "l"),
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    included = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["z", "a"]}
    several = {"IndexName": "by-g", "KeySchema": keys("g*", "h*", "l", "sk"), "Projection": included}
    created = service.table(
        AttributeDefinitions=definitions(sk="N", pk="S", l="B", h="S", g="N"),
        KeySchema=keys("pk*", "sk"),
        LocalSecondaryIndexes=[local],
        GlobalSecondaryIndexes=[several],
    )
    assert created["GlobalSecondaryIndexes"][0]["IndexStatus"] == "CREATING"
    assert "Backfilling" not in created["GlobalSecondaryIndexes"][0]
    assert "WarmThroughput" not in created["GlobalSecondaryIndexes"][0]
    described = service.described()
    # ack-api-quirks 125: these two lists come sorted by name.
    assert described["AttributeDefinitions"] == definitions(g="N", h="S", l="B", pk="S", sk="N")
    arn = described["TableArn"]
    counts = {"IndexSizeBytes": 0, "ItemCount": 0}
    assert described["LocalSecondaryIndexes"] == [{**local, **counts, "IndexArn": f"{arn}/index/by-l"}]
    assert described["GlobalSecondaryIndexes"] == [
        {
            "IndexName": "by-g",
            "KeySchema": several["KeySchema"],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a", "z"]},
            "IndexStatus": "ACTIVE",
            "ProvisionedThroughput": {
                "NumberOfDecreasesToday": 0,
                "ReadCapacityUnits": 0,
                "WriteCapacityUnits": 0,
            },
            **counts,
            "IndexArn": f"{arn}/index/by-g",
            "WarmThroughput": {"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 4000, "Status": "ACTIVE"},
        }
    ]


def test_settings_read_back(service):
    service.table(
        TableClass="STANDARD_INFREQUENT_ACCESS",
        DeletionProtectionEnabled=True,
        SSESpecification={"Enabled": True},
        OnDemandThroughput={"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 5},
        WarmThroughput={"ReadUnitsPerSecond": 13000, "WriteUnitsPerSecond": 4000},
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )
    described = service.described()
    assert described["TableClassSummary"] == {"TableClass": "STANDARD_INFREQUENT_ACCESS"}
    assert described["DeletionProtectionEnabled"] is True
    assert described["SSEDescription"] == {
        "Status": "ENABLED",
        "SSEType": "KMS",
        "KMSMasterKeyArn": OWN_KEY,
    }
    assert described["OnDemandThroughput"] == {"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 5}
    assert described["WarmThroughput"]["ReadUnitsPerSecond"] == 13000
    assert described["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    assert described["LatestStreamLabel"] == "2023-11-14T22:13:20.123"
    assert described["LatestStreamArn"] == f"{described['TableArn']}/stream/2023-11-14T22:13:20.123"


def test_the_key_of_an_alias_has_an_id():
    """LocalStack's snapshot test_dynamodb_create_table_with_partial_sse_specification (January 2024): key/<uuid>."""
    here, there = Caller("a", "1", "r-1", "x"), Caller("a", "1", "r-2", "x")
    arn = key_arn(here, "alias/mine")
    assert re.fullmatch(
        "arn:aws:kms:r-1:1:key/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", arn
    )
    assert key_arn(here, arn) == arn == key_arn(here, "alias/mine")
    assert len({arn[-36:], key_arn(here, "alias/other")[-36:], key_arn(there, "alias/mine")[-36:]}) == 3


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"Enabled": False}, None),
        ({}, None),
        ({"SSEType": "KMS"}, OWN_KEY),
        # With SSEType, since KMSMasterKeyId alone is refused (TABLE-031, live service, October 2026).
        ({"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "alias/aws/dynamodb"}, OWN_KEY),
        ({"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": KMS + "alias/aws/dynamodb"}, OWN_KEY),
        ({"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "1234"}, KMS + "key/1234"),
        ({"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "arn:x"}, "arn:x"),
    ],
)
def test_encryption_shows_only_a_key_of_the_customer(service, given, shown):
    service.table(SSESpecification=given)
    described = service.described().get("SSEDescription")
    assert (described and described["KMSMasterKeyArn"]) == shown


@pytest.mark.parametrize("spec", [{"StreamEnabled": False}, None])
def test_a_table_without_a_stream_has_no_stream_members(service, spec):
    service.table(**({"StreamSpecification": spec} if spec else {}))
    assert not [name for name in service.described() if "Stream" in name]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"BillingMode": "PAY_PER_REQUEST", "ProvisionedThroughput": UNITS}, "Neither ReadCapacityUnits nor"),
        ({"BillingMode": "PROVISIONED"}, "ReadCapacityUnits and WriteCapacityUnits must both be specified"),
        (
            with_index(ProvisionedThroughput=UNITS),
            "ProvisionedThroughput should not be specified for index: by-g",
        ),
        ({"OnDemandThroughput": {"MaxReadRequestUnits": 0}}, "outside of valid range"),
        (
            {"WarmThroughput": {"ReadUnitsPerSecond": 11999}},
            "Requested ReadUnitsPerSecond for WarmThroughput for table is lower than initial throughput for OnDemand",
        ),
        (
            {
                "BillingMode": "PROVISIONED",
                "ProvisionedThroughput": UNITS,
                "WarmThroughput": {"WriteUnitsPerSecond": 2},
            },
            "Requested WriteUnitsPerSecond for WarmThroughput for table is lower than WriteCapacityUnits of Provisioned",
        ),
        ({"StreamSpecification": {"StreamEnabled": True}}, "UpdateViewType"),
        ({"StreamSpecification": {"StreamEnabled": False, "StreamViewType": "NEW_IMAGE"}}, ""),
        ({"ResourcePolicy": "{}"}, "Missing required field Statement"),
        ({"Tags": [{"Key": "aws:x", "Value": ""}]}, ""),
        ({"Tags": [{"Key": str(number), "Value": ""} for number in range(51)]}, ""),
    ],
)
def test_a_definition_that_contradicts_itself_makes_no_table(service, more, text):
    code, told = service.error("CreateTable", _simple(**more))
    assert code == "ValidationException"
    assert text in told
    assert service.error("DescribeTable", {"TableName": "orders"})[0] == "ResourceNotFoundException"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"AttributeDefinitions": definitions(pk="S") * 2}, "Attribute Name is duplicated: pk"),
        (
            {**with_index(Projection={}), "AttributeDefinitions": definitions(pk="S", g="S", x="S")},
            INVALID
            + "Some AttributeDefinitions are not used. AttributeDefinitions: [pk, g, x], keys used: [pk, g]",
        ),
        (
            {**with_index(), "AttributeDefinitions": definitions(pk="S")},
            INVALID
            + "Some index key attributes are not defined in AttributeDefinitions. Keys: [g], AttributeDefinitions: [pk]",
        ),
        (
            with_index(KeySchema=keys("g*", "pk", "g*")),
            INVALID + "All HASH key attributes must precede RANGE key attributes in the KeySchema",
        ),
        (
            with_index(KeySchema=keys("g*", "pk*", "g")),
            "The KeySchema contains multiple key attributes with the same name",
        ),
        (
            {**with_index(KeySchema=keys("pk*", "pk*")), "AttributeDefinitions": definitions(pk="S", g="S")},
            "The KeySchema contains multiple key attributes with the same name",
        ),
        (
            with_index(KeySchema=keys("g*") * 4 + keys("pk*")),
            INVALID + "The KeySchema exceeds the maximum allowed number of HASH key attributes",
        ),
        (
            with_index(Projection={"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x", "x"]}),
            INVALID + "Duplicate element in NonKeyAttributes: x",
        ),
    ],
)
def test_definitions_of_keys_are_refused_in_the_services_words(service, more, text):
    # ack-api-quirks 123, 126, 127.
    assert service.error("CreateTable", _simple(**more)) == ("ValidationException", text)


def test_a_provisioned_index_needs_units(service):
    given = _simple(BillingMode="PROVISIONED", ProvisionedThroughput=UNITS, **with_index())
    assert "by-g" in service.error("CreateTable", given)[1]


# States


def test_a_slow_control_plane_shows_every_state_and_obeys_it(delayed):
    service = delayed
    service.table(**with_index())
    assert service.described()["TableStatus"] == "CREATING"
    assert service.described()["GlobalSecondaryIndexes"][0]["IndexStatus"] == "CREATING"
    assert service.described()["WarmThroughput"]["Status"] == "UPDATING"
    in_use = "Attempt to change a resource which is still in use: Table is being"
    expected = ("ResourceInUseException", f"{in_use} created: orders")
    assert service.error("DeleteTable", {"TableName": "orders"}) == expected
    assert service.error("CreateTable", _simple()) == expected
    service.clock.ms += 10_000
    assert service.described()["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE"
    service.update(StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    assert service.described()["TableStatus"] == "UPDATING"
    service.clock.ms += 10_000
    service.call("DeleteTable", {"TableName": "orders"})
    assert service.described()["TableStatus"] == "DELETING"
    assert service.call("ListTables")["TableNames"] == ["orders"]
    assert service.error("DeleteTable", {"TableName": "orders"})[1] == f"{in_use} deleted: orders"
    # ack-api-quirks 005: creating the name again is refused in these words in every state but CREATING.
    assert service.error("CreateTable", _simple())[1] == "Table already exists: orders"
    service.clock.ms += 10_000
    assert service.error("DescribeTable", {"TableName": "orders"})[0] == "ResourceNotFoundException"
    assert service.call("ListTables")["TableNames"] == []
    service.table()


# ListTables


def test_tables_are_listed_in_byte_order_page_by_page(service):
    for name in ("bbb", "aaa", "Zzz", ".dot"):
        service.table(name)
    assert service.call("ListTables") == {"TableNames": [".dot", "Zzz", "aaa", "bbb"]}
    first = service.call("ListTables", {"Limit": 2})
    assert first == {"TableNames": [".dot", "Zzz"], "LastEvaluatedTableName": "Zzz"}
    rest = service.call("ListTables", {"Limit": 2, "ExclusiveStartTableName": "Zzz"})
    assert rest == {"TableNames": ["aaa", "bbb"]}
    assert service.call("ListTables", {"ExclusiveStartTableName": "aab"})["TableNames"] == ["bbb"]


# DeleteTable


def test_the_answer_to_a_deletion_is_short(service):
    service.table(**with_index(), StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    deleted = service.call("DeleteTable", {"TableName": "orders"})["TableDescription"]
    assert deleted["TableStatus"] == "DELETING"
    for name in ("TableName", "TableArn", "TableId", "ItemCount", "TableSizeBytes", "BillingModeSummary"):
        assert name in deleted
    for name in ("KeySchema", "AttributeDefinitions", "GlobalSecondaryIndexes", "CreationDateTime"):
        assert name not in deleted
    text = "Requested resource not found: Table: orders not found"
    assert service.error("DeleteTable", {"TableName": "orders"}) == ("ResourceNotFoundException", text)


def test_a_protected_table_cannot_be_deleted(service):
    service.table(DeletionProtectionEnabled=True)
    code, text = service.error("DeleteTable", {"TableName": "orders"})
    assert (code, text[:26]) == ("ValidationException", "Resource cannot be deleted")
    service.update(DeletionProtectionEnabled=False)
    service.call("DeleteTable", {"TableName": "orders"})
    assert service.last.status == 200


# Tables of other dialects


def made(service, dialect: str, schema: KeySchema, indexes: tuple[NewIndex, ...] = ()):
    command = CreateTable(dialect, "shared", "foreign", schema, indexes, properties={dialect: {"x": 1}})
    [table] = service.gateway.engine.run([command])
    return table


def test_a_table_of_azure_has_two_text_keys(service):
    text = Kind.TEXT
    made(service, "azuretable", KeySchema((KeyColumn("PartitionKey", text),), (KeyColumn("RowKey", text),)))
    described = service.described("foreign")
    assert described["KeySchema"] == keys("PartitionKey*", "RowKey")
    assert described["AttributeDefinitions"] == definitions(PartitionKey="S", RowKey="S")
    assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert described["TableStatus"] == "ACTIVE"
    assert "foreign" in service.call("ListTables")["TableNames"]


def test_integer_keys_look_like_numbers_and_many_columns_like_one_text(service):
    def column(name, kind):
        return KeyColumn(name, kind)

    schema = KeySchema(
        (column("pk", Kind.INT64),),
        (column("a", Kind.TEXT), column("b", Kind.INT64), column("c", Kind.BYTES)),
    )
    index = NewIndex(
        "by-v", KeySchema((column("v", Kind.INT64),), (column("w", Kind.TEXT),)), IndexProjection.KEYS
    )
    table = made(service, "tablestore", schema, (index,))
    described = service.described("foreign")
    assert described["KeySchema"] == keys("pk*", "a/b/c")
    assert described["AttributeDefinitions"] == definitions(**{"a/b/c": "S", "pk": "N", "v": "N", "w": "S"})
    assert described["GlobalSecondaryIndexes"][0]["KeySchema"] == keys("v*", "w")
    assert describe(table, None, _caller(service), service.clock.ms)["ItemCount"] == 0


def _caller(service):
    from tablegate.adapters.dynamodb.wire.signature_claims import Caller

    return Caller("a", "000000000000", "us-east-1", "shared")


def test_a_changed_foreign_table_keeps_settings_of_its_dialect(service):
    text = Kind.TEXT
    made(service, "azuretable", KeySchema((KeyColumn("PartitionKey", text),), (KeyColumn("RowKey", text),)))
    service.update("foreign", DeletionProtectionEnabled=True)
    assert service.described("foreign")["DeletionProtectionEnabled"] is True
    table = service.gateway.engine.cached_table("shared", "foreign")
    assert table.properties["azuretable"] == {"x": 1}
