"""Validation of names of tables, columns and indexes.

It applies to names that Table Store creates. A column that DynamoDB named `#h` is returned unchanged, and accepted in
writes as rows/writes.py describes.
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
    """Return True if a name is legal for a table, an index, a key column or a defined column."""
    return len(name) <= limits.NAME_MAX_BYTES and _NAME.fullmatch(name) is not None


def check_table_name(name: str) -> None:
    """Raise ServiceError if the name of a table is illegal."""
    if not is_name(name):
        raise invalid(f"Invalid table name: '{name}'.")


def check_schema_name(name: str) -> None:
    """Raise ServiceError if the name of a key column or defined column is illegal."""
    if not is_name(name):
        raise ColumnNameInvalid(name)


class ColumnNameInvalid(ServiceError):
    """An illegal name of a column."""

    def __init__(self, name: str) -> None:
        super().__init__("OTSParameterInvalid", f"Invalid column name: '{name}'.")


@lru_cache(maxsize=4096)
def is_column_name(name: str) -> bool:
    """Return True if a name is legal for an attribute. Undocumented but legal: `price-2`, `公司` and `.abc`.

    Source: aliyun-tablestore-java-sdk, functiontest/ParameterLegalityTest, testValidColumnName and
    testInvalidColumnName.
    """
    return name != "" and name[0] != "#" and len(name.encode()) <= limits.NAME_MAX_BYTES


def check_column_name(name: str, permitted_names: Container[str] = ()) -> None:
    """Raise ColumnNameInvalid if the name of an attribute is illegal and not one of the `permitted_names` names."""
    if not is_column_name(name) and name not in permitted_names:
        raise ColumnNameInvalid(name)
