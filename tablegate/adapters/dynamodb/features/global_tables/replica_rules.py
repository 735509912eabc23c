"""Rules for replicas of a global table: their regions, when they may change, and their encryption keys.

Texts: ack-api-quirks (live service, October 2026). The regions of strong consistency: developer guide, "Multi-Region
strong consistency". The guide demands that they are of one set. The service does not check this (TABLE-257).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tablegate.adapters.dynamodb.call import CallContext
from tablegate.adapters.dynamodb.features.global_tables.replica_settings import replica_status
from tablegate.adapters.dynamodb.tables.properties import TableProperties
from tablegate.adapters.dynamodb.validation import table_rules
from tablegate.adapters.dynamodb.validation.table_rules import refused
from tablegate.adapters.dynamodb.wire import error_texts
from tablegate.adapters.dynamodb.wire.arns import REGIONS, key_arn
from tablegate.adapters.dynamodb.wire.errors import RuleContext, ServiceError, validation
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.model.tables.tables import ReplicationRule, State, Table

_STRONG_REGIONS = frozenset({
    "us-east-1", "us-east-2", "us-west-2", "eu-west-1", "eu-west-2", "eu-west-3", "eu-central-1", "ap-northeast-1",
    "ap-northeast-2", "ap-northeast-3",
})  # fmt: skip
_DAY_MS = 86_400_000
# Changes that may be combined with changes of strongly consistent replicas.
_REPLICA_MEMBERS = frozenset({"ReplicaUpdates", "GlobalTableWitnessUpdates", "MultiRegionConsistency"})

STRONG = "global tables with MultiRegionConsistency set to STRONG"

Wire = Mapping[str, Any]


# Rules that need no table


def update_table(data: dict[str, Any], context: RuleContext) -> None:
    """Raise ServiceError for an UpdateTable with members that exclude each other."""
    table_rules.normalize_update(data)
    # The service ignores witnesses without a region (ack-api-quirks 457).
    witnesses = data.get("GlobalTableWitnessUpdates", [])
    if witnesses and not any(entry["RegionName"] for update in witnesses for entry in update.values()):
        del data["GlobalTableWitnessUpdates"]
    _check_updates(data)
    table_rules.update_table(data, context)


def _check_updates(data: Wire) -> None:
    """Check combinations of replica changes (ack-api-quirks, live service, October 2026)."""
    changed = table_rules.changes(data)
    if "ReplicaUpdates" not in changed:
        if "GlobalTableWitnessUpdates" in changed and changed - _REPLICA_MEMBERS:
            raise refused("group-and-more")
        if changed & _REPLICA_MEMBERS:  # a change of replicas is missing (TABLE-257)
            raise table_rules.nothing_to_update(data)
        return
    strong = data.get("MultiRegionConsistency") == "STRONG"
    if changed - _REPLICA_MEMBERS:
        raise refused(
            "group-and-more" if changed & (_REPLICA_MEMBERS - {"ReplicaUpdates"}) else "replicas-and-more"
        )
    updates = data.get("ReplicaUpdates", [])
    if any("RegionName" not in entry for update in updates for entry in update.values()):
        raise validation(error_texts.INVALID.removesuffix(": "))
    for update in updates:
        if len(update) > 1:
            raise refused("replica-actions-mixed")
        [(action, entry)] = update.items() if update else [("", {})]
        indexes = entry.get("GlobalSecondaryIndexes", ())
        if not action or (action == "Update" and len(entry) < 2) or any(len(index) < 2 for index in indexes):
            raise refused("replica-action-none")
    regions = {(action, entry["RegionName"]) for update in updates for action, entry in update.items()}
    membership = [change for change in regions if change[0] in ("Create", "Delete")]
    if strong and any(action != "Create" for action, _ in regions):
        raise refused("strong-only-create")
    if len(membership) > 1 and not strong and {action for action, _ in membership} != {"Delete"}:
        raise refused("replica-actions-several")


# Rules about a table


def in_region(call: CallContext, region: str) -> Caller:
    """Return the caller with another region."""
    caller = call.caller
    namespace = call.gateway.credentials.aws_namespace(caller.access_id, caller.account, region)
    return replace(caller, region=region, namespace=namespace)


def check_regions(call: CallContext, table: Table, updates: Sequence[tuple[str, Wire]]) -> None:
    """Check that regions exist, differ from the caller's, and are replicas if the update demands it.

    Raises ServiceError.
    """
    rule = table.rules.replication
    members: set[str] = set() if rule is None else set(rule.others)
    for action, entry in updates:
        region = entry["RegionName"]
        if not region and action == "Create":
            raise _access_denied(call, table)
        _refuse_unknown(region)
        if action == "Disassociate":
            continue
        if region == call.caller.region:
            verbs = "add or delete" if action != "Update" else "add, delete, or update"
            raise validation(
                f"Cannot {verbs} the local region through ReplicaUpdates. Use CreateTable, DeleteTable, or UpdateTable as "
                "required."
            )
        if action != "Create" and region not in members:
            raise validation(
                "Update global table operation failed because one or more replicas were not part of the global table. Please "
                f"retry the request without these replicas: [{region}]."
            )
        if in_region(call, region).namespace == call.caller.namespace:
            raise validation(
                f"Failed to access the region: \u2018{region}\u2019. User is missing the permissions since the region is "
                "disabled. This server has one namespace for all regions; it has replicas with --namespaces separate or keys."
            )


def _refuse_unknown(region: str) -> None:
    if region not in REGIONS:
        regions = ", ".join(REGIONS)
        raise validation(
            f"Region {region} is not supported. The latest version of global tables are only supported in the following "
            f"regions: [{regions}]"
        )


def _access_denied(call: CallContext, table: Table) -> ServiceError:
    """Return the service's error for a region without a name."""
    account = call.caller.account
    return ServiceError(
        "AccessDeniedException",
        f"User: arn:aws:iam::{account}:user/{call.caller.access_id} is not authorized to perform: dynamodb:Scan on resource: "
        f"arn:aws:dynamodb::{account}:table/{table.name}",
    )


def refuse_source(call: CallContext, table: Table) -> None:
    """Check that no replica was added from a region to be removed within the last day. Raises ServiceError."""
    rule = table.rules.replication
    names: set[str] = set() if rule is None else set(rule.others)
    since_ms = call.gateway.now_ms() - _DAY_MS
    sourced = TableProperties.of(table).sourced
    if any(region in names and at_ms > since_ms for region, at_ms in sourced.items()):
        raise validation(
            "Replica cannot be deleted because it has acted as a source region for new replica(s) being added to the table in "
            "the last 24 hours."
        )


def refuse_protected(table: Table, region: str) -> None:
    """Raise ServiceError for a table with deletion protection."""
    if TableProperties.of(table).deletion_protection:
        raise validation(
            f"Cannot delete table {table.name} in region {region} because it has deletion protection enabled. Disable deletion "
            "protection first."
        )


def already_there(table: Table) -> ServiceError:
    """Return the error for a new replica in a region that has a table of this name."""
    return validation(
        f"Failed to create a the new replica of table with name: \u2018{table.name}\u2019 because one or more replicas already "
        "existed as tables."
    )


def refuse_busy(table: Table, updates: Sequence[tuple[str, Wire]], now_ms: int) -> None:
    """Check that no other change runs: of replicas, of the table, or the fill of an index (TABLE-263).

    Raises ServiceError.
    """
    rule = table.rules.replication
    if rule is None:
        return
    if any(action != "Delete" for action, _ in updates):
        refuse_incomplete(table, now_ms)
    creating = incomplete_regions(table, now_ms)
    if any(action == "Create" and entry["RegionName"] in creating for action, entry in updates):
        regions = ", ".join(sorted(rule.regions))
        text = f"Global table with name: {table.name} already exists with replicas in regions: {regions}."
        raise ServiceError("ResourceInUseException", text)
    is_updating = table.state_at(now_ms) is State.UPDATING
    if creating or is_updating or not all(index.is_active(now_ms) for index in table.indexes):
        raise in_use()


def in_use() -> ServiceError:
    """Return the error for a change while the replicas of a table are being changed."""
    return ServiceError(
        "ResourceInUseException", "The resource which you are attempting to change is in use."
    )


def incomplete_regions(table: Table, now_ms: int) -> list[str]:
    """Return the regions whose replicas do not have all items yet."""
    rule = table.rules.replication
    peers = () if rule is None else rule.peers
    properties = TableProperties.of(table)
    return [peer.name for peer in peers if replica_status(properties, peer, now_ms) == "CREATING"]


def refuse_incomplete(table: Table, now_ms: int) -> None:
    """Check that this region's replica has all items, before a change of replicas. Raises ServiceError."""
    rule = table.rules.replication
    if rule is not None and table.state_at(now_ms) is State.CREATING:
        raise being_added(table, rule.name)


def being_added(table: Table, region: str) -> ServiceError:
    """Return the error for a change that is not allowed while a replica is added."""
    return validation(
        "Create/Update/Delete of replica is not allowed while the replica is being added to table with name: "
        f"\u2018{table.name}\u2019 in region: \u2018{region}\u2019."
    )


def check_keys(call: CallContext, properties: TableProperties, entries: Sequence[Wire]) -> None:
    """Check that replicas name keys in all regions if the table has a customer's key. Raises ServiceError."""
    is_customers = properties.encryption_key not in (None, service_key(call, call.caller.region))
    for entry in entries:
        region, key = entry["RegionName"], entry.get("KMSMasterKeyId")
        if key is None and not is_customers:
            continue
        if key is None:
            raise validation(f"{error_texts.INVALID}KMSMasterKeyId must be specified for each replica.")
        if not is_customers or key_arn(in_region(call, region), key) == service_key(call, region):
            text = "All replica keys must either be Customer Managed CMK or AWS Managed CMK."
            raise validation(error_texts.INVALID + text)
        place = [*key.split(":"), "", "", ""][3]
        if key.startswith("arn:") and place != region:
            error = f"com.amazonaws.services.kms.model.NotFoundException: Invalid arn {place}"
            raise validation(f"KMS validation error for region {region}: {error}")


def service_key(call: CallContext, region: str) -> str:
    """Return the ARN of the service's own key in a region."""
    return key_arn(in_region(call, region), "alias/aws/dynamodb")


# Strong consistency


def check_strong(
    call: CallContext, table: Table, updates: Sequence[tuple[str, Wire]], witness: Sequence[tuple[str, Wire]]
) -> None:
    """Check that a group with strong consistency is created or dissolved as a whole. Raises ServiceError.

    The request itself is checked before the existing group (TABLE-202, TABLE-260).
    """
    rule = table.rules.replication
    is_strong = rule is not None and rule.strong
    regions = list(dict.fromkeys(entry["RegionName"] for _, entry in updates))
    witnesses = [entry["RegionName"] for _, entry in witness]
    if call.input.get("MultiRegionConsistency") == "STRONG":
        _check_new_group(call, regions, witnesses)
    elif witness and not is_strong:
        raise validation(
            "MultiRegionConsistency must be set as STRONG when GlobalTableWitnessUpdates parameter is present."
        )
    if rule is None:
        return
    if "MultiRegionConsistency" in call.input:
        raise validation("MultiRegionConsistency parameter is unsupported on existing global table")
    if any(action == "Create" for action, _ in updates):
        raise validation("Cannot add replicas to a global table with strong MultiRegionConsistency")
    if any(action == "Delete" for action, _ in updates):
        _check_dissolution(rule, regions, witnesses)


def _check_new_group(call: CallContext, regions: Sequence[str], witnesses: Sequence[str]) -> None:
    """Check that these can be the other regions of a new group. Raises ServiceError."""
    for region in witnesses:
        _refuse_unknown(region)
    if len(regions) + len(witnesses) != 2:
        raise validation(f"Unsupported replica count for {STRONG}.")
    all_regions = dict.fromkeys((*regions, *witnesses, call.caller.region))
    outside = [region for region in all_regions if region not in _STRONG_REGIONS]
    if outside:
        raise validation(f"Unsupported Region(s) specified for {STRONG}: [{', '.join(outside)}].")
    if set(witnesses) & set(regions):
        raise validation("Cannot target multiple regions with the same action")
    if call.caller.region in witnesses:
        raise validation(
            "Cannot add a witness in the same region as an existing replica when creating a global table with "
            "MultiRegionConsistency set to STRONG."
        )


def _check_dissolution(rule: ReplicationRule, regions: Sequence[str], witnesses: Sequence[str]) -> None:
    """Check that these are all other regions of a group. Raises ServiceError."""
    strangers = [region for region in witnesses if region != rule.witness]
    if strangers:
        raise validation(
            "Update global table operation failed because one or more witnesses were not part of the global table. Please retry "
            f"the request without these witnesses: [{', '.join(strangers)}]."
        )
    if rule.witness and not witnesses:
        raise validation("Update table delete operation does not include all witnesses.")
    if set(rule.others) != set(regions):
        raise validation(f"Deletion of only one table replica is not supported for {STRONG}.")
