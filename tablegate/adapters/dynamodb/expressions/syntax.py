"""The syntax trees of DynamoDB's expressions, and parts of PartiQL's statements."""

from __future__ import annotations

from typing import Any, NamedTuple


class PathNode(NamedTuple):
    """A document path. Names are as written, placeholders with their #. List indexes are ints."""

    steps: tuple[str | int, ...]


class ValueNode(NamedTuple):
    """A value placeholder, with its colon."""

    name: str


class CallNode(NamedTuple):
    """A function of any name with any number of operands."""

    function: str
    operands: tuple[Any, ...]


class ArithmeticNode(NamedTuple):
    """An addition or subtraction. `operator` is + or -."""

    operator: str
    left: OperandNode
    right: OperandNode


class CompareNode(NamedTuple):
    """A comparison. `operator` is =, <>, <, <=, > or >=."""

    operator: str
    left: OperandNode
    right: OperandNode


class BetweenNode(NamedTuple):
    """`operand BETWEEN lower AND upper`."""

    operand: OperandNode
    lower: OperandNode
    upper: OperandNode


class InNode(NamedTuple):
    """`operand IN (members)`."""

    operand: OperandNode
    members: tuple[OperandNode, ...]


class AndNode(NamedTuple):
    """Conditions that must all be true."""

    parts: tuple[ConditionNode, ...]


class OrNode(NamedTuple):
    """Conditions. At least one must be true."""

    parts: tuple[ConditionNode, ...]


class NotNode(NamedTuple):
    """A condition that must be false."""

    part: ConditionNode


class SetNode(NamedTuple):
    """An action of a SET section: the path gets the value of the operand."""

    path: PathNode
    operand: OperandNode | ArithmeticNode


class RemoveNode(NamedTuple):
    """An action of a REMOVE section."""

    path: PathNode


class ChangeNode(NamedTuple):
    """An action of an ADD or DELETE section.

    `set_function`: the place of the path, if the action was written as set_add or set_delete. These take sets only.
    """

    section: str
    path: PathNode
    value: ValueNode
    set_function: str = ""


class SectionNode(NamedTuple):
    """A section of an update: SET, REMOVE, ADD or DELETE in capitals, and its actions."""

    keyword: str
    actions: tuple[SetNode | RemoveNode | ChangeNode, ...]


OperandNode = PathNode | ValueNode | CallNode
ConditionNode = CompareNode | BetweenNode | InNode | CallNode | AndNode | OrNode | NotNode


class ExpressionError(Exception):
    """An error in an expression: a rule of messages.py, and the facts for its text."""

    def __init__(self, rule: str, **facts: Any) -> None:
        super().__init__(rule, facts)
        self.rule = rule
        self.facts = facts
