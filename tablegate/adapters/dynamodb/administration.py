"""Settings of DynamoDB tables for the console, and the operations that it runs (gateway/dialects/administration_forms.py)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tablegate.adapters.dynamodb import DIALECT, dispatch
from tablegate.adapters.dynamodb.administration_forms import DEFAULT_REGION, FORMS, place_of, resource_arn
from tablegate.adapters.dynamodb.call import Answer, CallContext
from tablegate.adapters.dynamodb.operation_table import OPERATIONS
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.adapters.dynamodb.wire.gateway_errors import service_error_of
from tablegate.adapters.dynamodb.wire.signature_claims import Caller
from tablegate.gateway.dialects.adapter import DialectAdministration
from tablegate.gateway.dialects.administration_forms import (
    Cell,
    Describe,
    Moment,
    OperationRequest,
    PlacedForm,
    Progress,
    Section,
    SectionRow,
)
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security.credentials import NO_ACCOUNT, Scheme

PURPOSES = {name: operation.purpose for name, operation in OPERATIONS.items()}


# Sections


def sections(table: Table, describe: Describe) -> list[Section]:
    """Return the settings of a table. Those that the caller may not read are left out."""
    name = {"TableName": table.name}
    found: list[Section] = []
    described = describe("DescribeTable", name)
    if described:
        found += _of_description(described["Table"])
    expiry = describe("DescribeTimeToLive", name)
    if expiry:
        found.append(_expiry(expiry["TimeToLiveDescription"]))
    recovery = describe("DescribeContinuousBackups", name)
    if recovery:
        found.append(_recovery(table, recovery["ContinuousBackupsDescription"]))
    listed = describe("ListBackups", name)
    if listed is not None:
        found.append(_backups(listed, (PlacedForm("backup_new"),)))
    tags = describe("ListTagsOfResource", {"ResourceArn": resource_arn(table)})
    if tags:
        found.append(_tags(tags["Tags"]))
    return [*found, _deletion(described["Table"] if described else {})]


def backups(describe: Describe) -> Section | None:
    """Return all backups of a namespace. None if the caller may not list them."""
    listed = describe("ListBackups", {})
    return None if listed is None else _backups(listed)


def _of_description(table: dict[str, Any]) -> list[Section]:
    stream = table.get("StreamSpecification", {})
    view = stream.get("StreamViewType", "") if stream.get("StreamEnabled") else ""
    units = table["ProvisionedThroughput"]
    billing = table.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
    capacity = "on demand"
    current = {"billing": billing}
    if billing == "PROVISIONED":
        current |= {"read": str(units["ReadCapacityUnits"]), "write": str(units["WriteCapacityUnits"])}
        capacity = f"{current['read']} read and {current['write']} write units"
    return [
        _indexes(table),
        Section(
            "Stream", (("State", f"enabled, {view}" if view else "disabled"),),
            forms=(PlacedForm("stream_off" if view else "stream_on"),),
        ),
        Section("Capacity", (("Capacity", capacity),), forms=(PlacedForm("capacity", current),)),
    ]  # fmt: skip


def _indexes(table: dict[str, Any]) -> Section:
    rows = []
    for scope, member in (("global", "GlobalSecondaryIndexes"), ("local", "LocalSecondaryIndexes")):
        for index in table.get(member, ()):
            name, projection = index["IndexName"], index["Projection"]
            shown = ", ".join([projection["ProjectionType"], *projection.get("NonKeyAttributes", ())])
            keys = ", ".join(each["AttributeName"] for each in index["KeySchema"])
            forms = (PlacedForm("index_drop", {"index": name}),) if scope == "global" else ()
            rows.append(SectionRow((name, scope, keys, shown, _index_state(table, index)), forms))
    note = "" if rows else "The table has no index."
    columns = ("Name", "Scope", "Key", "Projection", "State")
    return Section("Indexes", columns=columns, rows=rows, forms=(PlacedForm("index_new"),), note=note)


def _index_state(table: dict[str, Any], index: dict[str, Any]) -> Cell:
    state = str(index.get("IndexStatus", "ACTIVE")).lower()
    if not index.get("Backfilling"):
        return state
    done, total = index["ItemCount"], table["ItemCount"]
    return Progress(done, max(total, done, 1), f"{done:,} of at most {total:,} items")


def _expiry(expiry: dict[str, Any]) -> Section:
    state, attribute = expiry["TimeToLiveStatus"], expiry.get("AttributeName", "")
    facts: list[tuple[str, Cell]] = [("State", state.lower())]
    if attribute:
        facts.append(("Attribute", attribute))
    form = PlacedForm("ttl_off", {"attribute": attribute}) if state == "ENABLED" else PlacedForm("ttl_on")
    return Section("Time to live", facts, forms=() if state.endswith("ING") else (form,))


def _recovery(table: Table, described: dict[str, Any]) -> Section:
    recovery = described["PointInTimeRecoveryDescription"]
    if recovery["PointInTimeRecoveryStatus"] != "ENABLED":
        return Section("Recovery", (("State", "disabled"),), forms=(PlacedForm("recovery_on"),))
    earliest = recovery["EarliestRestorableDateTime"]
    latest = recovery["LatestRestorableDateTime"]
    facts: list[tuple[str, Cell]] = [
        ("State", f"enabled, {recovery['RecoveryPeriodInDays']} days"),
        ("Earliest time", Moment(round(earliest * 1000))),
        ("Latest time", Moment(round(latest * 1000))),
    ]
    at = datetime.fromtimestamp(int(latest), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    values = {"at": at, "target": f"{table.name}-restored"[:255]}
    # Whole seconds inside the window. At first it is shorter than a second.
    bounds = {"at": (min(int(-(-earliest // 1)), int(latest)), int(latest))}
    return Section(
        "Recovery", facts, forms=(PlacedForm("restore", values, bounds), PlacedForm("recovery_off"))
    )


def _backups(listed: dict[str, Any], forms: Sequence[PlacedForm] = ()) -> Section:
    rows = []
    for each in listed["BackupSummaries"]:
        arn, name = each["BackupArn"], each["BackupName"]
        path = arn.partition(":table/")[2]
        target = f"{each['TableName']}-restored"[:255]
        placed = (
            PlacedForm("backup_restore", {"arn": arn, "target": target}, path=path),
            PlacedForm("backup_delete", {"arn": arn, "backup": name}, path=path),
        )
        created = Moment(round(each["BackupCreationDateTime"] * 1000))
        size = f"{each.get('BackupSizeBytes', 0):,}"
        is_ready = each["BackupStatus"] == "AVAILABLE"
        cells: tuple[Cell, ...] = (name, each["TableName"], created, size, each["BackupStatus"].lower())
        rows.append(SectionRow(cells, placed if is_ready else ()))
    note = "" if rows else "There is no backup."
    if "LastEvaluatedBackupArn" in listed:
        note = f"The first {len(rows)} backups are listed."
    columns = ("Name", "Table", "Created", "Bytes", "State")
    return Section("Backups", columns=columns, rows=rows, forms=forms, note=note)


def _tags(tags: list[dict[str, str]]) -> Section:
    rows = [
        SectionRow((each["Key"], each["Value"]), (PlacedForm("tag_drop", {"key": each["Key"]}),))
        for each in tags
    ]
    note = "" if rows else "The table has no tag."
    return Section("Tags", columns=("Key", "Value"), rows=rows, forms=(PlacedForm("tag_new"),), note=note)


def _deletion(table: dict[str, Any]) -> Section:
    if table.get("DeletionProtectionEnabled"):
        return Section(
            "Delete", forms=(PlacedForm("unprotect"),), note="The table is protected from deletion."
        )
    return Section("Delete", forms=(PlacedForm("protect"), PlacedForm("delete")))


# Operations


async def execute(gateway: Gateway, request: OperationRequest) -> Answer:
    """Carry out an operation. Raises ServiceError, NotPermitted."""
    authorization, operation = request.authorization, OPERATIONS[request.operation]
    if authorization is not None:
        authorization.purpose = operation.purpose_of(request.document)
    checked = operation.check(request.document)
    caller = Caller(request.access_id, *place_of(request.namespace), request.namespace)
    call = CallContext(request.operation, checked, caller, gateway, authorization=authorization)
    return await dispatch.execute(call)


def answer_of(answer: Answer) -> Any:
    """Return the JSON document of an answer."""
    return answer or {}


def text_of(error: Exception, operation: str) -> str | None:
    """Return the service's text for an error. None for an error of the server."""
    if not isinstance(error, (ServiceError, GatewayError)):
        return None
    found = service_error_of(error, operation)
    return None if found.status >= 500 or found.message is None else f"{found.code}: {found.message}"


ADMINISTRATION = DialectAdministration(
    DIALECT, "DynamoDB", f"{Scheme.AWS.value}/{NO_ACCOUNT}/{DEFAULT_REGION}", FORMS, PURPOSES, sections, execute,
    answer_of, text_of, backups,
)  # fmt: skip
