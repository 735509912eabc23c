"""UpdateExpression to the model's actions.

Covers the four sections, the functions of new values with their operands, and the service's charge for a
statement. gateway/model/expressions/updates.py applies an update to an item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, assert_never

from tablegate.adapters.dynamodb.expressions.projections import PathConflicts, path_text
from tablegate.adapters.dynamodb.expressions.static_checks import (
    UPDATE,
    PlaceholderReader,
    Placeholders,
    update_tree,
)
from tablegate.adapters.dynamodb.expressions.syntax import (
    ArithmeticNode,
    CallNode,
    ChangeNode,
    OperandNode,
    PathNode,
    RemoveNode,
    SectionNode,
    SetNode,
    ValueNode,
)
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.error_texts import expression_text
from tablegate.adapters.dynamodb.wire.errors import validation
from tablegate.adapters.dynamodb.wire.gateway_errors import type_name
from tablegate.gateway.model.expressions import updates
from tablegate.gateway.model.expressions.predicates import Path
from tablegate.gateway.model.values.values import NULL, Kind, Value, size_bytes


def parse_update(text: str, placeholders: Placeholders) -> tuple[updates.Action, ...]:
    """Return the actions of an update, in the order of the text. Raises ServiceError."""
    return _UpdateReader(placeholders).actions(update_tree(text, placeholders))


def actions_of(sections: tuple[SectionNode, ...], placeholders: Placeholders) -> tuple[updates.Action, ...]:
    """Return the actions of an update that was not written as an expression. Raises ServiceError."""
    return _UpdateReader(placeholders).actions(sections)


def creates_item(actions: tuple[updates.Action, ...]) -> bool:
    """True if an update creates a missing item. All do except those that only remove.

    Sources: test_item.py test_update_item_non_existent, test_update_expression.py
    test_nested_attribute_remove_from_missing_item.
    """
    return not actions or any(
        not isinstance(action, (updates.Remove, updates.Subtract)) for action in actions
    )


def refuse_key_updates(actions: tuple[updates.Action, ...], key_names: Iterable[str]) -> None:
    """Raise ServiceError if an action writes a key attribute of the table."""
    updated_names = set(updates.names_of(actions))
    for name in key_names:
        if name in updated_names:
            raise validation(expression_text("key-update", name=name))


def given_values(actions: tuple[updates.Action, ...]) -> dict[str, Value]:
    """Return the new values of top-level attributes, by name, as far as the request shows them.

    A computed value has only a kind. Its data is None.
    """
    values: dict[str, Value] = {}
    for action in actions:
        match action:
            case updates.SetTo((str(name),), updates.Literal(value)):
                values[name] = value
            case updates.SetTo((str(name),), updates.Plus() | updates.Minus()):
                values[name] = Value(Kind.DECIMAL, None)
            case updates.SetTo((str(name),), updates.Concatenate()):
                values[name] = Value(Kind.LIST, None)
            case updates.Add((str(name),), value) | updates.Subtract((str(name),), value):
                values[name] = value
    return values


class UpdateFacts(NamedTuple):
    """Properties of an update's actions that do not depend on its values.

    `written`: the top-level attributes that they write. `paths`: all paths that they write or read.
    `document_paths`: those of `paths` that go into documents. `may_nest`: attributes that may have become
    too deep. `clause_bytes`: the service's charge for the statement without its values.
    """

    written: frozenset[str]
    paths: tuple[Path, ...]
    document_paths: tuple[Path, ...]
    may_create: bool
    may_nest: tuple[str, ...]
    clause_bytes: int


def facts_of(actions: tuple[updates.Action, ...]) -> UpdateFacts:
    """Return the facts of an update."""
    updated_names = updates.names_of(actions)
    paths = tuple(operand_paths(actions))
    document_paths = tuple(path for path in paths if len(path) > 1)
    may_nest: dict[str, None] = {}
    # Without SET and without a path into a document, the named attributes were within the limits before.
    if any(isinstance(action, updates.SetTo) or len(action.path) > 1 for action in actions):  # type: ignore[union-attr]
        may_nest = {
            name: None for action, name in zip(actions, updated_names, strict=True) if not _is_flat(action)
        }
    clause_bytes = limits.UPDATE_BASE_BYTES + sum(map(_action_bytes, actions))
    return UpdateFacts(
        frozenset(updated_names), paths, document_paths, creates_item(actions), tuple(may_nest), clause_bytes
    )


def _is_flat(action: updates.Action) -> bool:
    """True if an action sets an attribute to a value that is no document."""
    match action:
        case updates.SetTo((_,), updates.Literal(value)):
            return value.kind is not Kind.MAP and value.kind is not Kind.LIST
    return False


def statement_bytes(facts: UpdateFacts, actions: tuple[updates.Action, ...]) -> int:
    """Return the service's charge for an UpdateExpression against the item size limit.

    It is the size of the written values plus a cost of each clause. Stored data does not count: neither the key,
    nor other attributes, nor the values of paths that are read (limits.py has the source).

    Counting stops above the limit, because an expression can write one large value a hundred times.
    """
    size = facts.clause_bytes
    for action in actions:
        if size > limits.ITEM_BYTES:
            break
        match action:
            case updates.SetTo(_, updates.Literal(value)) | updates.Add(_, value):
                size += size_bytes(value)
            case updates.SetTo(_, operand):
                size += sum(map(size_bytes, _values_in(operand)))
    return size


def _values_in(operand: updates.Operand) -> Iterator[Value]:
    match operand:
        case updates.Literal(value):
            yield value
        case updates.CurrentOrDefault(_, fallback):
            yield from _values_in(fallback)
        case updates.Plus(left, right) | updates.Minus(left, right) | updates.Concatenate(left, right):
            yield from _values_in(left)
            yield from _values_in(right)


def _action_bytes(action: updates.Action) -> int:
    match action:
        case updates.SetTo(path, operand):
            return limits.UPDATE_WRITING_ACTION_BYTES + _target_bytes(path) + _operand_bytes(operand)
        case updates.Add(path):
            return limits.UPDATE_WRITING_ACTION_BYTES + _target_bytes(path)
        case updates.Remove(path) | updates.Subtract(path):
            return limits.UPDATE_CLEARING_ACTION_BYTES + _target_bytes(path)
    return 0


def _target_bytes(path: Path) -> int:
    return sum(map(_element_bytes, path)) + limits.UPDATE_TARGET_ELEMENT_BYTES * (len(path) - 1)


def _element_bytes(element: str | int) -> int:
    return len(str(element).encode("utf-8", "surrogatepass"))


def _operand_bytes(operand: updates.Operand) -> int:
    match operand:
        case updates.Literal():
            return 0
        case updates.Current(path):
            elements = sum(limits.UPDATE_OPERAND_ELEMENT_BYTES + _element_bytes(element) for element in path)
            return limits.UPDATE_OPERAND_PATH_BYTES + elements
        case updates.CurrentOrDefault(path, fallback):
            function, left, right = limits.UPDATE_IF_NOT_EXISTS_BYTES, updates.Current(path), fallback
        case updates.Plus(left, right):
            function = limits.UPDATE_PLUS_BYTES
        case updates.Minus(left, right):
            function = limits.UPDATE_MINUS_BYTES
        case updates.Concatenate(left, right):
            function = limits.UPDATE_LIST_APPEND_BYTES
    return function + _operand_bytes(left) + _operand_bytes(right)


def operand_paths(actions: tuple[updates.Action, ...]) -> Iterator[Path]:
    """Yield every path that an update writes or reads, in order."""
    for action in actions:
        if isinstance(action, (updates.SetTo, updates.Remove, updates.Add, updates.Subtract)):
            yield action.path
        if isinstance(action, updates.SetTo):
            yield from updates.paths_read(action.operand)


_CHANGE_TYPE_NAMES = {
    "S": "STRING",
    "N": "NUMBER",
    "B": "BINARY",
    "BOOL": "BOOLEAN",
    "NULL": "NULL",
    "L": "LIST",
    "M": "MAP",
}
# The service's order of checks within one action (dynalite updateItem.js, recorded).
_PHASES = ("undefined-name", "undefined-value", "depth", "change-type")


class _UpdateReader(PlaceholderReader):
    """A converter from syntax trees to actions.

    The service reads an update twice, from the end of its text. First it checks each written path against the
    earlier ones, then the new values. DynamoDB Local has this order, and dynalite's records of single expressions
    agree. All of an action is read before its error is chosen.
    """

    def __init__(self, placeholders: Placeholders) -> None:
        super().__init__(UPDATE, placeholders)
        self._problems: dict[str, tuple[str, dict[str, object]]] = {}

    def refuse(self, rule: str, **facts: object) -> None:
        self._problems.setdefault(rule if rule in _PHASES else "function", (rule, facts))

    def actions(self, sections: tuple[SectionNode, ...]) -> tuple[updates.Action, ...]:
        nodes = [node for section in sections for node in section.actions]
        nodes.reverse()
        conflicts = PathConflicts() if len(nodes) > 1 else None
        paths = []
        for node in nodes:
            path = self.path(node.path)
            conflict = None if conflicts is None or self._problems else conflicts.add(path)
            if conflict is not None:
                self.refuse(conflict.rule, one=path_text(conflict.one), two=path_text(conflict.two))
            if self._problems:
                raise self._first_problem()
            paths.append(path)
        actions = []
        for node, path in zip(nodes, paths, strict=True):
            actions.append(self._action(node, path))
            if self._problems:
                raise self._first_problem()
        actions.reverse()
        return tuple(actions)

    def _first_problem(self) -> Exception:
        rule, facts = next(
            self._problems[phase] for phase in (*_PHASES, "function") if phase in self._problems
        )
        return self._placeholders.error(rule, UPDATE, **facts)

    def _action(self, node: SetNode | RemoveNode | ChangeNode, path: Path) -> updates.Action:
        match node:
            case SetNode(operand=operand):
                return updates.SetTo(path, self._operand(operand))
            case RemoveNode():
                return updates.Remove(path)
            case ChangeNode(section=section, value=value_node, set_function=place):
                value = self.value(value_node)
                name = _CHANGE_TYPE_NAMES.get(type_name(value.kind))
                if name is not None and place:
                    self.refuse("set-argument", function=f"SET_{section}", place=place)
                elif name is not None and not (section == "ADD" and name == "NUMBER"):
                    self.refuse("change-type", section=section, kind=name)
                return updates.Add(path, value) if section == "ADD" else updates.Subtract(path, value)
        assert_never(node)

    def _operand(self, node: OperandNode | ArithmeticNode) -> updates.Operand:
        match node:
            case PathNode():
                return updates.Current(self.path(node))
            case ValueNode():
                return updates.Literal(self.value(node))
            case ArithmeticNode(operator, left, right):
                first, second = self._operand(left), self._operand(right)
                self._check_kind(operator, (first, second), Kind.DECIMAL)
                return updates.Plus(first, second) if operator == "+" else updates.Minus(first, second)
            case CallNode(function, nodes):
                # No comprehension and no helper method here: if_not_exists may be nested 240 deep, with one frame
                # each.
                operands = []
                for inner in nodes:
                    operands.append(self._operand(inner))
                return self._call_operand(node, function, operands)
        assert_never(node)

    def _call_operand(
        self, call: CallNode, function: str, operands: list[updates.Operand]
    ) -> updates.Operand:
        if not self.check_count(call):
            return updates.Literal(NULL)
        first, second = operands
        if function == "list_append":
            self._check_kind(function, operands, Kind.LIST)
            return updates.Concatenate(first, second)
        if not isinstance(first, updates.Current):
            self.refuse("operand-path", function=function)
            return second
        if first == second:
            self.refuse("distinct", function=function, path=path_text(first.path))
        return updates.CurrentOrDefault(first.path, second)

    def _check_kind(self, function: str, operands: Iterable[updates.Operand], kind: Kind) -> None:
        for operand in operands:
            if isinstance(operand, updates.Literal) and operand.value.kind is not kind:
                self.refuse("operand-type", function=function, kind=type_name(operand.value.kind))
