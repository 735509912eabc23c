"""Builder of the trees of statements, called by the lark parser: literals, conditions, operands, paths, and clauses.

Some words must be quoted after the dot of a statement's path: the reserved words of SQL-92, and PartiQL's own. They are
the keywords of PartiQL's reference parser (partiql-lang-kotlin, which DynamoDB Local 2.6.1 contains). The service's error
was captured for `inner` (nubo-db/dynamodb-conformance, October 2026).
"""

from __future__ import annotations

from typing import Any

from lark import Token, Transformer, v_args

from tablegate.adapters.dynamodb.expressions.syntax import (
    AndNode,
    ArithmeticNode,
    BetweenNode,
    CallNode,
    ChangeNode,
    CompareNode,
    ConditionNode,
    InNode,
    NotNode,
    OrNode,
    PathNode,
    RemoveNode,
    SectionNode,
    SetNode,
)
from tablegate.adapters.dynamodb.features.partiql import operands
from tablegate.adapters.dynamodb.features.partiql.statement_syntax import (
    INVALID_COMPONENT,
    Delete,
    Exists,
    Insert,
    Literal,
    Select,
    Source,
    Update,
    constant,
    name_of_parameter,
    not_well_formed,
    number_text,
    place_of,
    shown_name,
)
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.error_texts import expression_text
from tablegate.adapters.dynamodb.wire.errors import validation

# Reserved words


_SQL_92 = """
absolute action add all allocate alter and any are as asc assertion at authorization avg begin between bit
bit_length by cascade cascaded case cast catalog char character character_length char_length check close coalesce
collate collation column commit connect connection constraint constraints continue convert corresponding count
create cross current current_date current_time current_timestamp current_user cursor date deallocate dec decimal
declare default deferrable deferred delete desc describe descriptor diagnostics disconnect distinct domain double
drop else end escape except exception exec execute exists external extract date_add date_diff false fetch first
float for foreign found from full get global go goto grant group having identity immediate in indicator initially
inner input insensitive insert int integer intersect interval into is isolation join key language last left level
like local lower match max min module names national natural nchar next no not null nullif numeric octet_length of
on only open option or order outer output overlaps pad partial position precision prepare preserve primary prior
privileges procedure public read real references relative restrict revoke right rollback rows schema scroll section
select session session_user set size smallint some space sql sqlcode sqlerror sqlstate substring sum system_user
table temporary then time timestamp to transaction translate translation trim true union unique unknown update upper
usage user using value values varchar varying view when whenever where with work write zone
"""
_PARTIQL = """
missing pivot unpivot limit tuple remove index conflict do nothing returning modified new old let bool boolean
string symbol clob blob struct list sexp bag
"""
RESERVED_WORDS = frozenset((_SQL_92 + _PARTIQL).split())


# Expressions


@v_args(inline=True)
class ExpressionBuilder(Transformer[Token, Any]):
    """A transformer that builds literals, conditions, their operands and paths."""

    # Literals and the names of their members

    def text(self, token: Token) -> Literal:
        return Literal("S", _unquote(token), place_of(token))

    def number(self, token: Token) -> Literal:
        return Literal("N", number_text(str(token)), place_of(token))

    def minus(self, _sign: Token, number: Literal) -> Literal:
        data = number.data
        return number._replace(data=data[1:] if data.startswith("-") else "-" + data)

    def plus(self, _sign: Token, number: Literal) -> Literal:
        return number

    def boolean(self, token: Token) -> Literal:
        return Literal("BOOL", token.type == "TRUE", place_of(token))

    def null(self, token: Token) -> Literal:
        return Literal("NULL", True, place_of(token))

    def missing(self, token: Token) -> Literal:
        raise validation("MISSING must be compared using IS operator")

    def parameter(self, token: Token) -> Literal:
        return Literal("?", name_of_parameter(token.start_pos or 0), place_of(token))

    def list(self, *members: Literal | operands.FunctionCall | None) -> Literal:
        return Literal("L", _literals(members), "")

    def bag(self, *members: Any) -> Literal:
        return Literal("BAG", _literals(members[1:-1]), "")

    def map(self, *pairs: Any) -> Literal:
        return Literal("M", _present(pairs), "")

    def pair(self, name: Token, value: Literal | operands.FunctionCall) -> tuple[str, Literal]:
        return _unquote(name), _literal(value)

    def member(self, token: Token) -> str:
        if token == "''":
            raise validation("Path component cannot be an empty string")
        return _unquote(token)

    # Conditions

    def either(self, left: Any, right: Any) -> ConditionNode:
        return operands.in_one_chain(OrNode, left, right)

    def both(self, left: Any, right: Any) -> ConditionNode:
        return operands.in_one_chain(AndNode, left, right)

    def negated(self, node: Any) -> ConditionNode:
        return operands.negated(operands.condition(node, "The argument to NOT must be a Type or Expression"))

    def compared(self, left: Any, operator: Token, right: Any) -> ConditionNode:
        name = "<>" if operator == "!=" else str(operator)
        for condition, other in ((left, right), (right, left)):
            if operands.is_condition(condition):
                return operands.compared_condition(operands.condition(condition), name, other)
        return CompareNode(name, operands.operand(left), operands.operand(right))

    def between(self, operand: Any, lower: Any, upper: Any) -> ConditionNode:
        return BetweenNode(operands.operand(operand), operands.operand(lower), operands.operand(upper))

    def not_between(self, operand: Any, lower: Any, upper: Any) -> ConditionNode:
        return NotNode(self.between(operand, lower, upper))

    def within(self, operand: Any, members: Any) -> ConditionNode:
        inner = members.data if isinstance(members, Literal) else members
        if not inner or not isinstance(operand, operands.DocumentPath):
            raise validation(operands.BAD_IN)
        return InNode(operand.node, tuple([operands.operand(member) for member in inner]))

    def not_within(self, operand: Any, members: Any) -> ConditionNode:
        return NotNode(self.within(operand, members))

    def is_type(self, operand: Any, name: str) -> ConditionNode:
        if name == "MISSING":
            return CallNode("attribute_not_exists", (operands.operand(operand),))
        return CallNode("attribute_type", (operands.operand(operand), constant(Literal("S", name, ""))))

    def is_not_type(self, operand: Any, name: str) -> ConditionNode:
        return operands.negated(self.is_type(operand, name))

    def type(self, name: Token) -> str:
        return operands.type_named(str(name))

    # Operands

    def arithmetic(self, left: Any, operator: Token, right: Any) -> ArithmeticNode:
        return ArithmeticNode(str(operator), operands.update_operand(left), operands.update_operand(right))

    def function(self, name: Token, arguments: tuple[Any, ...] | None) -> operands.FunctionCall:
        """Build a function call. Its use checks whether it is allowed there."""
        function, place = name.lower(), place_of(name)
        operand_list = arguments or ()
        if function not in operands.FUNCTIONS or function in operands.SET_FUNCTIONS:
            return operands.FunctionCall(CallNode(function, ()), operand_list, place)
        read = operands.update_operand if function in operands.UPDATE_FUNCTIONS else operands.operand
        return operands.FunctionCall(
            CallNode(function, tuple([read(argument) for argument in operand_list])), operand_list, place
        )

    def arguments(self, *arguments: Any) -> tuple[Any, ...]:
        return arguments

    def path(self, *steps: Any) -> operands.DocumentPath:
        for step in steps[1:]:
            if isinstance(step, Token) and step.type == "NAME" and step.lower() in RESERVED_WORDS:
                raise not_well_formed(INVALID_COMPONENT)
        return operands.DocumentPath(
            PathNode(tuple([str(s) if isinstance(s, str) else s for s in steps])), place_of(steps[0])
        )

    def name(self, token: Token) -> Token:
        if token == '""':
            raise validation("Path component cannot be an empty string")
        if token.type == "QUOTED":
            return token.update(value=token[1:-1].replace('""', '"'))
        return token

    def index(self, *tokens: Token) -> int:
        digits = tokens[-1]
        value = int(digits) if digits.isdigit() and len(digits) < 20 else -1
        if tokens[0].type == "MINUS":
            value = -value
        if not 0 <= value <= limits.EXPRESSION_LIST_INDEX:
            index_text = "".join(tokens)
            text = expression_text("index", index=index_text)
            raise validation(f"{text} at {place_of(digits)}")
        return value


def _present(members: tuple[Any, ...]) -> tuple[Any, ...]:
    return () if members == (None,) else members


def _literals(members: tuple[Any, ...]) -> tuple[Literal, ...]:
    return tuple([_literal(member) for member in _present(members)])


def _literal(value: Literal | operands.FunctionCall) -> Literal:
    """Convert a function to a literal CALL. The error for it contains the place inside the value."""
    return value if isinstance(value, Literal) else Literal("CALL", value.node.function, value.place)


def _unquote(token: Token) -> str:
    return token[1:-1].replace("''", "'")


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
