"""Conversion of table definitions to CreateTable and UpdateTimeToLive requests.

A definition is a CreateTable request or a DescribeTable answer in JSON, a CloudFormation template (JSON), or a
Terraform state. Members that CreateTable has are used. Others (backups, replicas, alarms) are ignored, as a seed is for
tests. Sources: AWS::DynamoDB::Table (CloudFormation template reference); aws_dynamodb_table (Terraform AWS provider),
format version 4 of the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

# Definitions of tables


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
        for inner in document:
            yield from tables_of(inner)
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


def _of_properties(members: Mapping[str, Any]) -> SeedTable:
    """Return a table from members named as in CreateTable."""
    if not isinstance(members.get("TableName"), str) or "KeySchema" not in members:
        raise NoDefinition("a table needs a TableName (a string) and a KeySchema")
    summary = members.get("BillingModeSummary", {})
    mode = (
        members.get("BillingMode")
        or summary.get("BillingMode")
        or ("PROVISIONED" if "ProvisionedThroughput" in members else _ON_DEMAND)
    )
    request = {name: members[name] for name in _MEMBERS if members.get(name)} | {"BillingMode": mode}
    if mode != _ON_DEMAND and "ProvisionedThroughput" in members:
        request["ProvisionedThroughput"] = _throughput(members["ProvisionedThroughput"])
    for name in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
        if members.get(name):
            request[name] = [_index(index, mode) for index in members[name]]
    stream = members.get("StreamSpecification") or {}
    if stream.get("StreamViewType"):
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": stream["StreamViewType"]}
    expiry = members.get("TimeToLiveSpecification") or {}
    return SeedTable(request, expiry.get("AttributeName", "") if expiry.get("Enabled", True) else "")


def _index(members: Mapping[str, Any], mode: str) -> dict[str, Any]:
    index = {name: members[name] for name in _INDEX_MEMBERS if name in members}
    if mode != _ON_DEMAND and "ProvisionedThroughput" in members:
        index["ProvisionedThroughput"] = _throughput(members["ProvisionedThroughput"])
    return index


def _throughput(members: Mapping[str, Any]) -> dict[str, int]:
    # Templates may have numbers as strings. Descriptions have further members.
    return {name: int(members[name]) for name in ("ReadCapacityUnits", "WriteCapacityUnits")}


def _of_terraform(attributes: Mapping[str, Any]) -> SeedTable:
    on_demand = attributes.get("billing_mode") == _ON_DEMAND

    def units(owner: Mapping[str, Any]) -> dict[str, Any]:
        if on_demand:
            return {}
        counts = {"ReadCapacityUnits": owner["read_capacity"], "WriteCapacityUnits": owner["write_capacity"]}
        return {"ProvisionedThroughput": counts}

    def index(owner: Mapping[str, Any], partition: str) -> dict[str, Any]:
        projection: dict[str, Any] = {"ProjectionType": owner.get("projection_type") or "ALL"}
        if owner.get("non_key_attributes"):
            projection["NonKeyAttributes"] = sorted(owner["non_key_attributes"])
        schema = _key_schema(partition, owner.get("range_key"))
        return {"IndexName": owner["name"], "KeySchema": schema, "Projection": projection}

    table: dict[str, Any] = {
        "TableName": attributes["name"],
        "KeySchema": _key_schema(attributes["hash_key"], attributes.get("range_key")),
        "AttributeDefinitions": [
            {"AttributeName": block["name"], "AttributeType": block["type"]}
            for block in attributes.get("attribute", ())
        ],
        "BillingMode": _ON_DEMAND if on_demand else "PROVISIONED",
        **units(attributes),
        "LocalSecondaryIndexes": [
            index(block, attributes["hash_key"]) for block in attributes.get("local_secondary_index") or ()
        ],
        "GlobalSecondaryIndexes": [
            index(block, block["hash_key"]) | units(block)
            for block in attributes.get("global_secondary_index") or ()
        ],
        "Tags": [{"Key": key, "Value": value} for key, value in (attributes.get("tags") or {}).items()],
    }
    if attributes.get("stream_enabled"):
        table["StreamSpecification"] = {"StreamViewType": attributes["stream_view_type"]}
    for block in attributes.get("ttl") or ():
        table["TimeToLiveSpecification"] = {
            "AttributeName": block.get("attribute_name", ""),
            "Enabled": bool(block.get("enabled") and block.get("attribute_name")),
        }
    return _of_properties(table)


def _key_schema(partition: str, sort: str | None) -> list[dict[str, str]]:
    keys = [{"AttributeName": partition, "KeyType": "HASH"}]
    return keys + ([{"AttributeName": sort, "KeyType": "RANGE"}] if sort else [])
