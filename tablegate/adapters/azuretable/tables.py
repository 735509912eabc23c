"""Tables: query, create, delete, and their stored access policies."""

from __future__ import annotations

import dataclasses
from typing import Any

import orjson

from tablegate.adapters.azuretable import DIALECT, keys, queries, xml_documents
from tablegate.adapters.azuretable.call import CallContext, OperationReply, find_table, find_table_now
from tablegate.adapters.azuretable.entities import entity_parser, entity_renderer
from tablegate.adapters.azuretable.entities.entities import preference_of
from tablegate.adapters.azuretable.entities.entity_renderer import MetadataLevel
from tablegate.adapters.azuretable.queries import bytes_of, check_options, token_of, top_of
from tablegate.adapters.azuretable.shared_access import Action, Grant, Policy, SharedAccess
from tablegate.adapters.azuretable.wire import limits
from tablegate.adapters.azuretable.wire.addresses import EntitySet, TableEntry, TableSet, quoted
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.gateway.model.commands.table_commands import AlterTable, CreateTable, DropTable, ListTables
from tablegate.gateway.model.errors import TableMissing
from tablegate.gateway.model.expressions.evaluation import matches
from tablegate.gateway.model.tables.tables import State, Table
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import text


async def query(call: CallContext, resource: TableSet) -> OperationReply:
    """GET /Tables: a page of the tables that match $filter and that the caller may list. Raises ServiceError."""
    call.grant.check(Action.LIST_TABLES)
    level = entity_renderer.level_of(call.options.get("$format") or call.request.header("accept"))
    check_options(call)
    top = top_of(call)
    predicate = queries.read_filter(call.options.get("$filter", ""), keys.OWN_SCHEMA)
    token = call.options.get("NextTableName")
    after = bytes_of(token).decode("utf-8", "replace") if token else ""
    page: list[Table] = []
    name_of = call.flavour.name_of
    has_more = top > 0
    while has_more and len(page) <= top:
        tables = await ListTables(
            call.namespace, after, limits.PAGE_MAX_ENTITIES + 1, call.flavour.by_azure_name
        )
        has_more = len(tables) > limits.PAGE_MAX_ENTITIES
        page += [
            table
            for table in tables
            if _is_shown(call, table) and matches(predicate, _as_row(name_of(table)))
        ]
        after = name_of(tables[-1]) if tables else after
    headers = [("Content-Type", entity_renderer.content_type(level))]
    if len(page) > top > 0:
        page = page[:top]
        headers.append(("x-ms-continuation-NextTableName", token_of(name_of(page[-1]).encode())))
    members = [_member(call, level, name_of(table)) for table in page]
    head = {} if level is MetadataLevel.NONE else {"odata.metadata": f"{call.origin}/$metadata#Tables"}
    return OperationReply(200, headers, orjson.dumps({**head, "value": members}))


def _is_shown(call: CallContext, table: Table) -> bool:
    return table.state_at(call.gateway.now_ms()) is not State.DELETING


def _as_row(name: str) -> Row:
    return Row(Position(b"", b""), Contents.of_values({"TableName": text(name)}), 0)


def _member(call: CallContext, level: MetadataLevel, name: str) -> dict[str, Any]:
    if level is not MetadataLevel.FULL:
        return {"TableName": name}
    return {
        "odata.type": f"{call.address.account}.Tables",
        "odata.id": f"{call.origin}/Tables('{quoted(name)}')",
        "odata.editLink": f"Tables('{quoted(name)}')",
        "TableName": name,
    }


def _table_document(call: CallContext, level: MetadataLevel, name: str) -> bytes:
    head = (
        {} if level is MetadataLevel.NONE else {"odata.metadata": f"{call.origin}/$metadata#Tables/@Element"}
    )
    return orjson.dumps({**head, **_member(call, level, name)})


async def get(call: CallContext, resource: TableEntry) -> OperationReply:
    """GET /Tables('T'): one table as an entry of the set of tables. Raises ServiceError."""
    call.grant.check(Action.LIST_TABLES)
    level = entity_renderer.level_of(call.options.get("$format") or call.request.header("accept"))
    table = await _existing(call, resource.name)
    return OperationReply(
        200,
        [("Content-Type", entity_renderer.content_type(level))],
        _table_document(call, level, call.flavour.name_of(table)),
    )


async def create(call: CallContext, resource: TableSet) -> OperationReply:
    """POST /Tables: create a table. Raises ServiceError, TableExists, TableBusy."""
    call.grant.check(Action.CREATE_TABLE)
    level = entity_renderer.level_of(call.options.get("$format") or call.request.header("accept"))
    name = entity_parser.document_of(call.request.body).get("TableName")
    if name is None:
        raise ServiceError("PropertiesNeedValue")
    if not isinstance(name, str):
        raise ServiceError("InvalidInput")
    call.flavour.check_new_name(name)
    ignoring_case = call.flavour.by_azure_name
    await CreateTable(DIALECT, call.namespace, name, keys.OWN_SCHEMA, ignoring_case=ignoring_case)
    location = f"{call.origin}/Tables('{quoted(name)}')"
    headers = [("Location", location)]
    preference = preference_of(call)
    if preference is not None:
        headers.append(("Preference-Applied", preference))
    if preference == "return-no-content":
        return OperationReply(204, [*headers, ("DataServiceId", location)])
    headers.append(("Content-Type", entity_renderer.content_type(level)))
    return OperationReply(201, headers, _table_document(call, level, name))


async def delete(call: CallContext, resource: TableEntry) -> OperationReply:
    """DELETE /Tables('T'): drop a table. Raises ServiceError, TableBusy."""
    call.grant.check(Action.DELETE_TABLE)
    table = await _existing(call, resource.name)
    delay_ms = int(call.gateway.settings.table_deletion_delay * 1000)
    await DropTable(table, delay_ms)
    return OperationReply(204)


async def _existing(call: CallContext, name: str) -> Table:
    """Return the table as an entry of the set of tables. Raises ServiceError ResourceNotFound if it is missing."""
    try:
        return await find_table_now(call, name)
    except TableMissing:
        raise ServiceError("ResourceNotFound") from None


async def get_access_policies(call: CallContext, resource: EntitySet) -> OperationReply:
    """GET or HEAD of /T?comp=acl: the table's stored access policies, as XML. Raises ServiceError, TableMissing."""
    call.grant.check(Action.ACCESS_POLICY, resource.table)
    table = await find_table_now(call, resource.table)
    body = b"" if call.method == "HEAD" else xml_documents.policies_xml(_policies_of(table))
    return OperationReply(200, [("Content-Type", "application/xml")], body)


async def set_access_policies(call: CallContext, resource: EntitySet) -> OperationReply:
    """PUT /T?comp=acl: replace the stored access policies by those of the XML body.

    Raises ServiceError, TableMissing.
    """
    call.grant.check(Action.ACCESS_POLICY, resource.table)
    policies = xml_documents.read_policies(call.request.body)
    table = await find_table(call, resource.table)
    own = {
        **table.properties.get(DIALECT, {}),
        "policies": [dataclasses.asdict(policy) for policy in policies],
    }
    await AlterTable(DIALECT, table, properties={DIALECT: own})
    return OperationReply(204)


def _policies_of(table: Table) -> list[Policy]:
    return [Policy(**stored) for stored in table.properties.get(DIALECT, {}).get("policies", ())]


async def with_stored_policy(call: CallContext, access: SharedAccess) -> CallContext:
    """Return a call with its token completed by the stored policy that it names."""
    assert access.table is not None  # account tokens name no policy
    table = await find_table(call, access.table)
    complete = access.with_policy(_policies_of(table), call.gateway.now_ms() / 1000)
    return dataclasses.replace(call, grant=Grant(complete))
