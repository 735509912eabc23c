"""UpdateTimeToLive and DescribeTimeToLive (test/alternator/test_ttl.py; ack-api-quirks 144, 146)."""

from __future__ import annotations

from tablegate.gateway.model.tables.tables import ExpiryRule


def switch(service, enabled: bool, attribute: str = "expires"):
    given = {
        "TableName": "orders",
        "TimeToLiveSpecification": {"Enabled": enabled, "AttributeName": attribute},
    }
    return service.call("UpdateTimeToLive", given)


def text_of(service, enabled: bool, attribute: str = "expires") -> str:
    answer = switch(service, enabled, attribute)
    assert answer["__type"].endswith("#ValidationException")
    return answer["message"]


def described(service):
    return service.call("DescribeTimeToLive", {"TableName": "orders"})["TimeToLiveDescription"]


def test_time_to_live_is_off_at_first_and_can_be_switched_on_and_off(service):
    service.table()
    assert described(service) == {"TimeToLiveStatus": "DISABLED"}
    spec = {"Enabled": True, "AttributeName": "expires"}
    assert switch(service, True) == {"TimeToLiveSpecification": spec}
    assert described(service) == {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"}
    assert service.gateway.engine.cached_table("shared", "orders").rules.expiry == ExpiryRule("expires")
    switch(service, False)
    assert described(service) == {"TimeToLiveStatus": "DISABLED"}


def test_update_time_to_live_is_not_idempotent(service):
    service.table()
    assert text_of(service, False) == "TimeToLive is already disabled"
    switch(service, True)
    assert text_of(service, True) == "TimeToLive is already enabled"


def test_a_second_attribute_is_rejected_with_the_name_of_the_first(service):
    service.table()
    switch(service, True)
    told = "TimeToLive is active on a different AttributeName: current AttributeName is expires"
    assert text_of(service, True, "other") == told
    assert text_of(service, False, "other") == told


def test_a_missing_table_is_named(service):
    for operation in ("UpdateTimeToLive", "DescribeTimeToLive"):
        given = {"TableName": "orders", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "a"}}
        assert service.error(operation, given) == (
            "ResourceNotFoundException",
            "Requested resource not found: Table: orders not found",
        )


def test_a_delayed_control_plane_requires_half_an_hour_between_changes(delayed):
    """ack-api-quirks, TABLE-143: refused after 1,811 seconds, accepted after 1,872."""
    service = delayed
    service.table()
    text = "Cannot describe time to live while table is in CREATING state: Current table state is CREATING"
    assert service.error("DescribeTimeToLive", {"TableName": "orders"}) == ("ValidationException", text)
    service.clock.ms += 10_000
    switch(service, True)
    assert service.described()["TableStatus"] == "ACTIVE"
    service.clock.ms += 1_860_000 - 1
    assert text_of(service, False) == "Time to live has been modified multiple times within a fixed interval"
    service.clock.ms += 1
    switch(service, False)
    assert service.last.status == 200
