"""The reset of all tables, of a namespace or of some tables: drop them, or delete their rows."""

from __future__ import annotations

from typing import Any

from tablegate.gateway.control.answers import (
    BadRequest,
    OperationRejected,
    members_of,
    names_of,
    namespace_of,
    run,
)
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.features.history.backup_commands import ResetTables
from tablegate.gateway.model.errors import TableMissing

MODES = ("tables", "rows")


def reset(engine: Engine, given: dict[str, Any]) -> dict[str, Any]:
    """Drop tables (`mode` "tables", the default) or delete their rows ("rows"). Returns the number of tables.

    `namespace` and `tables` limit the reset. Raises BadRequest, OperationRejected, GatewayError.
    """
    members = members_of(given, namespace=str, tables=list, mode=str)
    mode = members.get("mode", "tables")
    if mode not in MODES:
        raise BadRequest(f"mode must be one of {', '.join(MODES)}")
    names = names_of(members.get("tables"), "tables")
    command = ResetTables(namespace_of(members), names, keeps_definitions=mode == "rows")
    try:
        return {"tables": run(engine, command)}
    except TableMissing as error:
        raise OperationRejected(404, f"there is no table {error.name[:255]}") from None
