"""UpdateTable: single changes, the description during a change, and refusals.

Texts and orders: dynalite test/updateTable.js, test/alternator/test_gsi_updatetable.py, ack-api-quirks.
"""

from __future__ import annotations

import pytest

from tablegate.adapters.dynamodb.wire import limits
from tests.adapters.dynamodb.tables.test_tables import INDEX, INVALID, UNITS, definitions, keys, with_index

BY_G = {"IndexName": "by-g", **INDEX}
VALIDATION = "ValidationException"


def units(read: int, write: int) -> dict[str, int]:
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


def refused(service, **given) -> tuple[str, str]:
    return service.error("UpdateTable", {"TableName": "orders", **given})


def adding(index=BY_G, **types: str):
    return {
        "AttributeDefinitions": definitions(**(types or {"g": "S"})),
        "GlobalSecondaryIndexUpdates": [{"Create": index}],
    }


def dropping(name: str = "by-g"):
    return {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": name}}]}


def index_of(description, name: str = "by-g"):
    return next(index for index in description["GlobalSecondaryIndexes"] if index["IndexName"] == name)


def indexes_are_filled(service) -> None:
    while service.gateway.engine.background.next_batch():
        pass


# Throughput


def test_a_change_of_units_shows_the_former_ones_until_it_is_done(service):
    service.table(BillingMode=None, ProvisionedThroughput=units(10, 5))
    began = service.clock.ms / 1000
    answer = service.update(ProvisionedThroughput=units(30, 15))
    assert answer["TableStatus"] == "UPDATING"
    assert answer["ProvisionedThroughput"] == {
        **units(10, 5),
        "NumberOfDecreasesToday": 0,
        "LastIncreaseDateTime": began,
    }
    after = service.described()["ProvisionedThroughput"]
    assert after["LastIncreaseDateTime"] > began
    assert (after["ReadCapacityUnits"], after["WriteCapacityUnits"]) == (30, 15)


def test_the_moment_of_an_increase_is_not_touched_by_a_decrease(service):
    service.table(BillingMode=None, ProvisionedThroughput=units(10, 5))
    service.update(ProvisionedThroughput=units(30, 15))
    increased = service.described()["ProvisionedThroughput"]["LastIncreaseDateTime"]
    service.clock.ms += 1000
    shown = service.update(ProvisionedThroughput=units(10, 5))["ProvisionedThroughput"]
    assert shown["LastIncreaseDateTime"] == increased
    decreased = service.described()["ProvisionedThroughput"]
    assert decreased["LastIncreaseDateTime"] == increased
    assert decreased["LastDecreaseDateTime"] > shown["LastDecreaseDateTime"]


def test_decreases_are_counted_by_day(service):
    service.table(BillingMode=None, ProvisionedThroughput=units(10, 5))
    assert (
        service.update(ProvisionedThroughput=units(9, 9))["ProvisionedThroughput"]["NumberOfDecreasesToday"]
        == 0
    )
    both = service.described()["ProvisionedThroughput"]
    assert both["NumberOfDecreasesToday"] == 1
    assert {"LastIncreaseDateTime", "LastDecreaseDateTime"} <= both.keys()
    service.update(ProvisionedThroughput=units(8, 8))
    assert service.described()["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 2
    service.clock.ms += 86_400_000
    assert service.described()["ProvisionedThroughput"]["NumberOfDecreasesToday"] == 0


def test_a_table_stays_as_warm_as_it_ever_was(service):
    service.table(BillingMode=None, ProvisionedThroughput=units(10, 5))
    service.update(ProvisionedThroughput=units(1, 50))
    warm = service.described()["WarmThroughput"]
    assert (warm["ReadUnitsPerSecond"], warm["WriteUnitsPerSecond"]) == (10, 50)


def test_equal_units_are_no_change(service):
    service.table(BillingMode=None, ProvisionedThroughput=units(10, 5))
    text = (
        "The provisioned throughput for the table will not change. The requested value equals the current value. "
        "Current ReadCapacityUnits provisioned for the table: 10. Requested ReadCapacityUnits: 10. "
        "Current WriteCapacityUnits provisioned for the table: 5. Requested WriteCapacityUnits: 5. "
        "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
    )
    assert refused(service, ProvisionedThroughput=units(10, 5)) == (VALIDATION, text)
    assert refused(service, BillingMode="PROVISIONED", ProvisionedThroughput=units(10, 5)) == (
        VALIDATION,
        text,
    )


def test_units_do_not_go_with_on_demand(service):
    service.table()
    text = "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
    assert refused(service, ProvisionedThroughput=UNITS) == (VALIDATION, INVALID + text)


def test_a_table_made_on_demand_is_so_since_it_was_made(service, monkeypatch):
    """The time of creation, not of the request (test/alternator, test_describe_table_billing)."""
    monkeypatch.setattr(service.gateway.engine, "_now", lambda: (service.clock.ms + 3) * 1_000_000)
    service.table()
    described = service.described()
    since = described["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"]
    assert since == described["CreationDateTime"]


def test_a_table_goes_on_demand_and_back(service):
    provisioned_index = with_index(ProvisionedThroughput=units(2, 2))
    service.table(BillingMode=None, ProvisionedThroughput=UNITS, **provisioned_index)
    service.update(BillingMode="PAY_PER_REQUEST")
    described = service.described()
    assert described["BillingModeSummary"] == {
        "BillingMode": "PAY_PER_REQUEST",
        "LastUpdateToPayPerRequestDateTime": service.clock.ms / 1000,
    }
    for owner in (described, index_of(described)):
        assert owner["ProvisionedThroughput"]["ReadCapacityUnits"] == 0
        assert owner["WarmThroughput"]["ReadUnitsPerSecond"] == 12000
    text = "ProvisionedThroughput must be specified for index: by-g"
    assert refused(service, BillingMode="PROVISIONED", ProvisionedThroughput=UNITS) == (
        VALIDATION,
        INVALID + text,
    )
    update = {"Update": {"IndexName": "by-g", "ProvisionedThroughput": units(7, 7)}}
    service.update(
        BillingMode="PROVISIONED", ProvisionedThroughput=UNITS, GlobalSecondaryIndexUpdates=[update]
    )
    described = service.described()
    assert described["BillingModeSummary"]["BillingMode"] == "PROVISIONED"
    assert "LastUpdateToPayPerRequestDateTime" in described["BillingModeSummary"]
    assert index_of(described)["ProvisionedThroughput"]["ReadCapacityUnits"] == 7


def test_on_demand_again_is_accepted(service):
    service.table()
    assert service.update(BillingMode="PAY_PER_REQUEST")["TableStatus"] == "UPDATING"


def test_maxima_merge_and_minus_one_takes_one_away(service):
    service.table(OnDemandThroughput={"MaxReadRequestUnits": 10, "MaxWriteRequestUnits": 5})
    assert service.update(OnDemandThroughput={"MaxReadRequestUnits": 20})["TableStatus"] == "ACTIVE"
    assert service.described()["OnDemandThroughput"] == {"MaxReadRequestUnits": 20, "MaxWriteRequestUnits": 5}
    service.update(OnDemandThroughput={"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": -1})
    assert "OnDemandThroughput" not in service.described()
    for units_of_it in (0, -2):
        assert (
            "outside of valid range"
            in refused(service, OnDemandThroughput={"MaxReadRequestUnits": units_of_it})[1]
        )


def test_maxima_do_not_go_with_provisioned(service):
    service.table(BillingMode=None, ProvisionedThroughput=UNITS)
    text = "MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode is PROVISIONED"
    assert refused(service, OnDemandThroughput={"MaxReadRequestUnits": 9}) == (VALIDATION, INVALID + text)


def test_warm_throughput_rises_and_never_falls(service):
    service.table(**with_index())
    service.update(WarmThroughput={"ReadUnitsPerSecond": 12001})
    assert service.described()["WarmThroughput"] == {
        "ReadUnitsPerSecond": 12001,
        "WriteUnitsPerSecond": 4000,
        "Status": "ACTIVE",
    }
    lower = "lower than current WarmThroughput, decreasing WarmThroughput is not supported"
    assert lower in refused(service, WarmThroughput={"ReadUnitsPerSecond": 12000})[1]
    update = {"Update": {"IndexName": "by-g", "WarmThroughput": {"ReadUnitsPerSecond": 100}}}
    assert "for index by-g is lower" in refused(service, GlobalSecondaryIndexUpdates=[update])[1]


def test_an_index_has_units_of_its_own(service):
    service.table(
        BillingMode=None, ProvisionedThroughput=UNITS, **with_index(ProvisionedThroughput=units(2, 2))
    )
    update = {"Update": {"IndexName": "by-g", "ProvisionedThroughput": units(4, 2)}}
    answer = service.update(GlobalSecondaryIndexUpdates=[update])
    assert answer["TableStatus"] == "ACTIVE"
    assert index_of(answer)["IndexStatus"] == "UPDATING"
    assert index_of(answer)["ProvisionedThroughput"]["ReadCapacityUnits"] == 2
    assert index_of(service.described())["ProvisionedThroughput"]["ReadCapacityUnits"] == 4
    assert "for the index by-g will not change" in refused(service, GlobalSecondaryIndexUpdates=[update])[1]
    update["Update"]["IndexName"] = "nobody"
    code, text = refused(service, GlobalSecondaryIndexUpdates=[update])
    assert (code, text) == (
        "ResourceNotFoundException",
        "Requested resource not found: Index nobody for table orders",
    )
    update["Update"]["ProvisionedThroughput"] = units(limits.THROUGHPUT_UNITS + 1, 1)
    assert refused(service, GlobalSecondaryIndexUpdates=[update])[1].endswith("Action Blocked: IndexUpdate")


def test_an_index_of_a_table_on_demand_has_none(service):
    service.table(**with_index())
    update = {"Update": {"IndexName": "by-g", "ProvisionedThroughput": units(4, 2)}}
    assert (
        "can be to OnDemandThroughput, WarmThroughput"
        in refused(service, GlobalSecondaryIndexUpdates=[update])[1]
    )
    maxima = {"Update": {"IndexName": "by-g", "OnDemandThroughput": {"MaxReadRequestUnits": 50}}}
    service.update(GlobalSecondaryIndexUpdates=[maxima])
    assert index_of(service.described())["OnDemandThroughput"] == {"MaxReadRequestUnits": 50}


# Indexes


def test_a_new_index_is_created_filled_and_then_active(service):
    service.table()
    answer = service.update(**adding())
    assert answer["TableStatus"] == "UPDATING"
    assert (index_of(answer)["IndexStatus"], index_of(answer)["Backfilling"]) == ("CREATING", False)
    described = service.described()
    assert (index_of(described)["IndexStatus"], index_of(described)["Backfilling"]) == ("CREATING", True)
    assert described["AttributeDefinitions"] == definitions(g="S", pk="S")
    query = {
        "TableName": "orders",
        "IndexName": index_of(described)["IndexName"],
        "KeyConditionExpression": "g = :g",
        "ExpressionAttributeValues": {":g": {"S": "x"}},
    }
    words = f"Cannot read from backfilling global secondary index: {query['IndexName']}"
    assert service.error("Query", query) == ("ValidationException", words)
    indexes_are_filled(service)
    assert service.call("Query", query)["Count"] == 0
    described = index_of(service.described())
    assert described["IndexStatus"] == "ACTIVE"
    assert "Backfilling" not in described


def test_a_dropped_index_is_deleting_once_and_then_gone_with_its_attribute(service):
    service.table(**with_index())
    answer = service.update(**dropping())
    assert index_of(answer)["IndexStatus"] == "DELETING"
    described = service.described()
    assert "GlobalSecondaryIndexes" not in described
    assert described["AttributeDefinitions"] == definitions(pk="S")
    assert refused(service, **dropping())[0] == "ResourceNotFoundException"


def test_definitions_that_no_new_index_needs_are_passed_over(service):
    service.table()
    service.update(**adding(BY_G, g="S", spare="N"))
    assert service.described()["AttributeDefinitions"] == definitions(g="S", pk="S")


def test_an_index_of_many_attributes_may_come_later(service):
    service.table()
    types = {f"h{n}": "S" for n in range(4)} | {f"r{n}": "N" for n in range(4)}
    many = {**BY_G, "KeySchema": keys("h0*", "h1*", "h2*", "h3*", "r0", "r1", "r2", "r3")}
    service.update(**adding(many, **types))
    assert index_of(service.described())["KeySchema"] == many["KeySchema"]


@pytest.mark.parametrize(
    ("updates", "code"),
    [
        ([{"Create": BY_G}, {"Create": {**BY_G, "IndexName": "by-h"}}], "LimitExceededException"),
        ([{"Create": BY_G}, {"Delete": {"IndexName": "by-h"}}], "LimitExceededException"),
        ([{"Delete": {"IndexName": f"by-{n}"}} for n in range(6)], "LimitExceededException"),
        ([{"Delete": {"IndexName": "by-g"}}, {"Delete": {"IndexName": "by-g"}}], VALIDATION),
        ([{}], VALIDATION),
        ([], VALIDATION),
    ],
)
def test_one_index_is_made_or_dropped_at_a_time(service, updates, code):
    service.table()
    given = {"AttributeDefinitions": definitions(g="S"), "GlobalSecondaryIndexUpdates": updates}
    assert refused(service, **given)[0] == code


def test_no_index_is_made_while_another_is_being_filled(service):
    service.table()
    service.update(**adding())
    other = adding({**BY_G, "IndexName": "by-h", "KeySchema": keys("h*")}, h="S")
    assert refused(service, **other)[0] == "LimitExceededException"
    service.update(**dropping())  # but the one that is being filled may be dropped (ack-api-quirks 149)
    service.update(**other)
    indexes_are_filled(service)
    service.update(**adding())


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (adding(), "Attempting to create an index which already exists"),
        (adding({**BY_G, "IndexName": "by-l"}), "Attempting to create an index which already exists"),
        (
            adding({**BY_G, "IndexName": "by-h"}, g="N"),
            INVALID
            + "Attributes cannot be redefined. Please check that your attribute has the same type as previously "
            "defined. Existing schema: Schema:[SchemaElement: key{g:S:HASH}] "
            "New schema: Schema:[SchemaElement: key{g:N:HASH}]",
        ),
        (dropping("by-l"), "Cannot delete an index that is not a GlobalSecondaryIndex: by-l"),
    ],
)
def test_definitions_that_contradict_the_schema_are_refused(service, given, text):
    local = {"IndexName": "by-l", "KeySchema": keys("pk*", "g"), "Projection": {"ProjectionType": "ALL"}}
    service.table(
        KeySchema=keys("pk*", "sk"),
        LocalSecondaryIndexes=[local],
        GlobalSecondaryIndexes=[BY_G],
        AttributeDefinitions=definitions(pk="S", sk="S", g="S"),
    )
    assert refused(service, **given) == (VALIDATION, text)


def test_attributes_of_a_new_index_must_be_defined_in_the_call(service):
    service.table(**with_index())
    other = {**BY_G, "IndexName": "by-h"}
    without = {"GlobalSecondaryIndexUpdates": [{"Create": other}]}
    code, text = refused(service, **without)
    assert code == VALIDATION
    assert "AttributeDefinitions" in text
    code, text = refused(service, **without, AttributeDefinitions=definitions(x="S"))
    assert "Keys: [g], AttributeDefinitions: [x]" in text


def test_twenty_global_indexes_are_the_most(service):
    service.table()
    for number in range(limits.GLOBAL_INDEXES):
        service.update(**adding({**BY_G, "IndexName": f"by-{number}"}))
        indexes_are_filled(service)
    code, text = refused(service, **adding())
    assert (code, text) == (
        "LimitExceededException",
        "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of 20",
    )


def test_a_hundred_projected_attributes_are_the_most(service):
    service.table()

    def included(name: str, count: int):
        names = [f"a{n}" for n in range(count)]
        return {
            **BY_G,
            "IndexName": name,
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": names},
        }

    for number in range(5):
        service.update(**adding(included(f"by-{number}", 20)))
        indexes_are_filled(service)
    assert refused(service, **adding(included("one-more", 1)))[0] == "LimitExceededException"


def test_an_index_of_a_provisioned_table_needs_units(service):
    service.table(BillingMode=None, ProvisionedThroughput=UNITS)
    text = "Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: by-g"
    assert refused(service, **adding()) == (VALIDATION, INVALID + text)
    service.update(**adding({**BY_G, "ProvisionedThroughput": units(3, 4)}))
    assert index_of(service.described())["ProvisionedThroughput"]["WriteCapacityUnits"] == 4


# Streams, class, encryption


def test_a_stream_is_switched_on_off_and_on_anew(service):
    service.table()
    enabled = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    answer = service.update(StreamSpecification=enabled)
    assert answer["StreamSpecification"] == enabled
    assert answer["LatestStreamArn"] == service.described()["LatestStreamArn"]
    text = "Table already has an enabled stream: TableName: orders"
    assert refused(service, StreamSpecification=enabled) == (VALIDATION, text)
    service.update(StreamSpecification={"StreamEnabled": False})
    described = service.described()
    assert "StreamSpecification" not in described
    assert described["LatestStreamArn"] == answer["LatestStreamArn"]
    text = "Table has no stream to disable: TableName: orders"
    assert refused(service, StreamSpecification={"StreamEnabled": False}) == (VALIDATION, text)
    service.clock.ms += 1
    assert service.update(StreamSpecification=enabled)["LatestStreamArn"] != answer["LatestStreamArn"]


@pytest.mark.parametrize(
    "spec", [{"StreamEnabled": True}, {"StreamEnabled": False, "StreamViewType": "KEYS_ONLY"}]
)
def test_a_view_type_requires_an_enabled_stream_and_is_required_for_one(service, spec):
    service.table()
    code, text = refused(service, StreamSpecification=spec)
    assert (code, "UpdateViewType" in text) == (VALIDATION, True)


def test_the_class_is_shown_once_it_was_changed(service):
    service.table()
    service.update(TableClass="STANDARD")
    assert "TableClassSummary" not in service.described()
    service.update(TableClass="STANDARD_INFREQUENT_ACCESS")
    assert service.described()["TableClassSummary"] == {
        "TableClass": "STANDARD_INFREQUENT_ACCESS",
        "LastUpdateDateTime": service.clock.ms / 1000,
    }


def test_encryption_is_switched_on_and_off(service):
    service.table()
    assert (
        refused(service, SSESpecification={"Enabled": False})[1]
        == INVALID + "Table is already encrypted by default"
    )
    service.update(SSESpecification={"Enabled": True})
    assert service.described()["SSEDescription"]["SSEType"] == "KMS"
    key = service.described()["SSEDescription"]["KMSMasterKeyArn"]
    # LocalStack's snapshot test_dynamodb_create_table_with_partial_sse_specification, January 2024.
    assert service.update(SSESpecification={"Enabled": False})["SSEDescription"] == {
        "Status": "UPDATING",
        "SSEType": "KMS",
        "KMSMasterKeyArn": key,
    }
    assert "SSEDescription" not in service.described()


STREAM = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"DeletionProtectionEnabled": True, "StreamSpecification": STREAM},
            "DeletionProtection modification must be the only operation in the request",
        ),
        (
            {
                "DeletionProtectionEnabled": True,
                "SSESpecification": {"Enabled": True},
                "TableClass": "STANDARD",
            },
            "Server-Side Encryption modification must be the only operation in the request",
        ),
        (
            {"TableClass": "STANDARD", "BillingMode": "PAY_PER_REQUEST"},
            "TableClass modification must be the only operation in the request",
        ),
        (
            {"WarmThroughput": {"ReadUnitsPerSecond": 13000}, "StreamSpecification": STREAM},
            "WarmThroughput must be the only operation in the request",
        ),
        (
            {"WarmThroughput": {"ReadUnitsPerSecond": 13000}, **adding()},
            "Create global secondary index cannot be specified when updating WarmThroughput",
        ),
        (
            {"OnDemandThroughput": {"MaxReadRequestUnits": 9}, "StreamSpecification": STREAM},
            "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request",
        ),
        (
            {"ProvisionedThroughput": UNITS, "StreamSpecification": STREAM},
            "You cannot modify stream status while updating table IOPS",
        ),
        (
            {"ProvisionedThroughput": UNITS, **dropping()},
            "You cannot create or delete index while updating table IOPS",
        ),
        (
            {"StreamSpecification": STREAM, **adding()},
            "You cannot create or delete index while changing stream status",
        ),
        (
            {"GlobalSecondaryIndexUpdates": [], "BillingMode": "PAY_PER_REQUEST"},
            "List of GlobalSecondaryIndexUpdates is empty",
        ),
        (
            {"GlobalSecondaryIndexUpdates": [{"Create": BY_G, "Delete": {"IndexName": "xyz"}}]},
            "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object",
        ),
    ],
)
def test_an_update_changes_one_thing(service, given, text):
    # ack-api-quirks 160, 174, 359, 382. A refused request has no effect.
    service.table()
    before = service.described()
    assert refused(service, **given) == (VALIDATION, INVALID + text)
    assert service.described() == before


@pytest.mark.parametrize(
    "given",
    [
        {"BillingMode": "PAY_PER_REQUEST", "StreamSpecification": STREAM},
        {"BillingMode": "PAY_PER_REQUEST", "OnDemandThroughput": {"MaxReadRequestUnits": 9}},
        {"BillingMode": "PAY_PER_REQUEST", **adding()},
    ],
)
def test_only_the_billing_mode_can_change_with_another_setting(service, given):
    service.table()
    service.update(**given)


@pytest.mark.parametrize("given", [{}, {"AttributeDefinitions": definitions(pk="S")}])
def test_an_update_that_changes_nothing_is_refused(service, given):
    service.table()
    code, text = refused(service, **given)
    assert (code, text[:39]) == (VALIDATION, "At least one of ProvisionedThroughput, ")


def test_a_missing_table_is_named(service):
    assert refused(service, BillingMode="PAY_PER_REQUEST") == (
        "ResourceNotFoundException",
        "Requested resource not found: Table: orders not found",
    )
