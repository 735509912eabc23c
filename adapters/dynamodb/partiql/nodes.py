"""Statements as trees: who is written or read, and the nodes that expressions have too (grammar.py).

A literal is a ValueNode named by its own wire JSON, a parameter one named `?` and its place: so a tree is the same for all
parameters and may be kept by text.
"""

from __future__ import annotations

from typing import NamedTuple

from tablegate.adapters.dynamodb.expressions.nodes import ConditionNode, PathNode, SectionNode, ValueNode
from tablegate.gateway.model.expressions.predicates import Path

Source = tuple[str, ...]
"""A table's name, and that of its index if one is read."""


class Select(NamedTuple):
    """`paths` None: all attributes. `order`: attribute and whether descending."""

    source: Source
    paths: tuple[PathNode, ...] | None
    where: ConditionNode | None
    order: tuple[tuple[str, bool], ...]


class Insert(NamedTuple):
    """`item`: attribute -> literal or parameter."""

    source: Source
    item: tuple[tuple[str, ValueNode], ...]


class Update(NamedTuple):
    """`returning`: as ReturnValues of UpdateItem has it."""

    source: Source
    sections: tuple[SectionNode, ...]
    where: ConditionNode | None
    returning: str


class Delete(NamedTuple):
    """DELETE. `returning`: what RETURNING asks for, or ""."""

    source: Source
    where: ConditionNode | None
    returning: str


class Exists(NamedTuple):
    """EXISTS(SELECT ...): a condition check."""

    select: Select

    @property
    def source(self) -> Source:
        """What its SELECT reads."""
        return self.select.source


Statement = Select | Insert | Update | Delete | Exists


class Parsed(NamedTuple):
    """A statement and the names of its parameters, in order."""

    statement: Statement
    parameters: tuple[str, ...]


def shown_name(steps: Path) -> str:
    """What a selected path is called in the answer: its last name, with the list indexes behind it."""
    last = max(place for place, step in enumerate(steps) if isinstance(step, str))
    return str(steps[last]) + "".join(f"[{index}]" for index in steps[last + 1 :])
