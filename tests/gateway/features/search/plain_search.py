"""A plain evaluation of searches on raw columns, by the documentation of the service.

It imports nothing of tablegate. A query is a tuple of its type and its members, with values as clients send them. The
fields are those of KINDS.
"""

from __future__ import annotations

import calendar
import ipaddress
import itertools
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

PlainQuery = tuple[Any, ...]
PlainDocument = Mapping[str, list[Any]]
Scores = dict[Any, float]

KINDS = {
    "k": "keyword", "l": "long", "d": "double", "b": "boolean", "a": "long", "t": "text", "g": "point", "w": "date",
    "i": "address", "n.k": "keyword", "n.l": "long", "n.t": "text",
}  # fmt: skip
ARRAYS = frozenset("a")
NESTED = {"n": ("k", "l", "t")}
EARTH_RADIUS_M = 6_371_008.7714


# Values


def document_of(columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the values of a row by field. Columns whose values do not fit are left out."""
    document = {}
    for name, data in columns.items():
        values = [] if data is None else _values(name, data)
        if values:
            document[name] = values
    return document


def _values(name: str, data: Any) -> list[Any]:
    if name in NESTED:
        objects = _json(data)
        objects = objects if isinstance(objects, list) else [objects]
        if not all(isinstance(each, dict) for each in objects):
            return []
        inner = NESTED[name]
        return [document_of({f"{name}.{member}": each.get(member) for member in inner}) for each in objects]
    if name in ARRAYS:
        elements = _json(data)
        elements = elements if isinstance(elements, list) else [elements]
    else:
        elements = [data]
    values = [value_of(name, each) for each in elements]
    return [] if None in values else values


def _json(data: Any) -> Any:
    try:
        return json.loads(data) if isinstance(data, str) else None
    except json.JSONDecodeError:
        return None


def value_of(name: str, data: Any) -> Any:
    """Return a value that can be compared with others of a field. None if it does not fit."""
    match KINDS[name], data:
        case "boolean", bool():
            return data
        case _, bool():
            return None
        case "long", int():
            return data
        case "double", int() | float():
            return float(data)
        case "date", str():
            return _nanoseconds(data)
        case "date", int():
            return data * 10**6
        case "point", str() if re.fullmatch(r"-?[0-9.]+,-?[0-9.]+", data):
            return tuple(map(float, data.split(",")))
        case "address", str() if re.fullmatch(r"[0-9a-f]*[.:][0-9a-f.:]*", data):
            address = ipaddress.ip_address(data)
            return int(address) if address.version == 6 else int(ipaddress.ip_address(f"::ffff:{address}"))
        case "keyword" | "text", str():
            return data
    return None


def _nanoseconds(text: str) -> int | None:
    """Return the time of "yyyy-MM-dd HH:mm:ss.SSSSSSSSS"."""
    if not re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{9}", text):
        return None
    year, month, day, hour, minute, second, fraction = map(int, re.split(r"[-: .]", text))
    if not 1 <= month <= 12 or not 1 <= day <= calendar.monthrange(year, month)[1]:
        return None
    if hour > 23 or minute > 59 or second > 59:
        return None
    return calendar.timegm((year, month, day, hour, minute, second)) * 10**9 + fraction


def query_value(name: str, data: Any) -> Any:
    """Return a value of a query, which may be the text of a number."""
    if isinstance(data, str) and KINDS[name] in ("long", "double"):
        data = int(data) if KINDS[name] == "long" else float(data)
    return value_of(name, data)


def tokens_of(text: str) -> list[str]:
    """Return the tokens of single_word: lower-case words, and single Chinese characters."""
    tokens = [""]
    for character in text.lower():
        if "\u4e00" <= character <= "\u9fff":
            tokens += [character, ""]
        elif character.isalnum():
            tokens[-1] += character
        else:
            tokens.append("")
    return [token for token in tokens if token]


# Conditions on single values


def is_like(pattern: str, text: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(is_like(pattern[1:], text[start:]) for start in range(len(text) + 1))
    return bool(text) and pattern[0] in ("?", text[0]) and is_like(pattern[1:], text[1:])


def has_phrase(text: str, phrase: str, slop: int) -> bool:
    """Return True if different tokens of the text are those of the phrase, displaced by the slop in all at most."""
    tokens, wanted = tokens_of(text), tokens_of(phrase)
    places = [[place for place, token in enumerate(tokens) if token == each] for each in wanted]
    for chosen in itertools.product(*places):
        shifts = [place - number for number, place in enumerate(chosen)]
        if shifts and len(set(chosen)) == len(chosen) and max(shifts) - min(shifts) <= slop:
            return True
    return False


def distance_m(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the length of the arc between two points: the angle between their vectors."""
    (ax, ay, az), (bx, by, bz) = _vector(a), _vector(b)
    cross = math.hypot(ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)
    return EARTH_RADIUS_M * math.atan2(cross, ax * bx + ay * by + az * bz)


def _vector(point: Sequence[float]) -> tuple[float, float, float]:
    latitude, longitude = math.radians(point[0]), math.radians(point[1])
    flat = math.cos(latitude)
    return flat * math.cos(longitude), flat * math.sin(longitude), math.sin(latitude)


def is_inside(point: Sequence[float], polygon: Sequence[Sequence[float]]) -> bool:
    """Return True if the edges of a polygon turn around a point: the sum of the angles is not 0."""
    total = 0.0
    for a, b in itertools.pairwise([*polygon, polygon[0]]):
        (ay, ax), (by, bx) = [(each[0] - point[0], each[1] - point[1]) for each in (a, b)]
        total += math.atan2(ax * by - ay * bx, ax * bx + ay * by)
    return abs(total) > math.pi


def _test(kind: str, name: str, members: list[Any]) -> Callable[[Any], bool]:
    match kind, members:
        case "exists", []:
            return lambda value: True
        case "terms", [terms]:
            values = [query_value(name, each) for each in terms]
            return lambda value: value in values
        case "range", [lower, upper, includes_lower, includes_upper]:
            low, high = (None if bound is None else query_value(name, bound) for bound in (lower, upper))
            return lambda value: (
                (low is None or value > low or (includes_lower and value == low))
                and (high is None or value < high or (includes_upper and value == high))
            )
        case "prefix", [text]:
            return lambda value: value.startswith(text)
        case "suffix", [text]:
            return lambda value: value.endswith(text)
        case "wildcard", [pattern]:
            return lambda value: is_like(pattern, value)
        case "phrase", [phrase, slop]:
            return lambda value: has_phrase(value, phrase, slop)
        case "box", [(north, west), (south, east)]:
            return lambda value: (
                south <= value[0] <= north
                and (west <= value[1] <= east if west <= east else value[1] >= west or value[1] <= east)
            )
        case "distance", [center, meters]:
            return lambda value: distance_m(center, value) <= meters
        case "polygon", [points]:
            return lambda value: is_inside(value, points)
    raise ValueError(kind)


# Queries


class PlainSearch:
    """Documents by key, and the objects of their nested fields as documents of their own."""

    def __init__(self, documents: Mapping[Any, PlainDocument]) -> None:
        self.documents = documents
        self._by_value: defaultdict[str, defaultdict[Hashable, set[Any]]]
        self._by_value = defaultdict(lambda: defaultdict(set))
        self._tokens: dict[tuple[str, Any], list[str]] = {}
        for key, document in documents.items():
            for name, values in document.items():
                for value in () if name in NESTED else values:
                    self._by_value[name][value].add(key)
                    if KINDS[name] == "text":
                        self._tokens[name, key] = tokens_of(value)
        self._by_token: defaultdict[str, defaultdict[str, set[Any]]]
        self._by_token = defaultdict(lambda: defaultdict(set))
        for (name, key), tokens in self._tokens.items():
            for token in tokens:
                self._by_token[name][token].add(key)
        lengths = {
            name: [len(each) for (field, _), each in self._tokens.items() if field == name] for name in KINDS
        }
        self._lengths = {name: (len(each), sum(each) / len(each)) for name, each in lengths.items() if each}
        self._objects = {
            path: PlainSearch(
                {
                    (key, place): each
                    for key, document in documents.items()
                    for place, each in enumerate(document.get(path, ()))
                }
            )
            for path in NESTED
            if any(path in document for document in documents.values())
        }

    def scores(self, query: PlainQuery) -> Scores:
        """Return the scores of the documents that match."""
        match query:
            case ("all",):
                return dict.fromkeys(self.documents, 1.0)
            case ("bool", must, must_not, filters, should, minimum):
                parts = [[*map(self.scores, each)] for each in (must, must_not, filters, should)]
                return self._bool(parts[0], parts[1], parts[2], parts[3], minimum)
            case ("const", inner):
                return dict.fromkeys(self.scores(inner), 1.0)
            case ("dis_max", alternatives, share):
                return self._dis_max([self.scores(each) for each in alternatives], share)
            case ("functions", inner, weight, condition):
                weighted = self.scores(condition)
                return {
                    key: score * (weight if key in weighted else 1.0)
                    for key, score in self.scores(inner).items()
                }
            case ("factor", inner, name):
                return {
                    key: score * self.documents[key].get(name, [0])[0]
                    for key, score in self.scores(inner).items()
                }
            case ("nested", path, inner, mode):
                return self._nested(path, inner, mode)
            case ("match", name, text, minimum):
                tokens = set(tokens_of(text))
                keys = Counter(key for token in tokens for key in self._by_token[name][token])
                return self._bm25(name, tokens, [key for key, number in keys.items() if number >= minimum])
            case ("terms", "t" | "n.t" as name, values):
                return self._bm25(
                    name, set(values), {key for each in set(values) for key in self._by_token[name][each]}
                )
        return dict.fromkeys(self._matching(query), 1.0)

    def _bool(
        self,
        must: list[Scores],
        must_not: list[Scores],
        filters: list[Scores],
        should: list[Scores],
        minimum: int,
    ) -> Scores:
        found = {}
        for key in self.documents:
            if (
                all(key in each for each in (*must, *filters))
                and not any(key in each for each in must_not)
                and sum(key in each for each in should) >= minimum
            ):
                found[key] = sum(each.get(key, 0.0) for each in (*must, *should))
        return found

    def _dis_max(self, alternatives: list[Scores], share: float) -> Scores:
        found = {}
        for key in set[Any]().union(*alternatives):
            scores = sorted(each[key] for each in alternatives if key in each)
            found[key] = scores.pop() + share * sum(scores)
        return found

    def _nested(self, path: str, inner: PlainQuery, mode: str) -> Scores:
        scores: defaultdict[Any, list[float]] = defaultdict(list)
        if path in self._objects:
            for (key, _), score in self._objects[path].scores(inner).items():
                scores[key].append(score)
        combine: Mapping[str, Callable[[list[float]], float]] = {
            "avg": lambda each: sum(each) / len(each),
            "max": max,
            "min": min,
            "sum": sum,
            "none": lambda each: 0.0,
        }
        return {key: combine[mode](each) for key, each in scores.items()}

    def _bm25(self, name: str, tokens: set[str], keys: Iterable[Any]) -> Scores:
        texts, average = self._lengths[name]
        found = {}
        for key in keys:
            counts = Counter(self._tokens[name, key])
            relative = len(self._tokens[name, key]) / average
            found[key] = 0.0
            for token in tokens:
                frequency = len(self._by_token[name][token])
                rarity = math.log(1 + (texts - frequency + 0.5) / (frequency + 0.5))
                damped = counts[token] * 2.2 / (counts[token] + 1.2 * (0.25 + 0.75 * relative))
                found[key] += rarity * damped
        return found

    def _matching(self, query: PlainQuery) -> set[Any]:
        """Return the documents with a value, or a token, that passes a condition."""
        kind, name, *members = query
        if kind == "exists" and name in NESTED:
            return {key for key, document in self.documents.items() if document.get(name)}
        by_term = self._by_token if KINDS[name] == "text" and kind != "phrase" else self._by_value
        test = _test(kind, name, members)
        return {key for value, keys in by_term[name].items() if test(value) for key in keys}

    # Orders

    def values(self, name: str, key: Any) -> list[Any]:
        """Return the values of a field, those of a nested one in all objects."""
        path, dot, _ = name.partition(".")
        if not dot:
            return self.documents[key].get(name, [])
        return [value for each in self.documents[key].get(path, []) for value in each.get(name, [])]

    def in_order(self, scores: Scores, sorters: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return the keys of scores in an order: stable sorts, from the last sorter to the first."""
        ordered = sorted(scores)
        for kind, descending, *members in reversed(sorters):
            if kind == "key":
                values = {key: key for key in ordered}
            elif kind == "score":
                values = scores
            else:
                values = self._sort_values(kind, members)
            # `reverse` keeps the order of equal ones. Missing values are last in both directions.
            present = [key for key in ordered if values.get(key) is not None]
            present.sort(key=values.__getitem__, reverse=descending)
            ordered = present + [key for key in ordered if values.get(key) is None]
        return ordered

    def _sort_values(self, kind: str, members: list[Any]) -> dict[Any, Any]:
        """Return the values of ("field", _, name, mode, missing, condition) or ("geo", _, name, points)."""
        if kind == "geo":
            name, points = members
            return {
                key: min(
                    (distance_m(point, value) for point in points for value in document.get(name, [])),
                    default=None,
                )
                for key, document in self.documents.items()
            }
        name, mode, missing, condition = members
        choose = {"min": min, "max": max, "avg": lambda each: sum(each) / len(each)}[mode]
        found = {key: self.values(name, key) for key in self.documents}
        if condition is not None:
            path = name.partition(".")[0]
            passing = self._objects[path].scores(condition) if path in self._objects else {}
            found = {
                key: [
                    value
                    for place, each in enumerate(document.get(path, []))
                    if (key, place) in passing
                    for value in each.get(name, [])
                ]
                for key, document in self.documents.items()
            }
        return {key: choose(values) if values else missing for key, values in found.items()}
