"""Builder of statements and their clauses, called by the lark parser."""

from __future__ import annotations

from typing import Any

from lark import Token, v_args

from tablegate.adapters.dynamodb.expressions.nodes import (
    CallNode,
    ChangeNode,
    ConditionNode,
    PathNode,
    RemoveNode,
    SectionNode,
    SetNode,
)
from tablegate.adapters.dynamodb.partiql import operands
from tablegate.adapters.dynamodb.partiql.expression_builder import ExpressionBuilder
from tablegate.adapters.dynamodb.partiql.literals import Literal, constant
from tablegate.adapters.dynamodb.partiql.nodes import (
    Delete,
    Exists,
    Insert,
    Select,
    Source,
    Update,
    shown_name,
)
from tablegate.adapters.dynamodb.partiql.syntax_errors import place_of
from tablegate.adapters.dynamodb.wire.errors import validation

# Statements


@v_args(inline=True)
class StatementBuilder(ExpressionBuilder):
    """A transformer that builds statements while lark parses, so no tree of tokens is walked recursively."""

    def start(self, statement: Any, _semicolon: Any = None) -> Any:
        return statement

    def select(self, paths: Any, source: Source, where: Any, order: Any) -> Select:
        if len(source) > 2:
            raise validation("A path may contain at most 2 components in the FROM clause")
        return Select(source, paths, _where(where), order or ())

    def exists(self, _exists: Token, select: Select) -> Exists:
        return Exists(select)

    def insert(self, source: Source, value: Literal | operands.FunctionCall, returning: Any) -> Insert:
        if len(source) > 1:
            raise validation(
                "FROM clause may only contain a single table name in data manipulation statements"
            )
        if not isinstance(value, Literal) or value.tag != "M":
            raise validation(
                "Unsupported format in item expression. "
                "Please use struct format {...} to express item values for insert statement."
            )
        if returning is not None:
            raise validation("RETURNING is not supported in INSERT")
        names = [name for name, _ in value.data]
        if len(set(names)) < len(names):
            for name in names:
                if names.count(name) == 1:
                    continue
                raise validation(f"Duplicate keys in tuple. Key: {name} under root")
        return Insert(source, tuple([(name, constant(member)) for name, member in value.data]))

    def update(self, source: Source, sections: Any, where: Any, returning: Any) -> Update:
        _refuse_index(source)
        return Update(source, sections, _where(where), returning or "NONE")

    def update_from(self, source: Source, where: Any, sections: Any, returning: Any) -> Update:
        return self.update(source, sections, where, returning)

    def delete(self, source: Source, where: Any, returning: Any) -> Delete:
        _refuse_index(source)
        if returning not in (None, "ALL_OLD"):
            clause = returning.replace("UPDATED_", "MODIFIED ").replace("_", " ")
            raise validation(
                f"Invalid returning clause: RETURNING {clause} *. "
                "Only RETURNING ALL OLD * is allowed in DELETE statements."
            )
        return Delete(source, _where(where), returning or "NONE")

    def projection(self, *paths: Any) -> tuple[PathNode, ...] | None:
        if isinstance(paths[0], Token):
            return None
        for path in paths:
            if isinstance(path, operands.FunctionCall):
                raise validation(f"Unexpected path component at {path.place}")
        nodes = tuple([path.node for path in paths])
        names = [shown_name(node.steps) for node in nodes]
        if len(set(names)) < len(names):
            for name in names:
                if names.count(name) == 1:
                    continue
                raise validation(f"Duplicate identifiers in select clause: {name}")
        return nodes

    def counted(self, name: Token, _star: Token) -> operands.FunctionCall:
        return operands.FunctionCall(CallNode(name.lower(), ()), (), place_of(name))

    def source(self, *names: Token) -> Source:
        return tuple(map(str, names))

    def orderings(self, *orderings: Any) -> tuple[tuple[str, bool], ...]:
        return orderings

    def ordering(self, path: operands.DocumentPath, direction: Token | None) -> tuple[str, bool]:
        if len(path.node.steps) > 1:
            raise validation("Argument to ORDER BY must be of type VariableReference. Type: Path")
        return str(path.node.steps[0]), direction is not None and direction.type == "DESC"

    def returning(self, scope: Token, side: Token, _star: Token) -> str:
        return f"{'ALL' if scope.type == 'ALL' else 'UPDATED'}_{side.type}"

    # Clauses of updates

    def clauses(self, *clauses: tuple[Any, ...]) -> tuple[SectionNode, ...]:
        return tuple([SectionNode("", (action,)) for clause in clauses for action in clause])

    def sets(self, *assignments: Any) -> tuple[Any, ...]:
        return assignments

    def removes(self, *paths: operands.DocumentPath) -> tuple[RemoveNode, ...]:
        return tuple([RemoveNode(path.node) for path in paths])

    def assignment(self, path: operands.DocumentPath, _equals: Token, value: Any) -> SetNode | ChangeNode:
        if isinstance(value, operands.FunctionCall) and value.node.function in operands.SET_FUNCTIONS:
            return operands.set_change(path, value)
        operand = operands.update_operand(value)
        operands.check_operators(operand)
        return SetNode(path.node, operand)


def _where(node: Any) -> ConditionNode | None:
    if node is None:
        return None
    condition = operands.condition(node, operands.NO_BOOLEAN)
    operands.check_operators(condition)
    return condition


def _refuse_index(source: Source) -> None:
    if len(source) > 1:
        raise validation("This operation is not supported on an index")
