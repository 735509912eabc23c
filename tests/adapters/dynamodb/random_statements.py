"""Random statements of PartiQL, as hypothesis strategies. They are drawn as random_requests.py draws expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.adapters.dynamodb import random_requests as drawn
from tests.adapters.dynamodb.random_requests import NAME, Drawn, Table, joined, words
from tests.adapters.dynamodb.statement_literals import literal
from tests.support.differential import Asked


@dataclass(frozen=True)
class Literal:
    """A value that a statement spells out."""

    value: dict[str, Any]


def _has_bytes(value: Any) -> bool:
    if isinstance(value, dict):
        return bool({"B", "BS"} & value.keys()) or any(map(_has_bytes, value.values()))
    return isinstance(value, list) and any(map(_has_bytes, value))


def given(values: Drawn) -> Drawn:
    """Values as parameters or, if there is such a literal, as literals."""
    return values | values.map(lambda value: value if _has_bytes(value) else Literal(value))


def filled(statement: tuple[Any, ...]) -> dict[str, Any]:
    """Return the statement as a text, and its parameters."""
    parameters: list[Any] = []

    def write(piece: Any) -> str:
        if isinstance(piece, dict):
            parameters.append(piece)
            return "?"
        return literal(piece.value) if isinstance(piece, Literal) else piece

    text = "".join(map(write, drawn.pieces(statement)))
    return {"Statement": text} | ({"Parameters": parameters} if parameters else {})


paths = st.sampled_from(["a", "g", "h", "l", "m", "n", "s", "t", "u", "m.x", "l[0]", "absent", "absent.x"])
values = given(drawn.documents | drawn.scalars)
numbers, texts = given(drawn.numbers), given(drawn.texts)
sets = given(drawn.text_sets | drawn.number_sets)
comparators = st.sampled_from([" = ", " <> ", " < ", " <= ", " > ", " >= "])
types = st.sampled_from(["S", "N", "L", "M", "SS", "NULL"]).map(lambda name: {"S": name})
simple_conditions = st.one_of(
    words(st.sampled_from(["n", "h", "m.x"]), comparators, numbers),
    words(st.sampled_from(["s", "g", "a"]), comparators, texts),
    words(paths, st.sampled_from([" = ", " <> "]), values),
    words(paths, " BETWEEN ", numbers, " AND ", numbers),
    words(paths, " IN [", joined(values, ", ", max_size=3), "]"),
    words("begins_with(", paths, ", ", texts, ")"),
    words("contains(", paths, ", ", values, ")"),
    words("attribute_type(", paths, ", ", given(types), ")"),
    words("size(", paths, ")", comparators, numbers),
    words(paths, st.sampled_from([" IS MISSING", " IS NOT MISSING", " IS NULL", " IS NOT NULL"])),
)
conditions = st.recursive(
    simple_conditions,
    lambda inner: (
        words("(", inner, st.sampled_from([") AND (", ") OR ("]), inner, ")") | words("NOT (", inner, ")")
    ),
    max_leaves=3,
)


def functions_of(path: str) -> Drawn:
    """New values that are computed from the value at a path."""
    return st.one_of(
        words(path, st.sampled_from([" + ", " - "]), numbers),
        words("list_append(", path, ", ", given(drawn.lists), ")"),
        words("if_not_exists(", path, ", ", values | st.just(path), ")"),
        words(st.sampled_from(["set_add(", "set_delete("]), path, ", ", sets | values | numbers, ")"),
    )


clauses = st.one_of(
    words(" SET ", paths, " = ", values | paths | paths.flatmap(functions_of)),
    st.sampled_from(["n", "l", "t", "u", "m.x"]).flatmap(
        lambda path: words(" SET ", path, " = ", functions_of(path))
    ),
    words(" REMOVE ", paths),
)


def statements(table: Table) -> st.SearchStrategy[Asked]:
    """ExecuteStatement."""
    keys = [each.partition(":") for each in table.keys]
    where = words(" WHERE ", *(part for at, (name, _, kind) in enumerate(keys)
                               for part in (" AND " if at else "", f"{name} = ", given(drawn.KEYS[kind]))))  # fmt: skip
    also = st.just("") | words(" AND ", conditions)
    sources = [f'"{NAME}"', *(f'"{NAME}"."{index.name}"' for index in table.indexes)]
    members = st.fixed_dictionaries(
        {}, optional={name: given(kind) for name, kind in drawn.ATTRIBUTES.items()}
    ).map(lambda attributes: tuple((f", '{name}': ", value) for name, value in attributes.items()))
    own = words(*(part for at, (name, _, kind) in enumerate(keys)
                  for part in (", " if at else "", f"'{name}': ", given(drawn.KEYS[kind]))))  # fmt: skip
    select = words("SELECT ", st.sampled_from(["*", "a, g", "pk, m.x", "l[0], n"]), " FROM ")
    returning = st.sampled_from(
        ["", " RETURNING ALL OLD *", " RETURNING ALL NEW *", " RETURNING MODIFIED NEW *"]
    )
    return st.one_of(
        words(select, st.sampled_from(sources)),
        words(select, st.sampled_from(sources), " WHERE ", conditions),
        words(select, f'"{NAME}"', where, also),
        words(f'INSERT INTO "{NAME}" VALUE {{', own, members, "}"),
        words(f'UPDATE "{NAME}"', clauses, where, also, returning),
        words(f'UPDATE "{NAME}"', clauses, clauses, where, returning),
        words(f'DELETE FROM "{NAME}"', where, also, st.sampled_from(["", " RETURNING ALL OLD *"])),
    ).map(lambda statement: ("ExecuteStatement", filled(statement)))
