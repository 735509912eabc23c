"""Random requests to DynamoDB, as hypothesis strategies.

An expression is drawn as nested tuples of texts, `Name`s and values. `filled` writes placeholders in their places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.support.differential import Asked
from tests.support.live_dynamodb import Index

Drawn = st.SearchStrategy[Any]


@dataclass(frozen=True)
class Name:
    """An attribute name that an expression gives by a placeholder."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table with its keys ("name:T") and indexes."""

    keys: tuple[str, ...]
    indexes: tuple[Index, ...]


TABLES = (
    Table(("pk:S",), (Index("by_g", "g:S", "h:N"), Index("by_h", "h:N", projection="KEYS_ONLY"))),
    Table(
        ("pk:S", "sk:N"),
        (
            Index("by_h", "pk:S", "h:N", local=True, projection="KEYS_ONLY"),
            Index("by_g", "g:S", projection="INCLUDE", included=["a", "m"]),
            Index("inverse", "sk:N", "pk:S"),
        ),
    ),
    Table(("pk:N", "sk:B"), (Index("by_i", "pk:N", "i:B", local=True), Index("by_g", "g:S", "sk:B"))),
)

NAME = "random-table"
"""The name of the table in every request. The tests replace it."""

# Values

TEXTS = ("", "x", "xy", "y", "é", "\U0001f600", "\ufffd")
NUMBERS = (
    "0",
    "-0",
    "1",
    "1.0",
    "1E0",
    "-1.5",
    "2",
    "10",
    "0.1",
    "1E-130",
    "-9.9E125",
    "12345678901234567890123456789012345678",
)
BYTES = ("", "AA==", "/w==", "AP8=", "eA==")


def tagged(tag: str, members: Drawn) -> Drawn:
    return members.map(lambda value: {tag: value})


def distinct(members: tuple[str, ...]) -> Drawn:
    return st.lists(st.sampled_from(members), min_size=1, max_size=3, unique=True)


texts = tagged("S", st.sampled_from(TEXTS))
numbers = tagged("N", st.sampled_from(NUMBERS))
binaries = tagged("B", st.sampled_from(BYTES))
scalars = texts | numbers | binaries | tagged("BOOL", st.booleans()) | st.just({"NULL": True})
text_sets, number_sets = tagged("SS", distinct(TEXTS)), tagged("NS", distinct(NUMBERS))
sets = text_sets | number_sets | tagged("BS", distinct(BYTES))
documents = st.recursive(
    scalars | sets,
    lambda inner: (
        tagged("L", st.lists(inner, max_size=3))
        | tagged("M", st.dictionaries(st.sampled_from("xyz"), inner, max_size=3))
    ),
    max_leaves=4,
)
lists = tagged("L", st.lists(documents, max_size=3))
maps = tagged("M", st.dictionaries(st.sampled_from("xyz"), documents, max_size=3))

KEYS = {
    "S": tagged("S", st.sampled_from(["x", "xy", "é"])),
    "N": tagged("N", st.sampled_from(["-1.5", "1", "1.0", "1E1"])),
    "B": tagged("B", st.sampled_from(["AA==", "/w=="])),
}
ATTRIBUTES = {"a": documents, "g": KEYS["S"], "h": numbers, "i": KEYS["B"], "l": lists, "m": maps, "n": numbers,
              "s": texts, "t": text_sets, "u": number_sets}  # fmt: skip


def key(table: Table) -> Drawn:
    return st.fixed_dictionaries(
        {name: KEYS[kind] for name, _, kind in (each.partition(":") for each in table.keys)}
    )


def item(table: Table) -> Drawn:
    attributes = st.fixed_dictionaries({}, optional=ATTRIBUTES)
    return st.builds(lambda one, other: {**other, **one}, key(table), attributes)


# Expressions


def words(*parts: Any) -> Drawn:
    """Draw the parts of an expression one after the other. Texts and names stand for themselves."""
    return st.tuples(*(part if isinstance(part, st.SearchStrategy) else st.just(part) for part in parts))


def joined(parts: Drawn, separator: str, **bounds: Any) -> Drawn:
    many = st.lists(parts, min_size=1, **bounds)
    return many.map(lambda drawn: tuple(x for part in drawn for x in (separator, part))[1:])


roots = st.sampled_from([*"aaghlmnstu", Name("a"), Name("m"), "pk", "sk", "absent"])
paths = roots | words(roots, st.sampled_from(["[0]", "[1]", "[7]", ".x", ".y", ".x.y", ".x[0]", "[0].x"]))
values = documents | scalars
operands = paths | paths | values | words("size(", paths, ")")
comparators = st.sampled_from([" = ", " <> ", " < ", " <= ", " > ", " >= "])


def comparisons(left: Drawn, right: Drawn) -> Drawn:
    return (
        words(left, comparators, right)
        | words(left, " BETWEEN ", right, " AND ", right)
        | words(left, " IN (", joined(right, ", ", max_size=3), ")")
    )


def searches(left: Drawn, right: Drawn) -> Drawn:
    return words(st.sampled_from(["begins_with(", "contains("]), left, ", ", right, ")")


well_typed_conditions = (
    comparisons(st.sampled_from(["n", "h", "m.x", "sk"]), numbers)
    | comparisons(st.sampled_from(["s", "g", "a", "pk"]), texts)
    | searches(st.sampled_from(["s", "g", "a"]), texts)
    | words("contains(", st.sampled_from(["l", "t", "u", "a"]), ", ", scalars, ")")
    | words(st.sampled_from("atu"), st.sampled_from([" = ", " <> "]), sets)
    | words("size(", st.sampled_from("slmtua"), ")", comparators, numbers)
)
simple_conditions = (
    well_typed_conditions
    | well_typed_conditions
    | comparisons(operands, operands)
    | searches(operands, operands)
    | words(st.sampled_from(["attribute_exists(", "attribute_not_exists("]), paths, ")")
    | words(
        "attribute_type(",
        paths,
        ", ",
        tagged("S", st.sampled_from(["S", "N", "L", "M", "NULL", "SS", "X"])),
        ")",
    )
)
conditions = st.recursive(
    simple_conditions,
    lambda inner: words("(", inner, st.sampled_from([") AND ", ") OR "]), inner) | words("NOT ", inner),
    max_leaves=3,
)
projections = joined(paths, ", ", max_size=4)

assigned = (
    values
    | paths
    | words(operands, st.sampled_from([" + ", " - "]), operands)
    | words("if_not_exists(", paths, ", ", operands, ")")
    | words("if_not_exists(n, ", numbers, ") + ", numbers)
    | words("list_append(", operands, ", ", operands, ")")
)
well_typed_actions = st.one_of(
    words("SET", "a", " = ", documents),
    words("SET", "a", " = if_not_exists(a, ", values, ")"),
    words("SET", "g", " = ", KEYS["S"]),
    words("SET", "h", " = ", numbers),
    words("SET", "n", " = n", st.sampled_from([" + ", " - "]), numbers),
    words("SET", "n", " = if_not_exists(n, ", numbers, st.sampled_from([") + ", ") - "]), numbers),
    words("SET", "l", " = list_append(", lists, ", l)"),
    words("SET", "l", " = list_append(if_not_exists(l, ", lists, "), ", lists, ")"),
    words("SET", "l", st.sampled_from(["[0]", "[7]"]), " = ", documents),
    words("SET", "m", st.sampled_from([".x", ".y"]), " = ", documents),
    words("SET", "s", " = ", texts),
    words("REMOVE", st.sampled_from("aghlmnst")),
    words("REMOVE", "m", ".x"),
    words("REMOVE", "l", "[0]"),
    words("ADD", st.sampled_from("nh"), " ", numbers),
    words(st.sampled_from(["ADD", "DELETE"]), "t", " ", text_sets),
    words(st.sampled_from(["ADD", "DELETE"]), "u", " ", number_sets),
)
any_actions = st.one_of(
    roots.flatmap(
        lambda root: words("SET", root, " = if_not_exists(", root, ", ", st.just(root) | values, ")")
    ),
    words("SET", paths, " = ", assigned),
    words("REMOVE", paths),
    words(st.sampled_from(["ADD", "DELETE"]), paths, " ", values),
)


def sections(actions: list[Any]) -> tuple[Any, ...]:
    """Return an update expression of (section, *text) tuples."""
    found: dict[str, list[Any]] = {}
    for section, *text in actions:
        found.setdefault(section, []).append(tuple(text))
    return tuple(
        part
        for name, texts in found.items()
        for text in texts
        for part in (f" {name} " if text is texts[0] else ", ", text)
    )


updates = st.one_of(
    st.lists(well_typed_actions, min_size=1, max_size=3, unique_by=lambda action: action[1]),
    st.lists(well_typed_actions | any_actions, min_size=1, max_size=3),
)


def update(table: Table) -> Drawn:
    """UpdateItem. DynamoDB Local makes an item of an update that only takes away, which the service does not.

    Such an update has a condition on the item. Source: scylladb/scylladb, test/alternator/test_item.py,
    test_update_item_non_existent.
    """
    optional = {"ReturnValues": modes}
    takers = updates.filter(lambda actions: not {"SET", "ADD"} & {action[0] for action in actions})
    makers = updates.filter(lambda actions: {"SET", "ADD"} & {action[0] for action in actions})
    keyed = {"Key": key(table)}
    taking = {
        "UpdateExpression": takers.map(sections),
        "ConditionExpression": st.just("attribute_exists(pk)"),
    }
    making = {"UpdateExpression": makers.map(sections)}
    return st.one_of(
        asked("UpdateItem", keyed | making, optional),
        asked("UpdateItem", keyed | making, optional | condition),
        asked("UpdateItem", keyed | taking, optional),
    )


def key_conditions(keys: tuple[str, ...]) -> Drawn:
    """Conditions on the keys of a table or an index."""
    (hash_key, _, kind), *rest = (each.partition(":") for each in keys)
    of_hash = words(hash_key, " = ", KEYS[kind])
    if not rest:
        return of_hash
    ((sort, _, kind),) = rest
    of_sort = words(" AND ", st.one_of(
        words(sort, st.sampled_from([" = ", " < ", " <= ", " > ", " >= "]), KEYS[kind]),
        words(sort, " BETWEEN ", KEYS[kind], " AND ", KEYS[kind]),
        words("begins_with(", sort, ", ", KEYS[kind], ")"),
    ))  # fmt: skip
    return of_hash | words(of_hash, of_sort)


EXPRESSIONS = (
    "UpdateExpression",
    "ConditionExpression",
    "KeyConditionExpression",
    "FilterExpression",
    "ProjectionExpression",
)


def pieces(drawn: Any) -> Iterator[Any]:
    if isinstance(drawn, tuple):
        for part in drawn:
            yield from pieces(part)
    else:
        yield drawn


def filled(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with their expressions as texts, and the names and values of placeholders beside them."""
    result = dict(given)
    names: dict[str, str] = {}
    placed: dict[str, Any] = {}

    def write(piece: Any) -> str:
        if isinstance(piece, Name):
            names[f"#{piece.text}"] = piece.text
            return f"#{piece.text}"
        if isinstance(piece, dict):
            placed[f":v{len(placed)}"] = piece
            return f":v{len(placed) - 1}"
        return piece

    for member in EXPRESSIONS:
        if member in given:
            result[member] = "".join(map(write, pieces(given[member]))).strip()
    more = {"ExpressionAttributeNames": names, "ExpressionAttributeValues": placed}
    return result | {member: value for member, value in more.items() if value}


# Requests


def asked(
    operation: str, required: Mapping[str, Drawn], optional: Mapping[str, Drawn]
) -> st.SearchStrategy[Asked]:
    parameters = st.fixed_dictionaries(dict(required), optional=dict(optional))
    return parameters.map(lambda given: (operation, {"TableName": NAME, **filled(given)}))


old = st.sampled_from(["NONE", "ALL_OLD"])
condition = {"ConditionExpression": conditions, "ReturnValuesOnConditionCheckFailure": old}
modes = st.sampled_from(["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])


def queries(table: Table) -> st.SearchStrategy[Asked]:
    places = [({}, table.keys)]
    for index in table.indexes:
        keys = (index.partition, index.sort) if index.sort else (index.partition,)
        places.append(({"IndexName": index.name}, keys))
    optional = {
        "FilterExpression": conditions,
        "ProjectionExpression": projections,
        "Limit": st.integers(1, 3),
        "ScanIndexForward": st.booleans(),
    }

    def query(place: Any) -> st.SearchStrategy[Asked]:
        fixed = {member: st.just(value) for member, value in place[0].items()}
        return asked("Query", {**fixed, "KeyConditionExpression": key_conditions(place[1])}, optional)

    return st.sampled_from(places).flatmap(query)


def scans(table: Table) -> st.SearchStrategy[Asked]:
    optional = {
        "FilterExpression": conditions,
        "ProjectionExpression": projections,
        "Limit": st.integers(1, 3),
        "IndexName": st.sampled_from([index.name for index in table.indexes]),
    }
    return asked("Scan", {}, optional)


def requests(table: Table) -> st.SearchStrategy[Asked]:
    """One request to a table."""
    put = asked("PutItem", {"Item": item(table)}, {"ReturnValues": old})
    return st.one_of(
        put,
        asked("PutItem", {"Item": item(table)}, {"ReturnValues": old, **condition}),
        update(table),
        asked("DeleteItem", {"Key": key(table)}, {"ReturnValues": old, **condition}),
        asked("GetItem", {"Key": key(table)}, {"ProjectionExpression": projections}),
        queries(table),
        queries(table),
        scans(table),
    )


def transactions(table: Table) -> st.SearchStrategy[Asked]:
    """TransactWriteItems."""
    members = st.one_of(
        asked("Put", {"Item": item(table)}, {"ConditionExpression": conditions}),
        asked("Delete", {"Key": key(table)}, {"ConditionExpression": conditions}),
        asked("ConditionCheck", {"Key": key(table), "ConditionExpression": conditions}, {}),
        update(table).map(
            lambda one: (
                "Update",
                {name: value for name, value in one[1].items() if not name.startswith("Return")},
            )
        ),
    ).map(lambda one: dict([one]))
    return st.lists(members, min_size=1, max_size=3).map(
        lambda many: ("TransactWriteItems", {"TransactItems": many})
    )
