"""Parts of a table for parallel reading: ranges of PartitionKey, or of RowKey where all rows are in one partition.

The service tells neither counts nor split points. Which keys there are is found by probes that ask for the first key behind a
place, one for each character that keys go on with; the places found are dealt out evenly. The parts are therefore of unequal
size, but together they are always the whole table, whatever is written meanwhile. Keys are ordered by UTF-16 code units.

A range is a dictionary: `partition` (rows of one PartitionKey), and `from` (inclusive), `after` (exclusive) and `to` (exclusive)
of the RowKey if it has a partition, else of the PartitionKey.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Range = dict[str, str]

_PROBES = 32
_PROBES_PER_RANGE = 8


def filter_of(bounds: Range) -> str:
    """The $filter of a range; "" for the whole table."""
    column = "RowKey" if "partition" in bounds else "PartitionKey"
    parts = [f"PartitionKey eq {quoted(bounds['partition'])}"] if "partition" in bounds else []
    for name, operator in (("from", "ge"), ("after", "gt"), ("to", "lt")):
        if name in bounds:
            parts.append(f"{column} {operator} {quoted(bounds[name])}")
    return " and ".join(parts)


def quoted(text: str) -> str:
    """A text as a literal of OData."""
    return "'" + text.replace("'", "''") + "'"


FirstKey = Callable[[Range], tuple[str, str] | None]
"""The first key of a range, or None: it is empty."""


def divide(wanted: int, first_key: FirstKey) -> list[Range]:
    """About `wanted` ranges that together are the whole table."""
    first = first_key({})
    if wanted <= 1 or first is None:
        return [{}]
    partition = first[0]
    if first_key({"after": partition}) is None:
        # One partition. What lies beside it belongs to the whole table too, should it ever come.
        starts = _starts(wanted, lambda bounds: _second(first_key({"partition": partition, **bounds})))
        return [
            {"to": partition},
            *({"partition": partition, **bounds} for bounds in _between(starts)),
            {"after": partition},
        ]
    return _between(_starts(wanted, lambda bounds: _first(first_key(bounds))))


def _first(key: tuple[str, str] | None) -> str | None:
    return None if key is None else key[0]


def _second(key: tuple[str, str] | None) -> str | None:
    return None if key is None else key[1]


def _between(starts: list[str]) -> list[Range]:
    """The ranges from one start to the next, and from the lowest to the highest."""
    bounds: list[dict[str, Any]] = []
    for low, high in zip([None, *starts], [*starts, None], strict=True):
        bounds.append(
            ({} if low is None else {"from": low}) | ({} if high is None else {"to": high}),
        )
    return bounds


def _starts(wanted: int, first: Callable[[Range], str | None]) -> list[str]:
    """At most `wanted` - 1 keys at which ranges begin, in order."""
    probes = _PROBES + _PROBES_PER_RANGE * wanted
    prefixes, found = [""], set[str]()
    # Level by level, so that what is found is spread over the table.
    while prefixes and len(found) < 4 * wanted and probes > 0:
        prefix, *prefixes = prefixes
        bounds: Range = {"after": prefix} if prefix else {}
        while probes > 0:
            probes -= 1
            key = first(bounds)
            if key is None or not key.startswith(prefix):
                break
            found.add(key)
            if len(key) == len(prefix):  # only the empty key of the table's beginning
                bounds = {"after": key}
                continue
            group = key[: len(prefix) + 1]
            prefixes.append(group)
            following = _next_character(group[-1])
            if following is None:
                break
            bounds = {"from": prefix + following}
    keys = sorted(found, key=_utf16)[1:]  # the first range begins below the first key
    count = min(wanted, len(keys) + 1)
    return [keys[number * (len(keys) + 1) // count - 1] for number in range(1, count)]


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _next_character(character: str) -> str | None:
    """The character behind one in the order of UTF-16 code units: those above U+FFFF are below U+E000."""
    code = ord(character)
    if code == 0xFFFF:
        return None
    if code == 0xD7FF:
        return "\U00010000"
    if code == 0x10FFFF:
        return "\ue000"
    return chr(code + 1)
