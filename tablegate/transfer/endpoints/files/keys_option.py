"""The option `?keys=pk:S,sk:N` for formats that do not contain the table's key."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tablegate.transfer.errors import BadAddress

KINDS = {"S": Kind.TEXT, "N": Kind.DECIMAL, "B": Kind.BYTES, "I": Kind.INT64}
"""DynamoDB's letters, and I for the 64-bit integer keys of Table Store."""


def keys_of(options: Mapping[str, str], shown: str) -> KeySchema | None:
    """Parse the key schema in the options, None if there is none. The first column is the partition key. Raises
    BadAddress."""
    option = options.get("keys")
    if option is None:
        return None
    columns = []
    for part in option.split(","):
        name, colon, letter = part.rpartition(":")
        if not colon or not name or letter not in KINDS:
            raise BadAddress(
                f"{shown}: keys={option}: each column must have the form NAME:S, NAME:N, NAME:B or NAME:I"
            )
        columns.append(KeyColumn(unquote(name), KINDS[letter]))
    if len(columns) > 4 or len({column.name for column in columns}) < len(columns):
        raise BadAddress(f"{shown}: keys={option}: a key must have one to four columns with different names")
    return KeySchema((columns[0],), tuple(columns[1:]))


def keys_missing(shown: str) -> BadAddress:
    """Return the error for a missing `keys` option."""
    return BadAddress(
        f"{shown}: the format does not contain the table's key. Add ?keys=NAME:S or ?keys=NAME:S,NAME:N"
    )
