"""Names: which ones the service accepts for tables, columns and indexes.

Binds what Table Store creates, never what it reads: a column that DynamoDB named `my-attr` is returned as it is.
"""

from __future__ import annotations

import re
from functools import lru_cache

from adapters.tablestore import limits
from adapters.tablestore.errors import invalid

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@lru_cache(maxsize=4096)
def is_name(name: str) -> bool:
    """Whether a name can be given to a table, an index or a column."""
    return len(name) <= limits.NAME_MAX_BYTES and _NAME.fullmatch(name) is not None


def check_table_name(name: str) -> None:
    """Raises ServiceError for what cannot be the name of a table made here."""
    if not is_name(name):
        raise invalid(f"Invalid table name: '{name}'.")


def check_column_name(name: str) -> None:
    """Raises ServiceError for what cannot be the name of a column made here."""
    if not is_name(name):
        raise invalid(f"Invalid column name: '{name}'.")


def check_column_asked(name: str) -> None:
    """Raises ServiceError for what no column is called, when it is to be read or compared. What Table Store would not
    create may be there all the same, if another dialect wrote it.

    Source: aliyun-tablestore-java-sdk, functiontest/ParameterLegalityTest (names that begin with #, or are too long).
    """
    if not name or name[0] == "#" or len(name.encode()) > limits.NAME_MAX_BYTES:
        raise invalid(f"Invalid column name: '{name}'.")
