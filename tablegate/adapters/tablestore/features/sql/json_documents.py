"""JSON documents and their paths, in the meaning of MySQL 5.7.

Sources: "JSON functions" of Tablestore's SQL, and "JSON Path Syntax" of the MySQL 5.7 reference manual.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from tablegate.adapters.tablestore.features.sql.sql_values import sql_error
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError

_STEP = re.compile(
    r"""\s*(?:
        \.\s*(?: (?P<members>\*) | (?P<quoted>"(?:[^"\\]|\\.)*") | (?P<name>[^\W\d][\w$]*|\$[\w$]*) )
        | \[\s*(?: (?P<elements>\*) | (?P<index>\d{1,9}) )\s*\]
        | (?P<descendants>\*\*)
    )""",
    re.VERBOSE,
)


class _Wildcard(Enum):
    """A step to several values. DESCENDANTS: the value itself and all values inside it."""

    MEMBERS = ".*"
    ELEMENTS = "[*]"
    DESCENDANTS = "**"


_CONTAINERS = {_Wildcard.MEMBERS: dict, _Wildcard.ELEMENTS: list}
_Step = str | int | _Wildcard
"""A step of a path: to a member, to an element, or to several values."""


class _Path(NamedTuple):
    """The steps of a path."""

    steps: tuple[_Step, ...]

    @property
    def has_wildcard(self) -> bool:
        return any(isinstance(step, _Wildcard) for step in self.steps)


_Places = dict[tuple[int, str | int], Any]
"""Values by their places: the identity of the object or array around each, and its name or number there."""


def extract(text: str, *paths: str) -> str | None:
    """Return the values at paths in a document, as the text of one document. Raises ServiceError.

    Several paths, or one with a wildcard, give an array of what they find. The result is None if nothing is found.
    """
    document, parsed = _parsed(text), [_path(each) for each in paths]
    left = limits.SQL_JSON_VISITS_MAX
    found: list[Any] = []
    for path in parsed:
        places: _Places = {(0, 0): document}
        for step in path.steps:
            left -= len(places)
            places = dict(_reached(places, step))
            left -= len(places)
            if left < 0:
                raise sql_error("The paths of JSON_EXTRACT find too many values.")
        found += places.values()
    if not found:
        return None
    texts = list(_texts(found))
    is_array = len(parsed) > 1 or parsed[0].has_wildcard
    return _valid_text(f"[{', '.join(texts)}]" if is_array else texts[0])


def _texts(values: Sequence[Any]) -> Iterator[str]:
    """Yield the documents of values. Each can be the whole document. Raises ServiceError."""
    left = limits.SQL_TEXT_MAX
    for value in values:
        text = json.dumps(value, ensure_ascii=False)
        left -= len(text)
        if left < 0:
            raise sql_error("The result of a function is too long.")
        yield text


def unquote(text: str) -> str:
    """Return the text of a JSON string, and any other text as it is. Raises ServiceError."""
    if len(text) < 2 or not (text.startswith('"') and text.endswith('"')):
        return text
    value = _parsed(text)
    return value if isinstance(value, str) else text


# Documents


def _parsed(text: str) -> Any:
    if sum(map(text.count, ",[{")) >= limits.SQL_JSON_VALUES_MAX:
        raise sql_error(f"A JSON document has more than {limits.SQL_JSON_VALUES_MAX} values.")
    try:
        document = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_int=_whole,
            parse_float=_finite,
        )
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        raise _invalid() from None
    _check_depth(document)
    if isinstance(document, str):
        _valid_text(document)
    return document


def _object(members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Its first member of a name counts, and short names are first."""
    unique = dict(reversed(members))
    return dict(sorted(unique.items(), key=lambda member: (len(member[0].encode()), member[0].encode())))


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _whole(text: str) -> int | float:
    if len(text) > 20:
        return _finite(text)
    number = int(text)
    return number if -(2**63) <= number < 2**64 else float(number)


def _finite(text: str) -> float:
    number = float(text[: limits.SQL_JSON_DIGITS_MAX])
    if len(text) > limits.SQL_JSON_DIGITS_MAX or number in (float("inf"), float("-inf")):
        raise ValueError(text[:40])
    return number


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(limits.SQL_JSON_DEPTH_MAX):
        level = [inner for value in level for _, inner in _inside(value)]
        if not level:
            return
    raise _too_deep()


def _valid_text(text: str) -> str:
    """Return a text. Raises ServiceError if it has half of a surrogate pair, which no client can decode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _invalid() from None
    return text


def _invalid() -> ServiceError:
    return sql_error("Invalid JSON text.")


def _too_deep() -> ServiceError:
    return sql_error("The JSON document exceeds the maximum depth.")


# Paths


@lru_cache(maxsize=256)
def _path(text: str) -> _Path:
    """Return a path. Raises ServiceError."""
    steps: list[_Step] = []
    path = text.strip()
    at = 1
    while at < len(path) and len(steps) < limits.SQL_JSON_STEPS_MAX:
        found = _STEP.match(path, at)
        if found is None:
            break
        at = found.end()
        steps.append(_step(found))
    if not path.startswith("$") or at < len(path) or (steps and steps[-1] is _Wildcard.DESCENDANTS):
        raise sql_error("Invalid JSON path expression.")
    return _Path(tuple(steps))


def _step(found: re.Match[str]) -> _Step:
    if found["name"] is not None:
        return found["name"]
    if found["index"] is not None:
        return int(found["index"])
    if found["quoted"] is not None:
        return unquote(found["quoted"])
    return _Wildcard[str(found.lastgroup).upper()]


def _reached(places: _Places, step: _Step) -> Iterator[tuple[tuple[int, str | int], Any]]:
    """Yield what a step reaches from the values at places. Element 0 of any other value than an array is the value."""
    if step is _Wildcard.DESCENDANTS:
        yield from _descendants(places)
        return
    for place, value in places.items():
        if step == 0 and not isinstance(value, list):
            yield place, value
        elif isinstance(step, _Wildcard):
            if isinstance(value, _CONTAINERS[step]):
                yield from (((id(value), name), inner) for name, inner in _inside(value))
        elif isinstance(step, str):
            if isinstance(value, dict) and step in value:
                yield (id(value), step), value[step]
        elif isinstance(value, list) and step < len(value):
            yield (id(value), step), value[step]


def _descendants(places: _Places) -> Iterator[tuple[tuple[int, str | int], Any]]:
    """Yield the values at places and those inside them, each once."""
    pending = list(reversed(places.items()))
    seen = set()
    while pending:
        place, value = pending.pop()
        if place not in seen:
            seen.add(place)
            yield place, value
            inside = [((id(value), name), inner) for name, inner in _inside(value)]
            pending += reversed(inside)


def _inside(value: Any) -> Iterator[tuple[str | int, Any]]:
    """Yield the members of an object or the elements of an array, with their names or numbers."""
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)
