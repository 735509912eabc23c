"""Names: which ones the service accepts for tables, columns and indexes.

Binds what Table Store creates, never what it reads: a column that DynamoDB named `#h` is returned as it is, and legal again
where foreign_names.py finds it.
"""

from __future__ import annotations

import re
from collections.abc import Container
from functools import lru_cache

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@lru_cache(maxsize=4096)
def is_name(name: str) -> bool:
    """Whether a name can be given to a table, an index, a key column or a defined one."""
    return len(name) <= limits.NAME_MAX_BYTES and _NAME.fullmatch(name) is not None


def check_table_name(name: str) -> None:
    """Raises ServiceError for what cannot be the name of a table made here."""
    if not is_name(name):
        raise invalid(f"Invalid table name: '{name}'.")


def check_schema_name(name: str) -> None:
    """Raises ServiceError for what cannot be the name of a column of a schema made here."""
    if not is_name(name):
        raise ColumnNameInvalid(name)


class ColumnNameInvalid(ServiceError):
    """A name that Table Store gives no column."""

    def __init__(self, name: str) -> None:
        super().__init__("OTSParameterInvalid", f"Invalid column name: '{name}'.")


@lru_cache(maxsize=4096)
def is_column_name(name: str) -> bool:
    """Whether an attribute can be given a name: the service takes what the documents do not, `price-2`, `公司` and `.abc`.

    Source: aliyun-tablestore-java-sdk, functiontest/ParameterLegalityTest, testValidColumnName and testInvalidColumnName.
    """
    return name != "" and name[0] != "#" and len(name.encode()) <= limits.NAME_MAX_BYTES


def check_column_name(name: str, known: Container[str] = ()) -> None:
    """Raises ColumnNameInvalid for what no attribute is called, except it is one of the `known` names."""
    if not is_column_name(name) and name not in known:
        raise ColumnNameInvalid(name)
