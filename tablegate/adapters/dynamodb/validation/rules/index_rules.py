"""Rules of CreateTable and UpdateTable about one index or its keys.

The rules are those of ack-api-quirks (live service, October 2026) and dynalite (validations/createTable.js and
updateTable.js). table_rules.py has rules about indexes together with the table.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation

# One index


Input = dict[str, Any]


def check_new(data: Input, definitions: list[str]) -> None:
    """Check the indexes of a new table. Raises ServiceError. `definitions`: the names in AttributeDefinitions."""
    names: set[str] = set()
    if "LocalSecondaryIndexes" in data:
        _local(data, definitions, names)
    if "GlobalSecondaryIndexes" in data:
        _global(data, definitions, names)
    for index in data.get("VectorIndexes", ()):
        _new_name(index["IndexName"], names)


def check_updates(data: Input) -> None:
    """Check the changes of secondary indexes in an UpdateTable. Raises ServiceError."""
    names: set[str] = set()
    for update in data.get("GlobalSecondaryIndexUpdates", ()):
        if not update:
            raise refused("index-update-empty")
        if len(update) > 1:
            raise refused("index-update-several")
        change = update.get("Update") or update.get("Create") or update.get("Delete") or {}
        name = change["IndexName"]
        if name in names:
            raise refused("index-update-twice", index=name)
        names.add(name)
        if "Create" in update:
            _check_added(update["Create"], data)


def _check_added(index: Input, data: Input) -> None:
    if "AttributeDefinitions" not in data:
        raise refused("definitions-missing", index=index["IndexName"])
    definitions = [definition["AttributeName"] for definition in data["AttributeDefinitions"]]
    check_keys(index, definitions, multiple=True)
    check_projection(index)


def check_projection(index: Input) -> None:
    """Check the projection of an index. Raises ServiceError."""
    projection = index["Projection"]
    kind, names = projection.get("ProjectionType"), projection.get("NonKeyAttributes")
    if kind is None:
        raise refused("projection-null")
    if names is not None and kind != "INCLUDE":
        raise refused("projection-names", type=kind)
    if kind != "INCLUDE":
        return
    if names is None:
        raise refused("projection-no-names")
    for name, count in Counter(names).items():
        if count > 1:
            raise refused("projection-twice", name=name)


def _local(data: Input, definitions: list[str], names: set[str]) -> None:
    indexes = data["LocalSecondaryIndexes"]
    if not indexes:
        raise refused("local-empty")
    if len(data["KeySchema"]) != 2:
        raise refused("local-without-range")
    table_hash = data["KeySchema"][0]["AttributeName"]
    for index in indexes:
        name, schema = index["IndexName"], index["KeySchema"]
        check_keys(index, definitions, multiple=False)
        if len(schema) != 2:
            raise refused("local-index-range", index=name)
        hash_name = schema[0]["AttributeName"]
        if hash_name != table_hash:
            raise refused("local-index-hash", index=name, found=hash_name, wanted=table_hash)
        check_projection(index)
        _new_name(name, names)
    if len(indexes) > limits.LOCAL_INDEXES:
        raise refused("local-count", limit=limits.LOCAL_INDEXES)


def _global(data: Input, definitions: list[str], names: set[str]) -> None:
    indexes = data["GlobalSecondaryIndexes"]
    if not indexes:
        raise refused("global-empty")
    on_demand = data.get("BillingMode") == "PAY_PER_REQUEST"
    for index in indexes:
        name = index["IndexName"]
        check_keys(index, definitions, multiple=True)
        check_projection(index)
        if on_demand and "ProvisionedThroughput" in index:
            raise refused("index-units-on-demand", index=name)
        if not on_demand:
            _check_units(index)
        _new_name(name, names)
    if len(indexes) > limits.GLOBAL_INDEXES:
        raise refused("global-count", limit=limits.GLOBAL_INDEXES)


def _check_units(index: Input) -> None:
    """Check the throughput of a global index of a provisioned table."""
    name, units = index["IndexName"], index.get("ProvisionedThroughput")
    if units is None:
        raise refused("index-units-missing", index=name)
    for member in ("ReadCapacityUnits", "WriteCapacityUnits"):
        if units[member] > limits.THROUGHPUT_UNITS:
            raise refused("index-units-bounds", value=units[member], name=member, index=name)


def check_keys(index: Input, definitions: list[str], multiple: bool) -> None:
    """Check the key schema of an index. A global index may have up to four HASH and then up to four RANGE elements."""
    schema = index["KeySchema"]
    keys = [element["AttributeName"] for element in schema]
    check_defined(keys, definitions)
    if len(schema) <= 2 and not (multiple and len(schema) == 2 and schema[1]["KeyType"] == "HASH"):
        check_pair(schema)
        return
    roles = [element["KeyType"] for element in schema]
    if roles[0] != "HASH":
        raise refused("first-not-hash")
    if roles != sorted(roles):  # HASH sorts before RANGE
        raise refused("hash-after-range")
    for role, count in Counter(roles).items():
        if count > limits.INDEX_KEY_ATTRIBUTES_PER_ROLE:
            raise refused("too-many-of-role", role=role)
    if len(set(keys)) != len(keys):
        raise refused("same-key-among-many")


def check_defined(keys: list[str], definitions: list[str]) -> None:
    """Raise ServiceError for a key without a definition."""
    if any(key not in definitions for key in keys):
        raise refused("keys-undefined", keys=", ".join(keys), definitions=", ".join(definitions))


def check_pair(schema: list[Input]) -> None:
    """Check a key schema of one or two elements: HASH, then RANGE."""
    if len(schema) > 1 and schema[0]["AttributeName"] == schema[1]["AttributeName"]:
        raise refused("same-key-twice")
    if schema[0]["KeyType"] != "HASH":
        raise refused("first-not-hash")
    if len(schema) > 1 and schema[1]["KeyType"] != "RANGE":
        raise refused("second-not-range")


def _new_name(name: str, names: set[str]) -> None:
    if name in names:
        raise refused("index-name-twice", index=name)
    names.add(name)


def refused(rule: str, **facts: Any) -> ServiceError:
    """Return the error of a rule of tables or indexes."""
    return validation(messages.bare(rule, **facts))
