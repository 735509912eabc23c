"""Checks of an expression's text, and substitution of its placeholders. Common to all of DynamoDB's expressions.

Functions, reserved words and limits of texts and paths are checked in the service's order. grammar.py has the
grammar. conditions.py, key_conditions.py, updates.py and projections.py convert the trees.

Checks of the text alone (syntax, reserved words, functions, number of operators) run once for each text, and the
tree is cached. Checks that depend on placeholders run for each request. Both walks are bounded by the 300
operators and 4,096 bytes of an expression.

Placeholders are the ExpressionAttributeNames and ExpressionAttributeValues of one request. item_rules.py has already
checked the maps. request_clauses.py assigns them to expressions. The reserved words are those that no expression may use
as an attribute name (AWS developer guide, "Reserved words in DynamoDB").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from tablegate.adapters.dynamodb.expressions.syntax import (
    AndNode,
    ArithmeticNode,
    BetweenNode,
    CallNode,
    CompareNode,
    ConditionNode,
    ExpressionError,
    InNode,
    NotNode,
    OrNode,
    PathNode,
    SectionNode,
    ValueNode,
)
from tablegate.adapters.dynamodb.values.values import value_of
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.error_texts import expression_text
from tablegate.adapters.dynamodb.wire.errors import ANY_OPERATION, ErrorTexts, ServiceError, validation
from tablegate.gateway.model.expressions.predicates import Path
from tablegate.gateway.model.values.values import NULL, Value

# Reserved words


_WORDS = """
ABORT ABSOLUTE ACTION ADD AFTER AGENT AGGREGATE ALL ALLOCATE ALTER ANALYZE AND ANY ARCHIVE ARE ARRAY AS ASC
ASCII ASENSITIVE ASSERTION ASYMMETRIC AT ATOMIC ATTACH ATTRIBUTE AUTH AUTHORIZATION AUTHORIZE AUTO AVG BACK
BACKUP BASE BATCH BEFORE BEGIN BETWEEN BIGINT BINARY BIT BLOB BLOCK BOOLEAN BOTH BREADTH BUCKET BULK BY BYTE
CALL CALLED CALLING CAPACITY CASCADE CASCADED CASE CAST CATALOG CHAR CHARACTER CHECK CLASS CLOB CLOSE CLUSTER
CLUSTERED CLUSTERING CLUSTERS COALESCE COLLATE COLLATION COLLECTION COLUMN COLUMNS COMBINE COMMENT COMMIT
COMPACT COMPILE COMPRESS CONDITION CONFLICT CONNECT CONNECTION CONSISTENCY CONSISTENT CONSTRAINT CONSTRAINTS
CONSTRUCTOR CONSUMED CONTINUE CONVERT COPY CORRESPONDING COUNT COUNTER CREATE CROSS CUBE CURRENT CURSOR CYCLE
DATA DATABASE DATE DATETIME DAY DEALLOCATE DEC DECIMAL DECLARE DEFAULT DEFERRABLE DEFERRED DEFINE DEFINED
DEFINITION DELETE DELIMITED DEPTH DEREF DESC DESCRIBE DESCRIPTOR DETACH DETERMINISTIC DIAGNOSTICS DIRECTORIES
DISABLE DISCONNECT DISTINCT DISTRIBUTE DO DOMAIN DOUBLE DROP DUMP DURATION DYNAMIC EACH ELEMENT ELSE ELSEIF
EMPTY ENABLE END EQUAL EQUALS ERROR ESCAPE ESCAPED EVAL EVALUATE EXCEEDED EXCEPT EXCEPTION EXCEPTIONS
EXCLUSIVE EXEC EXECUTE EXISTS EXIT EXPLAIN EXPLODE EXPORT EXPRESSION EXTENDED EXTERNAL EXTRACT FAIL FALSE
FAMILY FETCH FIELDS FILE FILTER FILTERING FINAL FINISH FIRST FIXED FLATTERN FLOAT FOR FORCE FOREIGN FORMAT
FORWARD FOUND FREE FROM FULL FUNCTION FUNCTIONS GENERAL GENERATE GET GLOB GLOBAL GO GOTO GRANT GREATER GROUP
GROUPING HANDLER HASH HAVE HAVING HEAP HIDDEN HOLD HOUR IDENTIFIED IDENTITY IF IGNORE IMMEDIATE IMPORT IN
INCLUDING INCLUSIVE INCREMENT INCREMENTAL INDEX INDEXED INDEXES INDICATOR INFINITE INITIALLY INLINE INNER
INNTER INOUT INPUT INSENSITIVE INSERT INSTEAD INT INTEGER INTERSECT INTERVAL INTO INVALIDATE IS ISOLATION ITEM
ITEMS ITERATE JOIN KEY KEYS LAG LANGUAGE LARGE LAST LATERAL LEAD LEADING LEAVE LEFT LENGTH LESS LEVEL LIKE
LIMIT LIMITED LINES LIST LOAD LOCAL LOCALTIME LOCALTIMESTAMP LOCATION LOCATOR LOCK LOCKS LOG LOGED LONG LOOP
LOWER MAP MATCH MATERIALIZED MAX MAXLEN MEMBER MERGE METHOD METRICS MIN MINUS MINUTE MISSING MOD MODE MODIFIES
MODIFY MODULE MONTH MULTI MULTISET NAME NAMES NATIONAL NATURAL NCHAR NCLOB NEW NEXT NO NONE NOT NULL NULLIF
NUMBER NUMERIC OBJECT OF OFFLINE OFFSET OLD ON ONLINE ONLY OPAQUE OPEN OPERATOR OPTION OR ORDER ORDINALITY
OTHER OTHERS OUT OUTER OUTPUT OVER OVERLAPS OVERRIDE OWNER PAD PARALLEL PARAMETER PARAMETERS PARTIAL PARTITION
PARTITIONED PARTITIONS PATH PERCENT PERCENTILE PERMISSION PERMISSIONS PIPE PIPELINED PLAN POOL POSITION
PRECISION PREPARE PRESERVE PRIMARY PRIOR PRIVATE PRIVILEGES PROCEDURE PROCESSED PROJECT PROJECTION PROPERTY
PROVISIONING PUBLIC PUT QUERY QUIT QUORUM RAISE RANDOM RANGE RANK RAW READ READS REAL REBUILD RECORD RECURSIVE
REDUCE REF REFERENCE REFERENCES REFERENCING REGEXP REGION REINDEX RELATIVE RELEASE REMAINDER RENAME REPEAT
REPLACE REQUEST RESET RESIGNAL RESOURCE RESPONSE RESTORE RESTRICT RESULT RETURN RETURNING RETURNS REVERSE
REVOKE RIGHT ROLE ROLES ROLLBACK ROLLUP ROUTINE ROW ROWS RULE RULES SAMPLE SATISFIES SAVE SAVEPOINT SCAN
SCHEMA SCOPE SCROLL SEARCH SECOND SECTION SEGMENT SEGMENTS SELECT SELF SEMI SENSITIVE SEPARATE SEQUENCE
SERIALIZABLE SESSION SET SETS SHARD SHARE SHARED SHORT SHOW SIGNAL SIMILAR SIZE SKEWED SMALLINT SNAPSHOT SOME
SOURCE SPACE SPACES SPARSE SPECIFIC SPECIFICTYPE SPLIT SQL SQLCODE SQLERROR SQLEXCEPTION SQLSTATE SQLWARNING
START STATE STATIC STATUS STORAGE STORE STORED STREAM STRING STRUCT STYLE SUB SUBMULTISET SUBPARTITION
SUBSTRING SUBTYPE SUM SUPER SYMMETRIC SYNONYM SYSTEM TABLE TABLESAMPLE TEMP TEMPORARY TERMINATED TEXT THAN
THEN THROUGHPUT TIME TIMESTAMP TIMEZONE TINYINT TO TOKEN TOTAL TOUCH TRAILING TRANSACTION TRANSFORM TRANSLATE
TRANSLATION TREAT TRIGGER TRIM TRUE TRUNCATE TTL TUPLE TYPE UNDER UNDO UNION UNIQUE UNIT UNKNOWN UNLOGGED
UNNEST UNPROCESSED UNSIGNED UNTIL UPDATE UPPER URL USAGE USE USER USERS USING UUID VACUUM VALUE VALUED VALUES
VARCHAR VARIABLE VARIANCE VARINT VARYING VIEW VIEWS VIRTUAL VOID WAIT WHEN WHENEVER WHERE WHILE WINDOW WITH
WITHIN WITHOUT WORK WRAPPED WRITE YEAR ZONE
"""

RESERVED_WORDS = frozenset(_WORDS.split())


def is_reserved(name: str) -> bool:
    """True if an attribute name needs a placeholder. Case does not matter."""
    return name.upper() in RESERVED_WORDS


# Placeholders


class Placeholders:
    """The placeholders of one request. `values`: wire AttributeValues. `error_texts`: those of the operation."""

    __slots__ = ("_names", "_parsed_values", "_unused_names", "_unused_values", "_values", "error_texts")

    def __init__(
        self,
        names: Mapping[str, str] | None = None,
        values: Mapping[str, Any] | None = None,
        error_texts: ErrorTexts = ANY_OPERATION,
    ) -> None:
        self.error_texts = error_texts
        self._names = names or {}
        self._values = values or {}
        self._parsed_values: dict[str, Value] = {}
        self._unused_names = set(self._names)
        self._unused_values = set(self._values)

    @classmethod
    def of(cls, arguments: Mapping[str, Any], error_texts: ErrorTexts) -> Placeholders:
        """Return the placeholders in a request, or in a member of one."""
        return cls(
            arguments.get("ExpressionAttributeNames"), arguments.get("ExpressionAttributeValues"), error_texts
        )

    def name(self, placeholder: str) -> str | None:
        """Return the attribute name for a placeholder. None if it is not defined."""
        self._unused_names.discard(placeholder)
        return self._names.get(placeholder)

    def value(self, placeholder: str) -> Value | None:
        """Return the value for a placeholder. None if it is not defined.

        It is one object, however often expressions name the placeholder.
        """
        value = self._parsed_values.get(placeholder)
        if value is None:
            self._unused_values.discard(placeholder)
            wire = self._values.get(placeholder)
            if wire is not None:
                value = self._parsed_values[placeholder] = value_of(wire)
        return value

    def check_all_used(self) -> None:
        """Raise ServiceError if no expression used a placeholder.

        Call after all expressions of the request are parsed.
        """
        if self._unused_names:
            keys = ", ".join(key for key in self._names if key in self._unused_names)
            raise self.error("names-unused", keys=keys)
        if self._unused_values:
            keys = ", ".join(key for key in self._values if key in self._unused_values)
            raise self.error("values-unused", keys=keys)

    def error(self, rule: str, expression: str = "", **facts: object) -> ServiceError:
        """Return the error of a rule with the frame of the operation.

        `expression`: its parameter, such as `UpdateExpression`.
        """
        prefix = f"Invalid {expression}: " if expression else ""
        if rule == "size" and (self.error_texts.operation, expression) == (
            "TransactWriteItems",
            "UpdateExpression",
        ):
            rule = "size-of-transacted-update"
        text = prefix + expression_text(rule, **facts)
        return validation(self.error_texts.framed_expression(text))


# Checks


CONDITION = "ConditionExpression"
FILTER = "FilterExpression"
KEY_CONDITION = "KeyConditionExpression"
UPDATE = "UpdateExpression"
PROJECTION = "ProjectionExpression"


class PlaceholderReader:
    """A base for readers that replace placeholders by names and values. `kind`: the parameter, as errors name it."""

    def __init__(self, kind: str, placeholders: Placeholders) -> None:
        self._kind = kind
        self._placeholders = placeholders

    def refuse(self, rule: str, **facts: object) -> None:
        """Raise the error of a rule. A subclass may collect errors instead."""
        raise self._placeholders.error(rule, self._kind, **facts)

    def path(self, node: PathNode) -> Path:
        """Return the path with its placeholders replaced by names."""
        steps = node.steps
        for at, step in enumerate(steps):
            if type(step) is str and step[0] == "#":
                name = self._placeholders.name(step)
                if name is None:
                    self.refuse("undefined-name", name=step)
                else:
                    steps = (*steps[:at], name, *steps[at + 1 :])
        if len(steps) > limits.EXPRESSION_PATH_STEPS:
            self.refuse("depth", levels=len(steps))
        return steps

    def value(self, node: ValueNode) -> Value:
        value = self._placeholders.value(node.name)
        if value is None:
            self.refuse("undefined-value", name=node.name)
            return NULL
        return value

    def check_count(self, call: CallNode) -> bool:
        """Refuse a call with a wrong number of operands. Return True if the number is right."""
        if len(call.operands) == _OPERAND_COUNTS[call.function]:
            return True
        self.refuse("operand-count", function=call.function, count=len(call.operands))
        return False


def condition_tree(text: str, kind: str, placeholders: Placeholders) -> ConditionNode:
    """Return the syntax tree of a condition, filter or key condition with a valid text. Raises ServiceError."""
    return _checked_tree(_condition_tree, text, kind, placeholders)


def update_tree(text: str, placeholders: Placeholders) -> tuple[SectionNode, ...]:
    """Return the sections of an update with a valid text. Raises ServiceError."""
    return _checked_tree(_update_tree, text, UPDATE, placeholders)


def projection_tree(text: str, placeholders: Placeholders) -> tuple[PathNode, ...]:
    """Return the paths of a projection with a valid text. Raises ServiceError."""
    return _checked_tree(_projection_tree, text, PROJECTION, placeholders)


def refuse_paths_into_keys(
    paths: Iterable[Path], table_keys: Iterable[str], index_keys: Iterable[str]
) -> None:
    """Raise ServiceError if a path goes into a key attribute of the table or of one of its indexes."""
    outer_names = {path[0] for path in paths if len(path) > 1}
    if not outer_names:
        return
    for role, names in (("Key", table_keys), ("IndexKey", index_keys)):
        for name in names:
            if name in outer_names:
                raise validation(expression_text("key-path", role=role, name=name))


# Checks of the text

_Tree = TypeVar("_Tree")
# In characters. Longer texts are rare, and caching them would let a hostile client fill the memory.
_CACHED_MAX_CHARACTERS = 1024

_CONDITION_FUNCTIONS = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
}
_UPDATE_FUNCTIONS = {"if_not_exists": 2, "list_append": 2}
_OPERAND_COUNTS = {**_CONDITION_FUNCTIONS, **_UPDATE_FUNCTIONS, "size": 1}


def _checked_tree(tree_of: Callable[[str], _Tree], text: str, kind: str, placeholders: Placeholders) -> _Tree:
    """Return the tree of a text, from the cache if it is short. Raises ServiceError."""
    try:
        if len(text) > _CACHED_MAX_CHARACTERS:
            tree_of = tree_of.__wrapped__  # type: ignore[attr-defined]
        return tree_of(text)
    except ExpressionError as refused:
        raise placeholders.error(refused.rule, kind, **refused.facts) from None


@lru_cache(maxsize=512)
def _condition_tree(text: str) -> ConditionNode:
    # The parser is loaded for the first text (docs/architecture.md section 11).
    from tablegate.adapters.dynamodb.expressions import grammar

    tree: ConditionNode = grammar.parse("condition", text)
    nodes = list(_walk(tree, as_condition=True))
    _check_operators(node for node, _ in nodes)
    _check_functions(nodes, _misuse_in_condition)
    _check_names(node for node, _ in nodes)
    return tree


@lru_cache(maxsize=512)
def _update_tree(text: str) -> tuple[SectionNode, ...]:
    from tablegate.adapters.dynamodb.expressions import grammar

    sections: tuple[SectionNode, ...] = grammar.parse("update", text)
    nodes = [
        node_and_flag
        for section in sections
        for action in section.actions
        for part in action
        if not isinstance(part, str)
        for node_and_flag in _walk(part, as_condition=True)
    ]
    _check_operators(node for node, _ in nodes)
    _check_names(node for node, _ in nodes)
    _check_functions(nodes, _misuse_in_update)
    keywords = set()
    for section in sections:
        if section.keyword in keywords:
            raise ExpressionError("section-twice", section=section.keyword)
        keywords.add(section.keyword)
    return sections


@lru_cache(maxsize=512)
def _projection_tree(text: str) -> tuple[PathNode, ...]:
    from tablegate.adapters.dynamodb.expressions import grammar

    paths: tuple[PathNode, ...] = grammar.parse("projection", text)
    _check_names(paths)
    return paths


def _walk(tree: Any, as_condition: bool) -> Iterator[tuple[Any, bool]]:
    """Yield each node, outer before inner and left before right. The flag is True where a condition may stand.

    In an update the flag is True for the whole of a new value. The walk has its own stack, because functions may
    be nested a thousand deep.
    """
    stack = [(tree, as_condition)]
    while stack:
        node, outer = stack.pop()
        yield node, outer
        inner = outer and isinstance(node, (AndNode, OrNode, NotNode))
        stack.extend((child, inner) for child in reversed(_children(node)))


def _children(node: Any) -> tuple[Any, ...]:
    match node:
        case PathNode() | ValueNode():
            return ()
        case CallNode(_, operands):
            return operands
        case AndNode(parts) | OrNode(parts):
            return parts
        case NotNode(part):
            return (part,)
        case CompareNode(_, left, right) | ArithmeticNode(_, left, right):
            return (left, right)
        case BetweenNode(operand, lower, upper):
            return (operand, lower, upper)
        case InNode(operand, members):
            return (operand, *members)
    raise AssertionError(node)


def _check_operators(nodes: Iterable[Any]) -> None:
    """Functions and parentheses do not count (test_limits.py test_deeply_nested_expression_2)."""
    count = 0
    for node in nodes:
        match node:
            case AndNode(parts) | OrNode(parts):
                count += len(parts) - 1
            case NotNode() | CompareNode() | BetweenNode() | InNode() | ArithmeticNode():
                count += 1
    if count > limits.EXPRESSION_OPERATORS:
        raise ExpressionError("operators", count=count)


def _check_functions(nodes: list[tuple[Any, bool]], misuse_of: Callable[[str, bool], str | None]) -> None:
    """Check that all functions exist, then that each is allowed where it stands (dynalite scan.js, in this order)."""
    calls = [(node.function, outer) for node, outer in nodes if isinstance(node, CallNode)]
    for function, _ in calls:
        if function not in _OPERAND_COUNTS:
            raise ExpressionError("function-unknown", function=function)
    for function, outer in calls:
        rule = misuse_of(function, outer)
        if rule is not None:
            raise ExpressionError(rule, function=function)


def _misuse_in_condition(function: str, as_condition: bool) -> str | None:
    if function in _UPDATE_FUNCTIONS:
        return "function-in-condition"
    return None if as_condition is (function in _CONDITION_FUNCTIONS) else "function-misused"


def _misuse_in_update(function: str, as_whole: bool) -> str | None:
    """list_append is no operand of another function (test_update_expression.py
    test_update_expression_function_nesting).
    """
    if function not in _UPDATE_FUNCTIONS:
        return "function-in-update"
    return "function-misused" if function == "list_append" and not as_whole else None


def _check_names(nodes: Iterable[Any]) -> None:
    for node in nodes:
        if isinstance(node, PathNode):
            for step in node.steps:
                if isinstance(step, int):
                    if step > limits.EXPRESSION_LIST_INDEX:
                        raise ExpressionError("index", index=step)
                elif step[0] != "#" and is_reserved(step):
                    raise ExpressionError("reserved", name=step)
