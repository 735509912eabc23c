"""Random requests to the Table service, as hypothesis strategies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from tests.support.differential import Asked

Drawn = st.SearchStrategy[Any]

# Values as JSON, with the annotation of their type, and as literals of a filter

TEXTS = ("", "x", "xy", "y", "it's", "é", "\ufffd", "10")
INT32 = (0, 1, -1, 10, 2**31 - 1, -(2**31))
INT64 = ("0", "1", "-1", "10", "5454161346626", "9223372036854775807")
DOUBLES = (0.5, -1.5, 1.0, 1e300)
GUIDS = ("c9da6455-213d-42c9-9a79-3e9149a57833", "0a000000-0000-0000-0000-000000000000")
TIMES = ("2024-02-29T12:34:56.789Z", "2024-02-29T12:34:56Z", "1999-12-31T00:00:00.0000001Z")
BYTES = {"": "", "AA==": "00", "/w==": "ff", "AP8=": "00ff"}

PROPERTIES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "s": ("", TEXTS),
    "i": ("", INT32),
    "l": ("Edm.Int64", INT64),
    "d": ("Edm.Double", DOUBLES),
    "b": ("", (True, False)),
    "g": ("Edm.Guid", GUIDS),
    "t": ("Edm.DateTime", TIMES),
    "x": ("Edm.Binary", tuple(BYTES)),
}
"""Names of properties with the type and values that they usually have."""


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


LITERALS = {
    "s": [quoted(text) for text in TEXTS],
    "i": [str(number) for number in INT32],
    "l": [f"{number}L" for number in INT64],
    "d": ["0.5", "-1.5", "1.0"],  # Azurite finds nothing by an exponent
    "b": ["true", "false"],
    "g": [f"guid'{guid}'" for guid in GUIDS],
    "t": [f"datetime'{time}'" for time in TIMES],
    "x": [f"X'{digits}'" for digits in BYTES.values()],
}

KEYS = st.sampled_from(["p", "q", "pq"])
keys = st.fixed_dictionaries({"PartitionKey": KEYS, "RowKey": KEYS})


def annotated(values: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    """Return properties with their annotations: `values` has a type and a value of each name."""
    entity: dict[str, Any] = {}
    for name, (kind, value) in values.items():
        entity[name] = value
        if kind:
            entity[f"{name}@odata.type"] = kind
    return entity


def of_type(name: str) -> Drawn:
    kind, values = PROPERTIES[name]
    return st.tuples(st.just(kind), st.sampled_from(values))


other = st.one_of([of_type(name) for name in PROPERTIES])
properties = st.fixed_dictionaries(
    {}, optional={**{name: of_type(name) for name in PROPERTIES}, "other": other | st.just(("", None))}
).map(annotated)

# Filters

comparators = st.sampled_from(["eq", "ne", "gt", "ge", "lt", "le"])
operands = (
    st.sampled_from(list(PROPERTIES)).flatmap(
        lambda name: st.tuples(st.just(name), st.sampled_from(LITERALS[name]))
    )
    | st.tuples(st.sampled_from(["PartitionKey", "RowKey"]), KEYS.map(quoted))
    | st.tuples(st.sampled_from("id"), st.sampled_from(LITERALS["i"] + LITERALS["d"]))
    | st.tuples(st.just("absent"), st.sampled_from(LITERALS["s"] + LITERALS["i"]))
)
simple = st.one_of(
    st.builds(lambda pair, operator: f"{pair[0]} {operator} {pair[1]}", operands, comparators),
    st.builds(lambda pair, operator: f"{pair[1]} {operator} {pair[0]}", operands, comparators),
    st.sampled_from(["b", "true", "false"]),
)
filters = st.recursive(
    simple,
    lambda inner: (
        st.builds("({}) {} ({})".format, inner, st.sampled_from(["and", "or"]), inner)
        | inner.map("not ({})".format)
    ),
    max_leaves=3,
)
selections = st.lists(
    st.sampled_from([*PROPERTIES, "PartitionKey", "RowKey", "Timestamp"]), min_size=1, max_size=4, unique=True
).map(",".join)

# Requests


def asked(
    operation: str, required: Mapping[str, Drawn], optional: Mapping[str, Drawn] | None = None
) -> Drawn:
    return st.fixed_dictionaries(dict(required), optional=dict(optional or {})).map(
        lambda given: (operation, given)
    )


levels = st.sampled_from(["nometadata", "minimalmetadata", "fullmetadata"])
entities = st.builds(dict.__or__, keys, properties)
changes = {"key": keys, "entity": properties}
etags = {"If-Match": st.sampled_from(["*", "W/\"datetime'2024-01-01T00%3A00%3A00.0000000Z'\""])}


def requests() -> st.SearchStrategy[Asked]:
    """One request to a table, without its name."""
    return st.one_of(
        asked("Insert", {"entity": entities}, {"level": levels}),
        asked("Insert", {"entity": entities}, {"level": levels}),
        asked("Replace", changes, etags),
        asked("Merge", changes, etags),
        asked("Delete", {"key": keys, **etags}),
        asked("Get", {"key": keys}, {"select": selections, "level": levels}),
        asked(
            "Query", {"filter": filters}, {"select": selections, "top": st.integers(1, 3), "level": levels}
        ),
        asked("Query", {}, {"select": selections, "top": st.integers(1, 3)}),
    )
