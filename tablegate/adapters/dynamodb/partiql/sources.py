"""The tables of statements, authorized before they are looked up."""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.adapters.dynamodb.partiql.nodes import Delete, Exists, Insert, Select, Statement, Update
from tablegate.adapters.dynamodb.wire.call_context import CallContext, find_table
from tablegate.adapters.dynamodb.wire.resources import bare_name
from tablegate.gateway.model.authorization.authorizations import NamedResource
from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.tables.tables import Table

# Tables


_P = Permission
_NEEDED: Mapping[type, tuple[Permission, ...]] = {
    Select: (_P.QUERY, _P.SCAN, _P.READ),
    Insert: (_P.PUT,),
    Update: (_P.UPDATE,),
    Delete: (_P.DELETE,),
    Exists: (_P.CHECK,),
}
"""The alternative permissions for a statement: one of them is needed. Its commands determine which."""


async def find_source(call: CallContext, statement: Statement) -> Table:
    """Return the descriptor of a statement's table. Raises NotPermitted, TableMissing, ServiceError."""
    table, *index = statement.source
    if call.authorization is not None:
        path = "/index/".join([bare_name(table), *index])
        resource = NamedResource(_NEEDED[type(statement)], call.caller.namespace, path)
        call.authorization.require_named([resource])
    return await find_table(call, table)
