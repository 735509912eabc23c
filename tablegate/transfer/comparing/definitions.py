"""Differences between the definitions of two tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tablegate.transfer.comparing.reports import TableDifference
from tablegate.transfer.comparing.sides import TablePair
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.mapping.mapping import Mapping


def table_differences(pair: TablePair, strict: bool) -> list[TableDifference]:
    """Return a name that differs only in case, and indexes, expiry and streams that a copy would have had.

    The latter make the tables different only if `strict`.
    """
    first, second = (side.definition for side in pair.sides)
    differences = []
    is_cased = all(side.endpoint.service is not Service.AZURE_TABLE for side in pair.sides)
    if first.name != second.name and first.name.lower() == second.name.lower() and is_cased:
        differences.append(TableDifference("case of the name", first.name, second.name, True))
    target = pair.sides[1].endpoint.service
    renamed = dataclasses.replace(first, name=second.name)
    expected = Mapping(renamed, target, None, pair.options.mapping).definition
    for aspect, describe in _DESCRIBED.items():
        first_text, second_text = describe(expected), describe(second)
        if first_text != second_text:
            differences.append(TableDifference(aspect, first_text, second_text, strict))
    return differences


def _indexes(definition: Definition) -> str:
    names = [index.name for index in definition.indexes]
    names += [index.name for index in definition.other_indexes]
    return ", ".join(sorted(names)) or "none"


def _expiry(definition: Definition) -> str:
    rule = definition.rules.expiry
    if rule is None:
        return "none"
    return rule.attribute if rule.attribute is not None else f"after {rule.age_ms} ms"


def _stream(definition: Definition) -> str:
    rule = definition.rules.stream
    return "on" if rule is not None and rule.enabled else "off"


_DESCRIBED: dict[str, Callable[[Definition], str]] = {
    "indexes": _indexes,
    "expiry": _expiry,
    "stream": _stream,
}
