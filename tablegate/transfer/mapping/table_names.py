"""Names of tables in another service: the same name, or a name derived from it if the service does not allow it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tablegate.adapters.azuretable.wire.addresses import check_table_name
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.adapters.dynamodb.wire import limits as dynamodb_limits
from tablegate.adapters.tablestore.wire.names import is_name
from tablegate.gateway.model.tables.tables import azure_name_for
from tablegate.transfer.endpoints.endpoint import Service

_DYNAMODB_NAME = re.compile(r"[a-zA-Z0-9_.-]+")


def is_table_name(service: Service, name: str) -> bool:
    match service:
        case Service.DYNAMODB:
            characters_min, characters_max = (
                dynamodb_limits.TABLE_NAME_MIN_CHARACTERS,
                dynamodb_limits.TABLE_NAME_CHARACTERS,
            )
            return (
                characters_min <= len(name) <= characters_max and _DYNAMODB_NAME.fullmatch(name) is not None
            )
        case Service.AZURE_TABLE:
            try:
                check_table_name(name)
            except ServiceError:
                return False
            return name.lower() != "tables"
        case Service.TABLE_STORE:
            return is_name(name)
        case _:
            return True


def table_name(service: Service, name: str) -> str:
    return table_names(service, [name])[name]


def table_names(service: Service, names: Iterable[str]) -> dict[str, str]:
    """Return a distinct name for each table in a service, without regard to case in Azure Table.

    The result does not depend on the order of `names`.
    """
    names_by_table: dict[str, str] = {}
    used_names: set[str] = set()

    def folded(name: str) -> str:
        return name.lower() if service is Service.AZURE_TABLE else name

    ordered = sorted({*names})
    # Names that can stay are assigned first.
    for name in ordered:
        if is_table_name(service, name) and folded(name) not in used_names:
            names_by_table[name] = name
            used_names.add(folded(name))
    for name in ordered:
        if name not in names_by_table:
            names_by_table[name] = azure_name_for(
                name, lambda lowered: lowered in {used_name.lower() for used_name in used_names}
            )
            used_names.add(folded(names_by_table[name]))
    return names_by_table
