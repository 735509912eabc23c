"""Forms and sections with which the console administers tables of Table Store (gateway/dialects/administration_forms.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message

from tablegate.adapters.tablestore import DIALECT
from tablegate.adapters.tablestore.call import CallContext
from tablegate.adapters.tablestore.call import execute as execute_call
from tablegate.adapters.tablestore.operation_table import OPERATIONS
from tablegate.adapters.tablestore.wire.auth import Caller
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid, service_error_of
from tablegate.adapters.tablestore.wire.parsing import parse
from tablegate.gateway.dialects.adapter import DialectAdministration
from tablegate.gateway.dialects.administration_forms import (
    BadField,
    Describe,
    Field,
    Form,
    OperationRequest,
    PlacedForm,
    Section,
    SectionRow,
    Values,
    is_checked,
    number,
    typed_name,
    words,
)
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.model.authorization.permissions import Purpose
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security.credentials import Scheme

PURPOSES: Mapping[str, Purpose] = {name: operation.purpose for name, operation in OPERATIONS.items()}
_KEY_COLUMNS = 4
_KEY_TYPES = tuple((each, each) for each in ("STRING", "INTEGER", "BINARY"))
_DEFINED_TYPES = tuple((f"DCT_{each}", each) for each in ("STRING", "INTEGER", "DOUBLE", "BOOLEAN", "BLOB"))
_YES_OR_NO = (("", "no"), ("yes", "yes"))


# Documents of forms


def _created(table: Table | None, values: Values) -> dict[str, Any]:
    columns = []
    for each in range(1, _KEY_COLUMNS + 1):
        name = values.get(f"key{each}", "").strip()
        if not name:
            continue
        column = {"name": name, "type": values[f"type{each}"]}
        if values.get("increments") == str(each):
            column["option"] = "AUTO_INCREMENT"
        columns.append(column)
    hours = number(values, "hours")
    stream = {"stream_spec": {"enable_stream": True, "expiration_time": hours}} if hours else {}
    return {
        "table_meta": {"table_name": values["name"], "primary_key": columns},
        "reserved_throughput": {"capacity_unit": {"read": 0, "write": 0}},
        "table_options": _options(values),
        **stream,
    }


def _options(values: Values) -> dict[str, Any]:
    given = {
        "time_to_live": number(values, "lifetime"),
        "max_versions": number(values, "versions"),
        "deviation_cell_version_in_sec": number(values, "deviation"),
    }
    return {name: value for name, value in given.items() if value is not None}


def _name_of(table: Table | None) -> str:
    assert table is not None
    return table.name


def _new_options(table: Table | None, values: Values) -> dict[str, Any]:
    return {"table_name": _name_of(table), "table_options": _options(values)}


def _stream_on(table: Table | None, values: Values) -> dict[str, Any]:
    stream: dict[str, Any] = {"enable_stream": True}
    hours = number(values, "hours")
    if hours is not None:
        stream["expiration_time"] = hours
    return {"table_name": _name_of(table), "stream_spec": stream}


def _stream_off(table: Table | None, values: Values) -> dict[str, Any]:
    return {"table_name": _name_of(table), "stream_spec": {"enable_stream": False}}


def _new_index(table: Table | None, values: Values) -> dict[str, Any]:
    is_local = values.get("scope") == "local"
    meta = {
        "name": values["index"],
        "primary_key": words(values, "keys"),
        "defined_column": words(values, "columns"),
        "index_update_mode": "IUM_SYNC_INDEX" if is_local else "IUM_ASYNC_INDEX",
        "index_type": "IT_LOCAL_INDEX" if is_local else "IT_GLOBAL_INDEX",
    }
    if not meta["primary_key"]:
        raise BadField("keys", "Name at least one column.")
    fills = is_checked(values, "fills")
    return {"main_table_name": _name_of(table), "index_meta": meta, "include_base_data": fills}


def _dropped_index(table: Table | None, values: Values) -> dict[str, Any]:
    return {"main_table_name": _name_of(table), "index_name": values["index"]}


def _new_column(table: Table | None, values: Values) -> dict[str, Any]:
    return {"table_name": _name_of(table), "columns": [{"name": values["column"], "type": values["type"]}]}


def _dropped_column(table: Table | None, values: Values) -> dict[str, Any]:
    return {"table_name": _name_of(table), "columns": [values["column"]]}


def _deleted(table: Table | None, values: Values) -> dict[str, Any]:
    typed_name(table, values, _name_of(table))
    return {"table_name": _name_of(table)}


_LIFETIME = Field(
    "lifetime",
    "Time to live",
    "number",
    "-1",
    hint="Seconds after which a cell expires, at least 86,400. -1: never.",
)
_VERSIONS = Field(
    "versions", "Maximum number of versions", "number", "1", hint="1 if the table has an index."
)
_DEVIATION = Field("deviation", "Maximum deviation of versions", "number", "86400", hint="Seconds.")
_HOURS = Field("hours", "Stream retention", "number", hint="Hours, up to 168.")


def _key_fields() -> tuple[Field, ...]:
    fields = []
    for each in range(1, _KEY_COLUMNS + 1):
        label = "Partition key" if each == 1 else f"Key column {each}"
        fields += [
            Field(f"key{each}", label, group="Primary key", is_required=each == 1),
            Field(
                f"type{each}", f"Type of column {each}", "select", "STRING", _KEY_TYPES, group="Primary key"
            ),
        ]
    increments = (("", "none"), *((str(each), f"column {each}") for each in range(2, _KEY_COLUMNS + 1)))
    return (*fields, Field("increments", "Auto-increment", "select", "", increments, group="Primary key"))


FORMS: Mapping[str, Form] = {
    "create": Form(
        "CreateTable", "Create table", _created, "The table was created.",
        (
            Field("name", "Table name", is_required=True), *_key_fields(), _LIFETIME, _VERSIONS, _DEVIATION,
            _HOURS._replace(hint="Hours, up to 168. Empty: no stream."),
        ),
    ),
    "options": Form("UpdateTable", "Save options", _new_options, "The options were saved.",
                    (_LIFETIME, _VERSIONS, _DEVIATION)),
    "stream_on": Form("UpdateTable", "Enable the stream", _stream_on, "The stream is enabled.", (_HOURS,)),
    "stream_off": Form("UpdateTable", "Disable the stream", _stream_off, "The stream is disabled.",
                       question="Disable the stream?", is_dangerous=True),
    "index_new": Form(
        "CreateIndex", "Create index", _new_index, "The index was created.",
        (
            Field("index", "Index name", is_required=True),
            Field("keys", "Key columns", hint="Columns of the primary key or defined columns, with commas.",
                  is_required=True),
            Field("columns", "Further columns", hint="Defined columns, with commas."),
            Field("scope", "Scope", "select", "global", (("global", "global"), ("local", "local"))),
            Field("fills", "Add existing rows", "select", "yes", _YES_OR_NO),
        ),
        title="Create an index",
    ),
    "index_drop": Form("DropIndex", "Delete", _dropped_index, "The index was deleted.",
                       (Field("index", kind="hidden"),), question="Delete the index {index}?", is_dangerous=True),
    "column_new": Form(
        "AddDefinedColumn", "Define column", _new_column, "The column was defined.",
        (Field("column", "Column name", is_required=True),
         Field("type", "Type", "select", "DCT_STRING", _DEFINED_TYPES)),
        title="Define a column",
    ),
    "column_drop": Form("DeleteDefinedColumn", "Delete", _dropped_column, "The column is no longer defined.",
                        (Field("column", kind="hidden"),), question="Remove the definition of {column}?",
                        is_dangerous=True),
    "delete": Form("DeleteTable", "Delete table", _deleted, "The table was deleted.",
                   (Field("typed", "Type the name of the table", is_required=True),),
                   title="Delete this table and all its rows", is_dangerous=True),
}  # fmt: skip


# Sections


def sections(table: Table, describe: Describe) -> list[Section]:
    """Return the settings of a table."""
    described = describe("DescribeTable", {"table_name": table.name})
    deletion = Section("Delete", forms=(PlacedForm("delete"),))
    return [*_of_description(described), deletion] if described else [deletion]


def _of_description(described: dict[str, Any]) -> list[Section]:
    options, stream = described["table_options"], described["stream_details"]
    lifetime = int(options["time_to_live"])
    current = {
        "lifetime": str(lifetime),
        "versions": str(options["max_versions"]),
        "deviation": str(options["deviation_cell_version_in_sec"]),
    }
    is_on = stream["enable_stream"]
    hours = str(stream.get("expiration_time", 24))
    columns = described["table_meta"].get("defined_column", [])
    return [
        _indexes(described.get("index_metas", [])),
        Section(
            "Defined columns", columns=("Name", "Type"),
            rows=[
                SectionRow(
                    (each["name"], each["type"].removeprefix("DCT_")),
                    (PlacedForm("column_drop", {"column": each["name"]}),),
                )
                for each in columns
            ],
            forms=(PlacedForm("column_new"),), note="" if columns else "No column is defined.",
        ),
        Section(
            "Options",
            (("Time to live", "never" if lifetime < 0 else f"{lifetime:,} seconds"),
             ("Versions", current["versions"])),
            forms=(PlacedForm("options", current),),
        ),
        Section(
            "Stream", (("State", f"enabled, kept for {hours} hours" if is_on else "disabled"),),
            forms=(PlacedForm("stream_off") if is_on else PlacedForm("stream_on", {"hours": hours}),),
        ),
    ]  # fmt: skip


def _indexes(metas: list[dict[str, Any]]) -> Section:
    rows = [
        SectionRow(
            (
                each["name"],
                ", ".join(each.get("primary_key", [])),
                ", ".join(each.get("defined_column", [])),
                "local" if each["index_type"] == "IT_LOCAL_INDEX" else "global",
                "being backfilled" if each.get("index_sync_phase") == "ISP_FULL" else "active",
            ),
            (PlacedForm("index_drop", {"index": each["name"]}),),
        )
        for each in metas
    ]
    note = "" if rows else "The table has no index."
    columns = ("Name", "Key", "Further columns", "Scope", "State")
    return Section("Indexes", columns=columns, rows=rows, forms=(PlacedForm("index_new"),), note=note)


# Operations


async def execute(gateway: Gateway, request: OperationRequest) -> Message:
    """Carry out an operation. Raises ServiceError, Busy."""
    operation = OPERATIONS[request.operation]
    if request.authorization is not None:
        request.authorization.purpose = operation.purpose
    try:
        given = ParseDict(request.document, operation.request())
    except ParseError as error:
        raise invalid(f"{error}.") from None
    message = parse(operation.request, given.SerializePartialToString(), "the ProtoBuf message")
    _, _, instance = request.namespace.partition("/")
    caller = Caller(request.access_id, instance, request.namespace, b"")
    call = CallContext(
        request.operation, message, caller, gateway, gateway.now_ms(), authorization=request.authorization
    )
    return await execute_call(call, operation.handler)


def answer_of(answer: Message) -> Any:
    """Return the JSON document of an answer."""
    return MessageToDict(answer, preserving_proto_field_name=True)


def text_of(error: Exception, operation: str) -> str | None:
    """Return the service's text for an error. None for an error of the server."""
    if not isinstance(error, (ServiceError, GatewayError)):
        return None
    found = service_error_of(error)
    return None if found.status >= 500 else f"{found.code}: {found.message}"


ADMINISTRATION = DialectAdministration(
    DIALECT, "Table Store", f"{Scheme.TABLESTORE.value}/instance", FORMS, PURPOSES, sections, execute,
    answer_of, text_of,
)  # fmt: skip
