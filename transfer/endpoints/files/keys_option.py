"""The key of a table whose format does not tell it: `?keys=pk:S,sk:N`."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from tablegate.gateway.model.values.keys import KeyColumn, KeySchema
from tablegate.gateway.model.values.values import Kind
from tablegate.transfer.errors import BadAddress

KINDS = {"S": Kind.TEXT, "N": Kind.DECIMAL, "B": Kind.BYTES, "I": Kind.INT64}
"""DynamoDB's letters, and I for the 64-bit integers that keys of Table Store are."""


def keys_of(options: Mapping[str, str], shown: str) -> KeySchema | None:
    """The key schema that the options name, if they do: the first column is the partition's. Raises BadAddress."""
    spelled = options.get("keys")
    if spelled is None:
        return None
    columns = []
    for part in spelled.split(","):
        name, colon, letter = part.rpartition(":")
        if not colon or not name or letter not in KINDS:
            raise BadAddress(f"{shown}: keys={spelled}: a key is written NAME:S, NAME:N, NAME:B or NAME:I")
        columns.append(KeyColumn(unquote(name), KINDS[letter]))
    if len(columns) > 4 or len({column.name for column in columns}) < len(columns):
        raise BadAddress(f"{shown}: keys={spelled}: a key has one to four columns of different names")
    return KeySchema((columns[0],), tuple(columns[1:]))


def keys_missing(shown: str) -> BadAddress:
    """What to say where nobody tells the key."""
    return BadAddress(
        f"{shown} does not say what the table's key is: add ?keys=NAME:S or ?keys=NAME:S,NAME:N"
    )
