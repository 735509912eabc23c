"""The types of SQL: those of mapped columns and those of expressions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid


class SqlType(Enum):
    """The type of an expression. The Python values are int, bool, float, str, bytes, datetime (UTC), date and timedelta."""

    LONG = "bigint"
    BOOL = "boolean"
    DOUBLE = "double"
    STRING = "string"
    BINARY = "binary"
    DATETIME = "datetime"
    DATE = "date"
    TIME = "time"
    NULL = "null"

    @property
    def is_numeric(self) -> bool:
        return self in (SqlType.LONG, SqlType.BOOL, SqlType.DOUBLE)


class IndexField(Protocol):
    """The field of a search index for a column. `source`: the column of the table that has its values.

    `is_virtual`: the values are converted from those of another type.
    """

    @property
    def source(self) -> str: ...

    @property
    def is_virtual(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class SqlColumn:
    """A column of a mapping, or one that a statement computes.

    - `declared`: its type as DESCRIBE shows it.
    - `field`: of the search index that is used.
    - `is_hidden`: only its qualified name means it, as the second column of a USING.
    """

    name: str
    type: SqlType
    declared: str
    is_key: bool = False
    is_nullable: bool = True
    field: IndexField | None = None
    is_hidden: bool = False

    @property
    def is_virtual(self) -> bool:
        """True if its values are those of a virtual field. Then it is not selected itself."""
        return self.field is not None and self.field.is_virtual

    @property
    def stored_name(self) -> str:
        """The name of the column of the table that has its values."""
        return self.field.source if self.field is not None and self.field.is_virtual else self.name


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a result."""

    name: str
    type: SqlType


def sql_error(message: str) -> ServiceError:
    """Return the error for a statement that cannot be run."""
    return invalid(message)


def common_type(types: list[SqlType]) -> SqlType:
    """Return the type of an expression that has one of several values, such as IF and COALESCE."""
    known = {each for each in types if each is not SqlType.NULL}
    if len(known) <= 1:
        return known.pop() if known else SqlType.NULL
    if all(each.is_numeric for each in known):
        return SqlType.DOUBLE if SqlType.DOUBLE in known else SqlType.LONG
    if known <= {SqlType.DATE, SqlType.DATETIME}:
        return SqlType.DATETIME
    return SqlType.STRING
