"""Rules about several members of CreateTable and UpdateTable, as far as they need no table.

They cover key schemas, index definitions and throughput, in the service's order of checks: first the rules about one
index or its keys, then those about the table with all its indexes. Sources: ack-api-quirks (live service, October 2026),
dynalite validations/createTable.js and updateTable.js. Handlers check rules that depend on the stored table, such as
missing indexes and unchanged throughput.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tablegate.adapters.dynamodb.tables.table_extensions import EXTENSIONS
from tablegate.adapters.dynamodb.wire import error_texts, limits
from tablegate.adapters.dynamodb.wire.errors import RuleContext, ServiceError, validation

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
    return validation(error_texts.bare(rule, **facts))


# Tables


def create_table(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for a CreateTable with members that exclude each other."""
    refuse_missing_capabilities(data)
    _resolve_billing_mode(data)
    _new_table(data)


# GlobalTableSourceArn is of a capability that no server has.
_OF_CAPABILITIES = (
    "GlobalTableSourceArn",
    "GlobalTableSettingsReplicationMode",
    "GlobalTableWitnessUpdates",
    "MultiRegionConsistency",
    "ReplicaUpdates",
    "VectorIndexOverride",
    "VectorIndexUpdates",
    "VectorIndexes",
)


def refuse_missing_capabilities(data: Input) -> None:
    """Raise ServiceError for a member of a capability that this server lacks.

    A table that only seems to be replicated, for example, would be worse.
    """
    for name in _OF_CAPABILITIES:
        if name in data and not any(name in extension.members for extension in EXTENSIONS):
            raise refused("unsupported-member", name=name)


def _resolve_billing_mode(data: Input) -> None:
    """Replace TableThroughputMode by BillingMode, which decides if both are there (ExtendDB/extenddb#320)."""
    mode = data.pop("TableThroughputMode", None)
    if mode is not None:
        data.setdefault("BillingMode", mode)


def import_table(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for an ImportTable with members that exclude each other."""
    if "InputFormatOptions" in data and data["InputFormat"] != "CSV":
        text = f"Unsupported InputFormatOptions for the given input format: {data['InputFormat']}."
        raise validation(f"{error_texts.INVALID_REQUEST}{text}")
    create_table(data["TableCreationParameters"], context)


def _new_table(data: Input) -> None:
    _throughput(data)
    definitions = [definition["AttributeName"] for definition in data["AttributeDefinitions"]]
    _defined_once(definitions)
    _table_keys(data, definitions)
    for extension in EXTENSIONS:
        extension.check_new_table(data, definitions)
    _definitions(data, definitions)
    check_new(data, definitions)
    _projected_total(data)
    _stream(data)
    _encryption(data)
    _on_demand(data)


def _encryption(data: Input) -> None:
    """Check the members of SSESpecification (ack-api-quirks 031, 036, 044, 437)."""
    specification = data.get("SSESpecification", {})
    for name in ("SSEType", "KMSMasterKeyId"):
        if specification.get("Enabled") is False and name in specification:
            raise refused("encryption-off-with-more", name=name)
    if specification.get("SSEType") == "AES256":
        raise refused("encryption-aes")
    if "KMSMasterKeyId" in specification and "SSEType" not in specification:
        raise refused("encryption-key-alone")


def update_table(data: Input, context: RuleContext) -> None:
    """Raise ServiceError for an UpdateTable with members that exclude each other."""
    normalize_update(data)
    refuse_missing_capabilities(data)
    if not changes(data):
        raise nothing_to_update(data)
    _updated_table(data)


def normalize_update(data: Input) -> None:
    """Replace the other name of the billing mode in an UpdateTable, and drop empty throughput with another change, which
    the service treats as absent (ack-api-quirks 456).
    """
    _resolve_billing_mode(data)
    for name in ("WarmThroughput", "OnDemandThroughput"):
        if data.get(name) == {} and len(changes(data)) > 1:
            del data[name]


def nothing_to_update(data: Mapping[str, Any]) -> ServiceError:
    """Return the error of an UpdateTable without a change.

    The service lists the possible changes without those in the request (ack-api-quirks 449).
    """
    consistency = "" if "MultiRegionConsistency" in data else "MultiRegionConsistency, "
    return refused("nothing-to-update", consistency=consistency)


def _updated_table(data: Input) -> None:
    for update in data.get("GlobalSecondaryIndexUpdates", ()):
        if update.get("Update", {}).get("WarmThroughput") == {}:
            raise refused("index-warm-empty", index=update["Update"]["IndexName"])
    _single_change(data)
    _encryption(data)
    _updated_throughput(data)
    if data.get("BillingMode") == "PAY_PER_REQUEST" and "ProvisionedThroughput" in data:
        raise refused("on-demand-update-with-units")
    check_updates(data)
    for extension in EXTENSIONS:
        extension.check_update(data)


def _updated_throughput(data: Input) -> None:
    if data.get("BillingMode") == "PROVISIONED" and "ProvisionedThroughput" not in data:
        raise refused("provisioned-update")
    _units_bounds(data.get("ProvisionedThroughput"))


_NO_CHANGE = ("TableName", "AttributeDefinitions")
# Changes that exclude all others, in the order in which the service names them (ack-api-quirks 382, 433).
_ALONE = {
    "SSESpecification": "Server-Side Encryption modification",
    "TableClass": "TableClass modification",
    "DeletionProtectionEnabled": "DeletionProtection modification",
}


def changes(data: Mapping[str, Any]) -> set[str]:
    """Return the members of an UpdateTable that change something."""
    return {name for name, value in data.items() if name not in _NO_CHANGE and value != []}


def _single_change(data: Input) -> None:
    """Check that an UpdateTable changes one thing: throughput (with its billing mode and indexes), the stream, or
    one setting.
    """
    changed = changes(data)
    for name, member in _ALONE.items():
        if name in changed and len(changed) > 1:
            raise refused("only-change", what=member)
    updates = data.get("GlobalSecondaryIndexUpdates")
    if updates == []:
        raise refused("index-updates-none")
    actions = {action for update in updates or () for action in update}
    others = changed - {"GlobalSecondaryIndexUpdates"}
    if "WarmThroughput" in changed and "Create" in actions:
        raise refused("index-and-warm")
    if "OnDemandThroughput" in changed and others - {"OnDemandThroughput", "BillingMode"}:
        raise refused("on-demand-and-more")
    if "WarmThroughput" in changed and len(others) > 1:
        raise refused("only-change", what="WarmThroughput")
    if "ProvisionedThroughput" in changed and "StreamSpecification" in changed:
        raise refused("stream-and-units")
    if actions & {"Create", "Delete"}:
        if "ProvisionedThroughput" in changed:
            raise refused("index-and-units")
        if "StreamSpecification" in changed:
            raise refused("index-and-stream")


def _throughput(data: Input) -> None:
    units = data.get("ProvisionedThroughput")
    if data.get("BillingMode") == "PAY_PER_REQUEST":
        if units is not None:
            raise refused("on-demand-with-units")
        return
    if units is None:
        raise refused("provisioned-without-units")
    _units_bounds(units)


def _units_bounds(units: Input | None) -> None:
    for name in ("ReadCapacityUnits", "WriteCapacityUnits"):
        if units is not None and units[name] > limits.THROUGHPUT_UNITS:
            raise refused("units-bounds", value=units[name], name=name)


# Keys


def _table_keys(data: Input, definitions: list[str]) -> None:
    schema = data["KeySchema"]
    keys = [element["AttributeName"] for element in schema]
    if len(keys) > len(definitions):
        raise refused("key-undefined")
    check_defined(keys, definitions)
    check_pair(schema)
    if (
        "LocalSecondaryIndexes" not in data
        and "GlobalSecondaryIndexes" not in data
        and not data.get("VectorIndexes")
        and len(keys) != len(definitions)
    ):
        raise refused("definitions-unused")


def _defined_once(definitions: list[str]) -> None:
    for name, count in Counter(definitions).items():
        if count > 1:
            raise refused("definition-twice", name=name)


def _definitions(data: Input, definitions: list[str]) -> None:
    """Check the keys of all indexes, and that each definition is used by a key.

    Precedes all other index rules (ack-api-quirks 127).
    """
    for name, multiple in (("LocalSecondaryIndexes", False), ("GlobalSecondaryIndexes", True)):
        for index in data.get(name, ()):
            check_keys(index, definitions, multiple)
    used = [element["AttributeName"] for element in data["KeySchema"]]
    for index in (*data.get("LocalSecondaryIndexes", ()), *data.get("GlobalSecondaryIndexes", ())):
        used += [element["AttributeName"] for element in index["KeySchema"]]
    for extension in EXTENSIONS:
        used += [name for name in extension.key_names(data) if name in definitions]
    if set(definitions) != set(used):
        keys = ", ".join(dict.fromkeys(used))
        raise refused("definitions-spare", definitions=", ".join(definitions), keys=keys)


def _projected_total(data: Input) -> None:
    total = 0
    for index in (*data.get("LocalSecondaryIndexes", ()), *data.get("GlobalSecondaryIndexes", ())):
        total += len(index["Projection"].get("NonKeyAttributes", ()))
    total += sum(extension.projected_number(data) for extension in EXTENSIONS)
    if total > limits.PROJECTED_NAMES_PER_TABLE:
        raise refused("projection-too-many", limit=limits.PROJECTED_NAMES_PER_TABLE)


# Other settings


def _stream(data: Input) -> None:
    stream = data.get("StreamSpecification")
    if stream is None:
        return
    if stream["StreamEnabled"] and "StreamViewType" not in stream:
        raise refused("stream-view-missing")
    if not stream["StreamEnabled"] and "StreamViewType" in stream:
        raise refused("stream-view-spare")


def _on_demand(data: Input) -> None:
    limits_of = data.get("OnDemandThroughput")
    if limits_of is None:
        return
    for name, value in limits_of.items():
        if data.get("BillingMode") != "PAY_PER_REQUEST":
            raise refused("on-demand-provisioned", name=name)
        if value < 1 and value != -1:  # -1 lifts the limit
            raise refused("on-demand-range", name=name)
