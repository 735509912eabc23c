"""Rules about several members of CreateTable and UpdateTable, as far as they need no table.

They cover key schemas, index definitions and throughput, in the service's order of checks. Sources: ack-api-quirks
(live service, October 2026), dynalite validations/createTable.js and updateTable.js. Handlers check rules that
depend on the stored table, such as missing indexes and unchanged throughput.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tablegate.adapters.dynamodb.tables.table_extensions import EXTENSIONS
from tablegate.adapters.dynamodb.validation.rules import index_rules
from tablegate.adapters.dynamodb.validation.rules.index_rules import Input, refused
from tablegate.adapters.dynamodb.validation.rules.rule_context import RuleContext
from tablegate.adapters.dynamodb.wire import limits, messages
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation

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
        raise validation(f"{messages.INVALID_REQUEST}{text}")
    create_table(data["TableCreationParameters"], context)


def _new_table(data: Input) -> None:
    _throughput(data)
    definitions = [definition["AttributeName"] for definition in data["AttributeDefinitions"]]
    _defined_once(definitions)
    _table_keys(data, definitions)
    for extension in EXTENSIONS:
        extension.check_new_table(data, definitions)
    _definitions(data, definitions)
    index_rules.check_new(data, definitions)
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
    index_rules.check_updates(data)
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
    index_rules.check_defined(keys, definitions)
    index_rules.check_pair(schema)
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
            index_rules.check_keys(index, definitions, multiple)
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
