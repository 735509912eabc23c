"""Conversion of table definitions to CreateTable and UpdateTimeToLive requests.

A definition is a CreateTable request or a DescribeTable answer in JSON, a CloudFormation template (JSON), or a
Terraform state. Members that CreateTable has are used. Others (backups, replicas, alarms) are ignored, as a seed is for
tests. Sources: AWS::DynamoDB::Table (CloudFormation template reference); aws_dynamodb_table (Terraform AWS provider),
format version 4 of the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_MEMBERS = ("TableName", "AttributeDefinitions", "KeySchema", "BillingMode", "Tags")
_INDEX_MEMBERS = ("IndexName", "KeySchema", "Projection")
_CLOUDFORMATION = frozenset({"AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable"})
_TERRAFORM = "aws_dynamodb_table"
_ON_DEMAND = "PAY_PER_REQUEST"


class SeedTable(NamedTuple):
    """The input of CreateTable, and the attribute with the expiry time. Empty if items do not expire."""

    request: dict[str, Any]
    time_to_live: str


class NoDefinition(ValueError):
    """The document defines no table. The text names the missing part."""


def tables_of(document: Any) -> Iterator[SeedTable]:
    """Yield the tables that a JSON document defines, in its order. Raises NoDefinition."""
    if isinstance(document, list):
        for each in document:
            yield from tables_of(each)
        return
    if not isinstance(document, dict):
        raise NoDefinition("not a JSON object")
    if isinstance(document.get("Resources"), dict):
        for name, resource in document["Resources"].items():
            if isinstance(resource, dict) and resource.get("Type") in _CLOUDFORMATION:
                yield _of_properties({"TableName": name, **resource.get("Properties", {})})
    elif isinstance(document.get("resources"), list):
        for resource in document["resources"]:
            if resource.get("type") == _TERRAFORM and resource.get("mode", "managed") == "managed":
                yield from (_of_terraform(instance["attributes"]) for instance in resource["instances"])
    else:
        yield _of_properties(document.get("Table", document))


def _of_properties(given: Mapping[str, Any]) -> SeedTable:
    """Return a table from members named as in CreateTable."""
    if not isinstance(given.get("TableName"), str) or "KeySchema" not in given:
        raise NoDefinition("a table needs a TableName (a string) and a KeySchema")
    summary = given.get("BillingModeSummary", {})
    mode = (
        given.get("BillingMode")
        or summary.get("BillingMode")
        or ("PROVISIONED" if "ProvisionedThroughput" in given else _ON_DEMAND)
    )
    request = {name: given[name] for name in _MEMBERS if given.get(name)} | {"BillingMode": mode}
    if mode != _ON_DEMAND and "ProvisionedThroughput" in given:
        request["ProvisionedThroughput"] = _throughput(given["ProvisionedThroughput"])
    for name in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
        if given.get(name):
            request[name] = [_index(each, mode) for each in given[name]]
    stream = given.get("StreamSpecification") or {}
    if stream.get("StreamViewType"):
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": stream["StreamViewType"]}
    expiry = given.get("TimeToLiveSpecification") or {}
    return SeedTable(request, expiry.get("AttributeName", "") if expiry.get("Enabled", True) else "")


def _index(given: Mapping[str, Any], mode: str) -> dict[str, Any]:
    made = {name: given[name] for name in _INDEX_MEMBERS if name in given}
    if mode != _ON_DEMAND and "ProvisionedThroughput" in given:
        made["ProvisionedThroughput"] = _throughput(given["ProvisionedThroughput"])
    return made


def _throughput(given: Mapping[str, Any]) -> dict[str, int]:
    # Templates may have numbers as strings. Descriptions have further members.
    return {name: int(given[name]) for name in ("ReadCapacityUnits", "WriteCapacityUnits")}


def _of_terraform(given: Mapping[str, Any]) -> SeedTable:
    on_demand = given.get("billing_mode") == _ON_DEMAND

    def units(of: Mapping[str, Any]) -> dict[str, Any]:
        if on_demand:
            return {}
        counts = {"ReadCapacityUnits": of["read_capacity"], "WriteCapacityUnits": of["write_capacity"]}
        return {"ProvisionedThroughput": counts}

    def index(of: Mapping[str, Any], partition: str) -> dict[str, Any]:
        projection: dict[str, Any] = {"ProjectionType": of.get("projection_type") or "ALL"}
        if of.get("non_key_attributes"):
            projection["NonKeyAttributes"] = sorted(of["non_key_attributes"])
        schema = _key_schema(partition, of.get("range_key"))
        return {"IndexName": of["name"], "KeySchema": schema, "Projection": projection}

    table: dict[str, Any] = {
        "TableName": given["name"],
        "KeySchema": _key_schema(given["hash_key"], given.get("range_key")),
        "AttributeDefinitions": [
            {"AttributeName": each["name"], "AttributeType": each["type"]}
            for each in given.get("attribute", ())
        ],
        "BillingMode": _ON_DEMAND if on_demand else "PROVISIONED",
        **units(given),
        "LocalSecondaryIndexes": [
            index(each, given["hash_key"]) for each in given.get("local_secondary_index") or ()
        ],
        "GlobalSecondaryIndexes": [
            index(each, each["hash_key"]) | units(each) for each in given.get("global_secondary_index") or ()
        ],
        "Tags": [{"Key": key, "Value": value} for key, value in (given.get("tags") or {}).items()],
    }
    if given.get("stream_enabled"):
        table["StreamSpecification"] = {"StreamViewType": given["stream_view_type"]}
    for each in given.get("ttl") or ():
        table["TimeToLiveSpecification"] = {
            "AttributeName": each.get("attribute_name", ""),
            "Enabled": bool(each.get("enabled") and each.get("attribute_name")),
        }
    return _of_properties(table)


def _key_schema(partition: str, sort: str | None) -> list[dict[str, str]]:
    keys = [{"AttributeName": partition, "KeyType": "HASH"}]
    return keys + ([{"AttributeName": sort, "KeyType": "RANGE"}] if sort else [])
