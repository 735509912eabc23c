"""Forms with which the console administers DynamoDB tables, as data (gateway/dialects/administration_forms.py)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tablegate.gateway.dialects.administration_forms import (
    BadField,
    Field,
    Form,
    Values,
    number,
    typed_name,
    words,
)
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security.credentials import NO_ACCOUNT

DEFAULT_REGION = "us-east-1"
_TYPES = (("S", "String (S)"), ("N", "Number (N)"), ("B", "Binary (B)"))
_PROJECTIONS = (("ALL", "all attributes"), ("KEYS_ONLY", "keys only"), ("INCLUDE", "some attributes"))
_VIEWS = tuple((each, each) for each in ("NEW_AND_OLD_IMAGES", "NEW_IMAGE", "OLD_IMAGE", "KEYS_ONLY"))
_BILLING = (("PAY_PER_REQUEST", "on demand"), ("PROVISIONED", "provisioned"))
_NEW_INDEXES = 2


def place_of(namespace: str) -> tuple[str, str]:
    """Return the (account, region) of the tables of a namespace."""
    parts = [part.replace("%2F", "/").replace("%25", "%") for part in namespace.split("/")]
    return (parts[1], parts[2]) if len(parts) == 3 else (NO_ACCOUNT, DEFAULT_REGION)


def resource_arn(table: Table) -> str:
    """Return the ARN of a table."""
    account, region = place_of(table.namespace)
    return f"arn:aws:dynamodb:{region}:{account}:table/{table.name}"


def _name_of(table: Table | None) -> str:
    assert table is not None
    return table.name


class _Attributes:
    """The key attributes of a request, each with one type."""

    def __init__(self) -> None:
        self._types: dict[str, str] = {}

    def key(self, values: Values, prefix: str, table: Table | None = None) -> list[dict[str, str]]:
        """Return the KeySchema of the fields with a prefix. Raises BadField."""
        schema = []
        for part, role in (("partition", "HASH"), ("sort", "RANGE")):
            name = values.get(f"{prefix}{part}", "").strip()
            if name:
                kind = values[f"{prefix}{part}_type"]
                if self._types.setdefault(name, kind) != kind:
                    raise BadField(f"{prefix}{part}_type", f"{name} has another type above.")
                schema.append({"AttributeName": name, "KeyType": role})
        return schema

    def definitions(self) -> list[dict[str, str]]:
        return [{"AttributeName": name, "AttributeType": kind} for name, kind in self._types.items()]


def _projection(values: Values, prefix: str) -> dict[str, Any]:
    projection: dict[str, Any] = {"ProjectionType": values[f"{prefix}projection"]}
    included = words(values, f"{prefix}included")
    if included:
        projection["NonKeyAttributes"] = included
    return projection


def _units(values: Values) -> dict[str, Any]:
    read, write = number(values, "read"), number(values, "write")
    if read is None and write is None:
        return {}
    return {"ProvisionedThroughput": {"ReadCapacityUnits": read or 0, "WriteCapacityUnits": write or 0}}


def _tags(values: Values) -> list[dict[str, str]]:
    found = []
    for line in values.get("tags", "").splitlines():
        if line.strip():
            key, equals, value = line.partition("=")
            if not equals:
                raise BadField("tags", "Write each tag as key=value.")
            found.append({"Key": key.strip(), "Value": value.strip()})
    return found


def _created(table: Table | None, values: Values) -> dict[str, Any]:
    attributes = _Attributes()
    document: dict[str, Any] = {"TableName": values["name"], "KeySchema": attributes.key(values, "")}
    for each in range(1, _NEW_INDEXES + 1):
        prefix = f"index{each}_"
        name = values.get(f"{prefix}name", "").strip()
        if not name:
            continue
        scope = values[f"{prefix}scope"]
        index = {
            "IndexName": name, "KeySchema": attributes.key(values, prefix),
            "Projection": _projection(values, prefix),
            **(_units(values) if scope == "GlobalSecondaryIndexes" else {}),
        }  # fmt: skip
        document.setdefault(scope, []).append(index)
    document["AttributeDefinitions"] = attributes.definitions()
    document["BillingMode"] = values["billing"]
    document.update(_units(values))
    if values.get("view"):
        document["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": values["view"]}
    if values.get("protection"):
        document["DeletionProtectionEnabled"] = True
    if tags := _tags(values):
        document["Tags"] = tags
    return document


def _deleted(table: Table | None, values: Values) -> dict[str, Any]:
    typed_name(table, values, _name_of(table))
    return {"TableName": _name_of(table)}


def _protection(is_on: bool) -> Any:
    return lambda table, values: {"TableName": _name_of(table), "DeletionProtectionEnabled": is_on}


def _capacity(table: Table | None, values: Values) -> dict[str, Any]:
    return {"TableName": _name_of(table), "BillingMode": values["billing"], **_units(values)}


def _new_index(table: Table | None, values: Values) -> dict[str, Any]:
    attributes = _Attributes()
    index = {
        "IndexName": values["index"],
        "KeySchema": attributes.key(values, ""),
        "Projection": _projection(values, ""),
        **_units(values),
    }
    return {
        "TableName": _name_of(table),
        "AttributeDefinitions": attributes.definitions(),
        "GlobalSecondaryIndexUpdates": [{"Create": index}],
    }


def _dropped_index(table: Table | None, values: Values) -> dict[str, Any]:
    update = {"Delete": {"IndexName": values["index"]}}
    return {"TableName": _name_of(table), "GlobalSecondaryIndexUpdates": [update]}


def _expiry(is_on: bool) -> Any:
    def document_of(table: Table | None, values: Values) -> dict[str, Any]:
        rule = {"Enabled": is_on, "AttributeName": values["attribute"]}
        return {"TableName": _name_of(table), "TimeToLiveSpecification": rule}

    return document_of


def _stream(is_on: bool) -> Any:
    def document_of(table: Table | None, values: Values) -> dict[str, Any]:
        view = {"StreamViewType": values["view"]} if is_on else {}
        return {"TableName": _name_of(table), "StreamSpecification": {"StreamEnabled": is_on, **view}}

    return document_of


def _recovery(is_on: bool) -> Any:
    def document_of(table: Table | None, values: Values) -> dict[str, Any]:
        rule: dict[str, Any] = {"PointInTimeRecoveryEnabled": is_on}
        days = number(values, "days") if is_on else None
        if days is not None:
            rule["RecoveryPeriodInDays"] = days
        return {"TableName": _name_of(table), "PointInTimeRecoverySpecification": rule}

    return document_of


def _restored(table: Table | None, values: Values) -> dict[str, Any]:
    try:
        at = datetime.fromisoformat(values["at"]).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        raise BadField("at", "Write the time as 2026-01-31T23:59:59, in UTC.") from None
    return {"SourceTableName": _name_of(table), "TargetTableName": values["target"], "RestoreDateTime": at}


def _new_backup(table: Table | None, values: Values) -> dict[str, Any]:
    return {"TableName": _name_of(table), "BackupName": values["backup"]}


def _restored_backup(table: Table | None, values: Values) -> dict[str, Any]:
    return {"BackupArn": values["arn"], "TargetTableName": values["target"]}


def _deleted_backup(table: Table | None, values: Values) -> dict[str, Any]:
    return {"BackupArn": values["arn"]}


def _new_tag(table: Table | None, values: Values) -> dict[str, Any]:
    assert table is not None
    return {"ResourceArn": resource_arn(table), "Tags": [{"Key": values["key"], "Value": values["value"]}]}


def _removed_tag(table: Table | None, values: Values) -> dict[str, Any]:
    assert table is not None
    return {"ResourceArn": resource_arn(table), "TagKeys": [values["key"]]}


def _key_fields(prefix: str = "", group: str = "", is_required: bool = True) -> tuple[Field, ...]:
    return (
        Field(f"{prefix}partition", "Partition key", group=group, is_required=is_required),
        Field(f"{prefix}partition_type", "Type of the partition key", "select", "S", _TYPES, group=group),
        Field(f"{prefix}sort", "Sort key", group=group, hint="Empty: none."),
        Field(f"{prefix}sort_type", "Type of the sort key", "select", "S", _TYPES, group=group),
    )


def _projection_fields(prefix: str = "", group: str = "") -> tuple[Field, ...]:
    hint = "Attributes, with commas, if the projection is some attributes."
    return (
        Field(f"{prefix}projection", "Projection", "select", "ALL", _PROJECTIONS, group=group),
        Field(f"{prefix}included", "Included attributes", hint=hint, group=group),
    )


def _new_index_fields(number: int) -> tuple[Field, ...]:
    prefix, group = f"index{number}_", f"Index {number} (optional)"
    scopes = (("GlobalSecondaryIndexes", "global"), ("LocalSecondaryIndexes", "local"))
    return (
        Field(f"{prefix}name", "Index name", group=group),
        Field(f"{prefix}scope", "Scope", "select", "GlobalSecondaryIndexes", scopes, group=group),
        *_key_fields(prefix, group, is_required=False),
        *_projection_fields(prefix, group),
    )


_UNITS = (
    Field("read", "Read capacity units", "number", hint="With provisioned capacity only."),
    Field("write", "Write capacity units", "number", hint="With provisioned capacity only."),
)
_TARGET = Field("target", "New table name", is_required=True)
_ARN = Field("arn", kind="hidden")
FORMS: Mapping[str, Form] = {
    "create": Form(
        "CreateTable", "Create table", _created, "The table is being created.",
        (
            Field("name", "Table name", hint="3 to 255 letters, digits, dots, dashes and underscores.", is_required=True),
            *_key_fields(group="Primary key"),
            *(field for each in range(1, _NEW_INDEXES + 1) for field in _new_index_fields(each)),
            Field("billing", "Capacity", "select", "PAY_PER_REQUEST", _BILLING, group="Capacity"),
            *(field._replace(group="Capacity") for field in _UNITS),
            Field("view", "Stream", "select", "", (("", "none"), *_VIEWS), group="Options"),
            Field("protection", "Deletion protection", "select", "", (("", "off"), ("yes", "on")), group="Options"),
            Field("tags", "Tags", "textarea", hint="One key=value in each line.", group="Options"),
        ),
    ),
    "delete": Form("DeleteTable", "Delete table", _deleted, "The table was deleted.",
                   (Field("typed", "Type the name of the table", is_required=True),),
                   title="Delete this table and all its items", is_dangerous=True),
    "protect": Form("UpdateTable", "Protect from deletion", _protection(True), "The table is protected."),
    "unprotect": Form("UpdateTable", "Remove the protection", _protection(False), "The table is not protected."),
    "capacity": Form("UpdateTable", "Save capacity", _capacity, "The capacity was changed.",
                     (Field("billing", "Capacity", "select", "PAY_PER_REQUEST", _BILLING), *_UNITS)),
    "index_new": Form(
        "UpdateTable", "Create index", _new_index, "The index is being filled.",
        (Field("index", "Index name", is_required=True), *_key_fields(), *_projection_fields(), *_UNITS),
        title="Create a global index",
    ),
    "index_drop": Form("UpdateTable", "Delete", _dropped_index, "The index is being deleted.",
                       (Field("index", kind="hidden"),), question="Delete the index {index}?", is_dangerous=True),
    "ttl_on": Form("UpdateTimeToLive", "Enable", _expiry(True), "Time to live is being enabled.",
                   (Field("attribute", "Attribute", hint="A number: seconds since 1970.", is_required=True),)),
    "ttl_off": Form("UpdateTimeToLive", "Disable", _expiry(False), "Time to live is being disabled.",
                    (Field("attribute", kind="hidden"),), question="Disable time to live?", is_dangerous=True),
    "stream_on": Form("UpdateTable", "Enable the stream", _stream(True), "The stream is enabled.",
                      (Field("view", "View", "select", "NEW_AND_OLD_IMAGES", _VIEWS),)),
    "stream_off": Form("UpdateTable", "Disable the stream", _stream(False), "The stream is disabled.",
                       question="Disable the stream?", is_dangerous=True),
    "recovery_on": Form("UpdateContinuousBackups", "Enable recovery", _recovery(True), "Recovery is enabled.",
                        (Field("days", "Days", "number", "35", hint="1 to 35."),)),
    "recovery_off": Form("UpdateContinuousBackups", "Disable recovery", _recovery(False), "Recovery is disabled.",
                         question="Disable recovery and delete the history?", is_dangerous=True),
    "restore": Form("RestoreTableToPointInTime", "Restore", _restored, "The table is being restored.",
                    (Field("at", "Time (UTC)", "second", is_required=True), _TARGET),
                    title="Restore to a point in time"),
    "backup_new": Form("CreateBackup", "Create backup", _new_backup, "The backup is being created.",
                       (Field("backup", "Backup name", is_required=True),)),
    "backup_restore": Form("RestoreTableFromBackup", "Restore", _restored_backup, "The table is being restored.",
                           (_TARGET, _ARN)),
    "backup_delete": Form("DeleteBackup", "Delete", _deleted_backup, "The backup was deleted.",
                          (_ARN, Field("backup", kind="hidden")), question="Delete the backup {backup}?",
                          is_dangerous=True),
    "tag_new": Form("TagResource", "Set tag", _new_tag, "The tag was set.",
                    (Field("key", "Key", is_required=True), Field("value", "Value"))),
    "tag_drop": Form("UntagResource", "Remove", _removed_tag, "The tag was removed.",
                     (Field("key", kind="hidden"),), question="Remove the tag {key}?", is_dangerous=True),
}  # fmt: skip
