"""Parts of a table for parallel reading: ranges of PartitionKey, or of RowKey if there is one partition only.

The service reports neither counts nor split points. Keys are sampled by probes, each of which returns the first key
after a given one. For each known prefix there is a probe for each next character. The sampled keys are divided
evenly. So parts differ in size, but together they are always the whole table. Keys are ordered by UTF-16 code units.

A range is a dictionary. `partition` selects one PartitionKey. `from` (inclusive), `after` (exclusive) and `to`
(exclusive) limit the RowKey if there is a partition, else the PartitionKey.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Range = dict[str, str]

_PROBES = 32
_PROBES_PER_RANGE = 8


def filter_of(bounds: Range) -> str:
    """Return the $filter of a range, "" for the whole table."""
    column = "RowKey" if "partition" in bounds else "PartitionKey"
    parts = [f"PartitionKey eq {quoted(bounds['partition'])}"] if "partition" in bounds else []
    for name, operator in (("from", "ge"), ("after", "gt"), ("to", "lt")):
        if name in bounds:
            parts.append(f"{column} {operator} {quoted(bounds[name])}")
    return " and ".join(parts)


def quoted(text: str) -> str:
    """Return a text as an OData literal."""
    return "'" + text.replace("'", "''") + "'"


FirstKey = Callable[[Range], tuple[str, str] | None]
"""Return the first key of a range, None if it is empty."""


def divide(count: int, first_key: FirstKey) -> list[Range]:
    """Return about `count` ranges that together are the whole table."""
    first = first_key({})
    if count <= 1 or first is None:
        return [{}]
    partition = first[0]
    if first_key({"after": partition}) is None:
        # There is one partition. The ranges on both sides belong to the table too and may get rows later.
        starts = _starts(count, lambda bounds: _second(first_key({"partition": partition, **bounds})))
        return [
            {"to": partition},
            *({"partition": partition, **bounds} for bounds in _between(starts)),
            {"after": partition},
        ]
    return _between(_starts(count, lambda bounds: _first(first_key(bounds))))


def _first(key: tuple[str, str] | None) -> str | None:
    return None if key is None else key[0]


def _second(key: tuple[str, str] | None) -> str | None:
    return None if key is None else key[1]


def _between(starts: list[str]) -> list[Range]:
    """Return the ranges between the starts, with an open one at each end."""
    bounds: list[dict[str, Any]] = []
    for low, high in zip([None, *starts], [*starts, None], strict=True):
        bounds.append(
            ({} if low is None else {"from": low}) | ({} if high is None else {"to": high}),
        )
    return bounds


def _starts(range_count: int, first: Callable[[Range], str | None]) -> list[str]:
    """Return at most `range_count` - 1 sorted keys at which ranges begin."""
    probes = _PROBES + _PROBES_PER_RANGE * range_count
    prefixes, found_keys = [""], set[str]()
    # Breadth first, so that the found keys are spread over the table.
    while prefixes and len(found_keys) < 4 * range_count and probes > 0:
        prefix, *prefixes = prefixes
        bounds: Range = {"after": prefix} if prefix else {}
        while probes > 0:
            probes -= 1
            key = first(bounds)
            if key is None or not key.startswith(prefix):
                break
            found_keys.add(key)
            if len(key) == len(prefix):  # only the empty key at the beginning of the table
                bounds = {"after": key}
                continue
            group = key[: len(prefix) + 1]
            prefixes.append(group)
            following = _next_character(group[-1])
            if following is None:
                break
            bounds = {"from": prefix + following}
    keys = sorted(found_keys, key=_utf16)[1:]  # the first range begins below the first key
    count = min(range_count, len(keys) + 1)
    return [keys[number * (len(keys) + 1) // count - 1] for number in range(1, count)]


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _next_character(character: str) -> str | None:
    """Return the next character in the order of UTF-16 code units, in which those above U+FFFF are below U+E000."""
    code = ord(character)
    if code == 0xFFFF:
        return None
    if code == 0xD7FF:
        return "\U00010000"
    if code == 0x10FFFF:
        return "\ue000"
    return chr(code + 1)
