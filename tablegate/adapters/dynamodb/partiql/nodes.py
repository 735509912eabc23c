"""The syntax trees of statements. Conditions and paths are the nodes of expressions (grammar.py).

A literal is a ValueNode named by its own wire JSON, a parameter one named `?` and its offset. So a tree does not
depend on the parameters, and can be cached by text.
"""

from __future__ import annotations

from typing import NamedTuple

from tablegate.adapters.dynamodb.expressions.nodes import ConditionNode, PathNode, SectionNode, ValueNode
from tablegate.gateway.model.expressions.predicates import Path

# Trees


Source = tuple[str, ...]
"""The table's name, and the index's if one is read."""


class Select(NamedTuple):
    """A SELECT. `paths` None: all attributes. `order`: pairs of an attribute and True for descending."""

    source: Source
    paths: tuple[PathNode, ...] | None
    where: ConditionNode | None
    order: tuple[tuple[str, bool], ...]


class Insert(NamedTuple):
    """An INSERT. `item`: attribute -> literal or parameter."""

    source: Source
    item: tuple[tuple[str, ValueNode], ...]


class Update(NamedTuple):
    """An UPDATE. `returning`: as in ReturnValues of UpdateItem."""

    source: Source
    sections: tuple[SectionNode, ...]
    where: ConditionNode | None
    returning: str


class Delete(NamedTuple):
    """A DELETE. `returning`: the value of RETURNING, or "NONE"."""

    source: Source
    where: ConditionNode | None
    returning: str


class Exists(NamedTuple):
    """EXISTS(SELECT ...): a condition check."""

    select: Select

    @property
    def source(self) -> Source:
        return self.select.source


Statement = Select | Insert | Update | Delete | Exists


class Parsed(NamedTuple):
    """A statement and the names of its parameters, in order."""

    statement: Statement
    parameters: tuple[str, ...]


def shown_name(steps: Path) -> str:
    """Return the name of a selected path in the answer: its last name and the list indexes after it."""
    last = max(place for place, step in enumerate(steps) if isinstance(step, str))
    return str(steps[last]) + "".join(f"[{index}]" for index in steps[last + 1 :])
