"""SearchConditionExpression: equality conditions on attributes of a search schema.

There are two steps, as with key conditions: the tests by attribute name, then their check against the schema of
one index. Texts: captures of the live service, August 2026 (nubo-db/dynamodb-conformance, eu-west-2, and
ExtendDB's change notes, us-east-1), some from the developer guide.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.adapters.dynamodb.expressions.conditions import ConditionReader
from tablegate.adapters.dynamodb.expressions.nodes import (
    AndNode,
    BetweenNode,
    CompareNode,
    ConditionNode,
    PathNode,
    ValueNode,
)
from tablegate.adapters.dynamodb.expressions.placeholders import Placeholders
from tablegate.adapters.dynamodb.expressions.static_checks import condition_tree
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.adapters.dynamodb.wire.gateway_errors import type_name
from tablegate.adapters.dynamodb.wire.messages import expression_text
from tablegate.gateway.features.vectors.vectors import VectorIndex, is_of_kind
from tablegate.gateway.model.values.values import Kind, Value

# SearchConditionExpression


_NAME = "SearchConditionExpression"
_COMPARATOR = f"Invalid {_NAME}: Invalid comparator used in {_NAME}"


def search_tests(text: str, placeholders: Placeholders) -> dict[str, Value]:
    """Return the required value of each attribute. Raises ServiceError."""
    tree = condition_tree(text, _NAME, placeholders)
    reader = _Reader(_NAME, placeholders)
    reader.condition(tree)
    reader.read(tree)
    return reader.tests


class _Reader(ConditionReader):
    """A collector of the tests in a valid condition."""

    def __init__(self, kind: str, placeholders: Placeholders) -> None:
        super().__init__(kind, placeholders)
        self.tests: dict[str, Value] = {}

    def read(self, node: ConditionNode) -> None:
        """Collect the tests in a condition. Raises ServiceError for operators that no search condition may have."""
        match node:
            case AndNode(parts):
                for part in parts:
                    self.read(part)
            case CompareNode("=", PathNode() as path, ValueNode() as value):
                self._note(path, value)
            case CompareNode("=", ValueNode() as value, PathNode() as path):
                self._note(path, value)
            case CompareNode() | BetweenNode():
                raise validation(_COMPARATOR)
            case _:
                raise validation(f"Invalid operator used in {_NAME}")

    def _note(self, path: PathNode, value: ValueNode) -> None:
        if len(path.steps) > 1:
            raise validation(f"{_NAME} cannot have conditions on nested attributes")
        name = str(self.path(path)[0])
        if name in self.tests:
            raise validation(f"{_NAME} must only contain one condition per attribute")
        self.tests[name] = self.value(value)


def check_tests(index: VectorIndex, tests: Mapping[str, Value] | None) -> None:
    """Raise ServiceError if the search schema of an index does not take these tests. None: there is no expression."""
    if tests is None:
        if index.partition is not None:
            raise validation(f"{_NAME} must be provided when SearchSchema has a HASH key")
        return
    columns = {column.name: column for column in index.columns}
    for name, value in tests.items():
        column = columns.get(name)
        if column is None:
            raise validation(
                f"{_NAME} must not contain any attributes that is not in SearchSchema. Invalid attribute: {name}"
            )
        if not is_of_kind(value, column.kind):
            raise validation(
                f"Type of '{name}' attribute in {_NAME} ({type_name(value.kind)}) does not match type in search schema "
                f"({type_name(column.kind)})"
            )
        if column is index.partition and value.data in ("", b""):
            kind = "binary" if value.kind is Kind.BYTES else "string"
            raise validation(expression_text("key-empty", kind=kind, name=name))
    if index.partition is not None and index.partition.name not in tests:
        raise validation(f"{_NAME} must have all HASH attributes")
