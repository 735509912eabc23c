"""Forms with which the console creates and deletes Azure tables (gateway/dialects/administration_forms.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tablegate.adapters.azuretable import DIALECT
from tablegate.adapters.azuretable.call import CallContext, OperationReply
from tablegate.adapters.azuretable.flavours import STORAGE
from tablegate.adapters.azuretable.operation_table import PLAIN, operation_of, purpose_of
from tablegate.adapters.azuretable.shared_access import Grant
from tablegate.adapters.azuretable.wire.addresses import Address, TableEntry, TableSet
from tablegate.adapters.azuretable.wire.errors import ServiceError, service_error_of
from tablegate.gateway.dialects.adapter import DialectAdministration
from tablegate.gateway.dialects.administration_forms import (
    Describe,
    Field,
    Form,
    OperationRequest,
    PlacedForm,
    Section,
    Values,
    typed_name,
)
from tablegate.gateway.dialects.dialect import Gateway
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.authorization.permissions import Purpose
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.security.credentials import DEV_AZURE_ACCOUNT, Scheme

_CREATE, _DELETE = "POST TableSet", "DELETE TableEntry"
PURPOSES: Mapping[str, Purpose] = {
    _CREATE: purpose_of(TableSet(), "POST", PLAIN),
    _DELETE: purpose_of(TableEntry(""), "DELETE", PLAIN),
}


def _created(table: Table | None, values: Values) -> dict[str, Any]:
    return {"TableName": values["name"]}


def _deleted(table: Table | None, values: Values) -> dict[str, Any]:
    assert table is not None
    typed_name(table, values, table.azure_name)
    return {"TableName": table.azure_name}


FORMS: Mapping[str, Form] = {
    "create": Form(
        _CREATE, "Create table", _created, "The table was created.",
        (Field("name", "Table name", hint="3 to 63 letters and digits. The first is a letter.", is_required=True),),
    ),
    "delete": Form(
        _DELETE, "Delete table", _deleted, "The table was deleted.",
        (Field("typed", "Type the name of the table", is_required=True),),
        title="Delete this table and all its entities", is_dangerous=True,
    ),
}  # fmt: skip


def sections(table: Table, describe: Describe) -> list[Section]:
    """Return the settings of a table."""
    return [Section("Delete", forms=(PlacedForm("delete"),))]


async def execute(gateway: Gateway, request: OperationRequest) -> OperationReply:
    """Carry out an operation. Raises ServiceError."""
    method = request.operation.partition(" ")[0]
    _, _, account = request.namespace.partition("/")
    resource = TableSet() if request.operation == _CREATE else TableEntry(request.document["TableName"])
    body = orjson.dumps(request.document) if method == "POST" else b""
    sent = Request(method, "/", (("accept", "application/json;odata=nometadata"),), body)
    sent.authorization = request.authorization
    if sent.authorization is not None:
        sent.authorization.purpose = PURPOSES[request.operation]
    address = Address(account or DEV_AZURE_ACCOUNT, False, "", resource)
    call = CallContext(sent, address, method, {}, "", request.namespace, Grant(), gateway, STORAGE)
    return await operation_of(call).handler(call, resource)


def answer_of(answer: OperationReply) -> Any:
    """Return the JSON document of an answer."""
    return orjson.loads(answer.body) if answer.body else {}


def text_of(error: Exception, operation: str) -> str | None:
    """Return the service's text for an error. None for an error of the server."""
    if not isinstance(error, (ServiceError, GatewayError)):
        return None
    found = error if isinstance(error, ServiceError) else service_error_of(error)
    return None if found.status >= 500 else f"{found.code}: {found.text}"


ADMINISTRATION = DialectAdministration(
    DIALECT, "Azure Table", f"{Scheme.AZURE.value}/{DEV_AZURE_ACCOUNT}", FORMS, PURPOSES, sections, execute,
    answer_of, text_of,
)  # fmt: skip
