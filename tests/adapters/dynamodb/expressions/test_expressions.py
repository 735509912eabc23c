"""Expressions of conditions, filters, updates and projections: their parsed form, and the service's errors for invalid
ones.

Texts and their order: dynalite's tests (recorded from the service), comments of ScyllaDB's test/alternator, and
captures of 2026 (paritysuite/dynamodb-conformance, floci, dynoxide). A source is named where it is the only one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.expressions.conditions import parse_condition, refuse_filter_on_keys
from tablegate.adapters.dynamodb.expressions.projections import (
    ProjectionPaths,
    parse_projection,
    project,
    updated_parts,
)
from tablegate.adapters.dynamodb.expressions.static_checks import (
    FILTER,
    RESERVED_WORDS,
    Placeholders,
    is_reserved,
    refuse_paths_into_keys,
)
from tablegate.adapters.dynamodb.expressions.updates import (
    creates_item,
    operand_paths,
    parse_update,
    refuse_key_updates,
)
from tablegate.adapters.dynamodb.wire.errors import ErrorTexts, ServiceError
from tablegate.gateway.model.expressions.evaluation import matches
from tablegate.gateway.model.expressions.predicates import (
    And,
    Attribute,
    Compare,
    Comparison,
    Contains,
    Exists,
    HasKind,
    Literal,
    Not,
    Or,
    SizeOf,
    StartsWith,
    paths_of,
)
from tablegate.gateway.model.expressions.updates import (
    Add,
    Concatenate,
    Current,
    CurrentOrDefault,
    EditContext,
    Minus,
    Plus,
    Remove,
    SetTo,
    Subtract,
    edit,
)
from tablegate.gateway.model.expressions.updates import Literal as Constant
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Contents, Row
from tablegate.gateway.model.values.values import NUMBERS, Kind, Value, decimal, number_set, text
from tests.support.examples import examples
from tests.support.tables import each_row

NAMES = {"#a": "a", "#b": "b", "#c": "c", "#d": "[3]"}
VALUES: dict[str, Any] = {
    ":s": {"S": "x"},
    ":n": {"N": "5"},
    ":b": {"B": "YQ=="},
    ":bool": {"BOOL": True},
    ":null": {"NULL": True},
    ":l": {"L": []},
    ":m": {"M": {}},
    ":ss": {"SS": ["1"]},
    ":ns": {"NS": ["1"]},
    ":bs": {"BS": ["YQ=="]},
}
A, B, C = Attribute(("a",)), Attribute(("b",)), Attribute(("c",))
S, N = Literal(text("x")), Literal(decimal(5))


def placeholders(operation: str = "", **values: Any) -> Placeholders:
    more = {f":{name}": value for name, value in values.items()}
    return Placeholders(dict(NAMES), {**VALUES, **more}, ErrorTexts(operation))


def condition(expression: str, **values: Any) -> Any:
    return parse_condition(expression, placeholders(**values))


def update(expression: str, **values: Any) -> Any:
    return parse_update(expression, placeholders(**values))


def projection(expression: str) -> ProjectionPaths:
    return parse_projection(expression, placeholders())


def refusal(parse: Callable[..., Any], expression: str, **values: Any) -> str:
    with pytest.raises(ServiceError) as raised:
        parse(expression, **values)
    assert raised.value.code == "ValidationException"
    assert raised.value.status == 400
    message = raised.value.message or ""
    head, _, tail = message.partition(": ")
    assert head.startswith("Invalid ")
    return tail


# Conditions


@each_row(
    "expression, predicate",
    [
        ("a = :s", Compare(A, Comparison.EQ, S)),
        ("#a<>:s", Compare(A, Comparison.NE, S)),
        (":n <= a", Compare(N, Comparison.LE, A)),
        ("a < b", Compare(A, Comparison.LT, B)),
        ("a.b[0].#d = :s", Compare(Attribute(("a", "b", 0, "[3]")), Comparison.EQ, S)),
        ("a between :n and b", And((Compare(A, Comparison.GE, N), Compare(A, Comparison.LE, B)))),
        ("a IN (:s, b)", Or((Compare(A, Comparison.EQ, S), Compare(A, Comparison.EQ, B)))),
        ("attribute_exists(a.b)", Exists(("a", "b"))),
        ("attribute_not_exists(a)", Not(Exists(("a",)))),
        ("attribute_type(a, :type)", HasKind(A, NUMBERS)),
        ("attribute_type(:s, :type)", HasKind(S, NUMBERS)),  # test_update_condition_attribute_type
        ("begins_with(a, :s)", StartsWith(A, S)),
        ("begins_with(:s, a)", StartsWith(S, A)),
        ("contains(a, :n)", Contains(A, N)),
        ("size(a.b) > :n", Compare(SizeOf(("a", "b")), Comparison.GT, N)),
        ("size(:s) = :n", Compare(Literal(decimal(1)), Comparison.EQ, N)),
        ("NOT attribute_exists(a)", Not(Exists(("a",)))),
        ("not NOT nOt attribute_exists(a)", Not(Exists(("a",)))),
        ("(a = :s)", Compare(A, Comparison.EQ, S)),
        ("(a) = (:s)", Compare(A, Comparison.EQ, S)),
        ("(size(a)) < :n", Compare(SizeOf(("a",)), Comparison.LT, N)),
        ("(attribute_exists(a))", Exists(("a",))),
        (" a\t=\r\n:s ", Compare(A, Comparison.EQ, S)),
    ],
)
def test_conditions(expression: str, predicate: Any) -> None:
    assert condition(expression, type={"S": "N"}) == predicate


def test_not_binds_tighter_than_and_and_that_tighter_than_or() -> None:
    a, b, c = Exists(("a",)), Exists(("b",)), Exists(("c",))
    names = "attribute_exists(a)", "attribute_exists(b)", "attribute_exists(c)"
    assert condition("{} or {} and {}".format(*names)) == Or((a, And((b, c))))
    assert condition("{} and {} or {}".format(*names)) == Or((And((a, b)), c))
    assert condition("not {} and {}".format(*names)) == And((Not(a), b))
    assert condition("({} or {}) and {}".format(*names)) == And((Or((a, b)), c))
    assert condition("{} and {} and {}".format(*names)) == And((a, b, c))


def test_between_takes_its_and_before_the_boolean_one() -> None:
    assert isinstance(condition("b BETWEEN a AND c AND a < b"), And)
    assert len(condition("b BETWEEN a AND c AND a < b").parts) == 2


@pytest.mark.parametrize(
    ("expression", "token", "near"),
    [
        ("a-b", "-", "a-b"),  # floci issue 1512, against the service
        ("a @ b", "@", "a @ b"),
        ("tenantAgent:abc123-x = :s", ":abc123", "tenantAgent:abc123-"),
        (
            "#articleId attribute_not_exists :ckpst",
            "attribute_not_exists",
            "#articleId attribute_not_exists :ckpst",
        ),
        ("attribute_exists(car) AND NOT #has", "<EOF>", "#has"),
        ("attribute_type()", ")", "()"),
        ("a = = b", "=", "= = b"),
        ("#comment =", "<EOF>", "="),
        ("#a[abc].b = :s", "abc", "[abc]"),
        ("#a[-1].b = :s", "-", "[-1"),
        ("_abc = :s", "_", "_abc"),
        ("", None, None),
        ("   ", "<EOF>", "   "),
    ],
)
def test_syntax_errors_name_the_token_and_its_surroundings(
    expression: str, token: str | None, near: str | None
) -> None:
    if token is None:
        assert refusal(condition, expression) == "The expression can not be empty;"
    else:
        assert refusal(condition, expression) == f'Syntax error; token: "{token}", near: "{near}"'


@each_row(
    "expression",
    [
        # dynalite scan.js
        "things are not gonna be ok",
        "a > 4",
        "attribute_exists(Pictures-RearView)",
        'attribute_exists("Pictures.RearView")',
        "attribute_exists(Pictures..RearView)",
        "attribute_exists(Pi#ctures.RearView)",
        "attribute_exists(asdf[a])",
        "a in b, c",
        "a > between",
        "a in b",
        "a in (b,c,)",
        "(a)between(b.(c.d))and(c)",
        "(a)between(b.c.d)and((c)",
        "#$.b > a",
        "a > :things.stuff",
        "b[:a] > a",
        "b[#_] > a",
        "ü > a",
        "(a)between(b.c[4.5].#d)and(:a)",
        "size(a).b > a",
        "(size(a)).b > a",
        "size(a)[0] > a",
        "(size(a))[0] > a",
        # test_condition_expression.py: a value alone is no condition. IN requires members
        "a",
        ":s",
        "NOT a",
        "a AND :s",
        "a OR NOT :s",
        "a = :s OR NOT :s",
        "a IN ()",
        "a != :s",
        # keywords of any expression are no names
        "set = :s",
        "remove = :s",
        "a[007] = :s",
        "a[] = :s",
        "(((",
        ")",
    ],
)
def test_texts_that_are_no_condition(expression: str) -> None:
    assert refusal(condition, expression).startswith("Syntax error; token: ")


@pytest.mark.parametrize(
    "expression",
    [
        # dynalite scan.js
        "a=a and a > ((views))",
        "(a)between(((b.c)).d)and(c)",
        "a > whatever((:things), ((a)))",
        "a=a AND ((a=a AND a=a)) AND a=a",
        "a=a OR ((a=a OR a=a)) OR a=a",
        "a=a AND ((a=a AND (a=a AND a=a)))",
        "a=a OR ((a=a OR (a=a OR a=a)))",
        "((a = b))",
        "( ( a = b ) )",
        "((#name)) = :value",
        "((attribute_exists(a)))",
        "(" * 2046 + "a<b" + ")" * 2046,  # test_deeply_nested_expression_3
    ],
)
def test_redundant_parentheses_are_refused(expression: str) -> None:
    assert refusal(condition, expression) == "The expression has redundant parentheses;"


@pytest.mark.parametrize(
    "expression",
    [
        "((a < b) and a < c)",
        "((a < b) or (a < c))",
        "((a) = b)",
        "contains((a), (b))",
        "a in ((b))",
        "(not (a < b))",
    ],
)
def test_parentheses_that_group_something_are_fine(expression: str) -> None:
    condition(expression)


@pytest.mark.parametrize(
    ("expression", "function"),
    [("a=a and whatever((:things)) > a", "whatever"), ("attRIbute_exIsts((views), #a)", "attRIbute_exIsts")],
)
def test_unknown_functions(expression: str, function: str) -> None:
    assert refusal(condition, expression) == f"Invalid function name; function: {function}"


@pytest.mark.parametrize(
    ("expression", "function"),
    [
        # dynalite scan.js
        ("a=a and attribute_exists((views), (#a)) > b", "attribute_exists"),
        ("attribute_not_exists(things) > b", "attribute_not_exists"),
        ("attribute_type(things, :a) > b", "attribute_type"),
        ("begins_with(things, a) > b", "begins_with"),
        ("contains(:things, c) > b", "contains"),
        ("size(contains(a, b)) > a", "contains"),
        ("size(things)", "size"),
        ("a between b and attribute_exists(things)", "attribute_exists"),
        ("a in (b, attribute_exists(things))", "attribute_exists"),
    ],
)
def test_functions_in_wrong_places_are_refused(expression: str, function: str) -> None:
    assert (
        refusal(condition, expression)
        == f"The function is not allowed to be used this way in an expression; function: {function}"
    )


def test_functions_of_updates_are_none_of_conditions() -> None:
    # test_update_condition_other_funcs expects "not allowed".
    expected = "The function is not allowed in a condition expression; function: if_not_exists"
    assert refusal(condition, "if_not_exists(a, b) = :s") == expected


@pytest.mark.parametrize(
    ("expression", "word"),
    [("attribute_exists(views, #a)", "views"), (":a < abOrT", "abOrT"), ("a.COUNT = :s", "COUNT")],
)
def test_reserved_words(expression: str, word: str) -> None:
    expected = f"Attribute name is a reserved keyword; reserved keyword: {word}"
    assert refusal(condition, expression) == expected


def test_there_are_573_reserved_words() -> None:
    assert len(RESERVED_WORDS) == 573
    assert is_reserved("name")
    assert is_reserved("STATUS")
    assert not is_reserved("pk")


def test_a_reserved_word_may_stand_behind_a_placeholder() -> None:
    names = Placeholders({"#n": "name", "#dots": "a.b"}, VALUES)
    assert parse_condition("#n = :s", names) == Compare(Attribute(("name",)), Comparison.EQ, S)
    assert parse_condition("#dots = :s", names) == Compare(Attribute(("a.b",)), Comparison.EQ, S)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("attribute_exists(#Pictures.RearView, :a) and a=a", "#Pictures"),
        ("begins_with(Pictures.#RearView)", "#RearView"),
        ("(#P between :lo and :hi) and (#PC in (:cat1, :cat2))", "#P"),
        ("#4g > a", "#4g"),
        ("#_ > a", "#_"),
        ("(a)between(b.c[45].#x)and(:a)", "#x"),
    ],
)
def test_undefined_names(expression: str, name: str) -> None:
    expected = (
        f"An expression attribute name used in the document path is not defined; attribute name: {name}"
    )
    assert refusal(condition, expression) == expected


@pytest.mark.parametrize(
    ("expression", "name"), [("begins_with(:hello, #x, #y)", ":hello"), (":x < :y", ":x"), (":_ > a", ":_")]
)
def test_undefined_values(expression: str, name: str) -> None:
    expected = f"An expression attribute value used in expression is not defined; attribute value: {name}"
    assert refusal(condition, expression) == expected


@pytest.mark.parametrize(
    ("expression", "function", "count"),
    [
        ("attribute_exists(things, a) and a=a", "attribute_exists", 2),
        ("attribute_not_exists(things, b)", "attribute_not_exists", 2),
        ("attribute_type(things)", "attribute_type", 1),
        ("begins_with(things)", "begins_with", 1),
        ("begins_with(things, size(a), b)", "begins_with", 3),
        ("contains(things)", "contains", 1),
        ("size(things, a) > b", "size", 2),
    ],
)
def test_functions_with_the_wrong_number_of_operands(expression: str, function: str, count: int) -> None:
    assert refusal(condition, expression) == (
        "Incorrect number of operands for operator or function; "
        f"operator or function: {function}, number of operands: {count}"
    )


@each_row(
    "expression, function, kind",
    [
        ("attribute_type(a, size(a)) and a=a", "attribute_type", "N"),
        *[
            (f"attribute_type(a, :{v})", "attribute_type", v.upper())
            for v in ("n", "b", "bool", "null", "l", "m", "ss", "ns", "bs")
        ],
        ("attribute_type(a, b)", "attribute_type", "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}"),
        ("begins_with(a, size(a))", "begins_with", "N"),
        *[
            (f"begins_with(a, :{v})", "begins_with", v.upper())
            for v in ("n", "bool", "null", "l", "m", "ss", "ns", "bs")
        ],
        *[
            (f"begins_with(:{v}, a)", "begins_with", v.upper())
            for v in ("n", "bool", "null", "l", "m", "ss", "ns", "bs")
        ],
        ("size(size(a)) > :n", "size", "N"),
        ("attribute_not_exists(size(:n))", "size", "N"),
        *[(f"size(:{v}) > a", "size", v.upper()) for v in ("n", "bool", "null")],
        *[(f"a {o} :bool", o, "BOOL") for o in ("<", "<=", ">", ">=")],
        *[(f":{v} < a", "<", v.upper()) for v in ("null", "l", "m", "ss", "ns", "bs")],
        ("a between :l and :l", "BETWEEN", "L"),
    ],
)
def test_constants_of_a_kind_that_a_function_does_not_take(expression: str, function: str, kind: str) -> None:
    assert refusal(condition, expression) == (
        "Incorrect operand type for operator or function; "
        f"operator or function: {function}, operand type: {kind}"
    )


def test_any_kind_can_be_equal_contained_or_a_member() -> None:
    for value in VALUES:
        condition(f"a = {value} and b <> {value} and contains(a, {value}) and a in ({value})")


def test_types_that_do_not_exist() -> None:
    said = refusal(condition, "attribute_type(a, :x)", x={"S": "DOG"})
    assert said.startswith("Invalid attribute type name found; type: DOG, valid types: {")


@pytest.mark.parametrize(
    ("expression", "function"),
    [
        ("attribute_exists(:s) and a=a", "attribute_exists"),
        ("attribute_not_exists(size(:s))", "attribute_not_exists"),
    ],
)
def test_functions_that_want_a_path(expression: str, function: str) -> None:
    expected = f"Operator or function requires a document path; operator or function: {function}"
    assert refusal(condition, expression) == expected


@pytest.mark.parametrize(
    ("expression", "operator", "path"),
    [
        ("a = a AND #a = b AND :views > a", "=", "[a]"),
        ("#a <> a", "<>", "[a]"),
        ("a > #a", ">", "[a]"),
        ("((a=a) OR (a=a))", "=", "[a]"),
        ("contains(ab.bc[1].a, ab.bc[1].#a)", "contains", "[ab, bc, [1], a]"),
        ("attribute_type(ab.bc[1].#a, ab.bc[1].a)", "attribute_type", "[ab, bc, [1], a]"),
        ("begins_with(ab.bc[1].a, ab.bc[1].#a)", "begins_with", "[ab, bc, [1], a]"),
    ],
)
def test_operands_must_be_distinct(expression: str, operator: str, path: str) -> None:
    assert refusal(condition, expression) == (
        "The first operand must be distinct from the remaining operands for this operator or function; "
        f"operator: {operator}, first operand: {path}"
    )


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        ("SET a = if_not_exists(a, #a)", "[a]"),
        ("SET b = if_not_exists(ab.bc[1].a, ab.bc[1].#a) + b", "[ab, bc, [1], a]"),
        ("SET b = list_append(if_not_exists(a, a), :l)", "[a]"),
    ],
)
def test_if_not_exists_requires_distinct_operands(expression: str, path: str) -> None:
    """DynamoDB Local 2.6.1 refuses these, and accepts the same operand twice in list_append, + and -."""
    assert refusal(update, expression) == (
        "The first operand must be distinct from the remaining operands for this operator or function; "
        f"operator: if_not_exists, first operand: {path}"
    )


@pytest.mark.parametrize(
    "value",
    ["list_append(a, a)", "a + a", "a - a", "if_not_exists(a, a.b)", "if_not_exists(a, if_not_exists(a, b))"],
)
def test_other_operands_may_be_equal(value: str) -> None:
    """DynamoDB Local 2.6.1 accepts these."""
    update(f"SET b = {value}")


def test_a_name_that_looks_like_an_index_is_none() -> None:
    condition("a[3] = a.#d")


def test_between_requires_ordered_bounds_of_one_kind() -> None:
    bounds = "lower bound operand: AttributeValue: {{{}}}, upper bound operand: AttributeValue: {{{}}}"
    assert refusal(condition, "a between :n and :s") == (
        "The BETWEEN operator requires same data type for lower and upper bounds; "
        + bounds.format("N:5", "S:x")
    )
    order = "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
    assert refusal(condition, "a between :n and :m4", m4={"N": "4"}) == order + bounds.format("N:5", "N:4")
    assert refusal(condition, "a between :z and :b", z={"B": "eg=="}) == order + bounds.format(
        "B:eg==", "B:YQ=="
    )
    condition("a between :n and :n")
    condition("a between :low and :high", low={"S": "\ue000"}, high={"S": "\U00010000"})
    condition("a between b and :n")
    # The result of size() is no value of the request (DynamoDB Local, which contains the service's parser).
    condition("a between size(:s) and :zero", zero={"N": "0"})
    condition("a between :s and size(:s)")


def test_in_takes_a_hundred_members() -> None:
    members = ", ".join(f"b{number}" for number in range(100))
    condition(f"a in ({members})")
    assert refusal(condition, f"a in ({members}, c)") == (
        "The IN operator is provided with too many operands; number of operands: 101"
    )


def test_300_operators_and_no_more() -> None:
    # test_limits.py test_deeply_nested_expression_2: parentheses and functions do not count
    assert isinstance(condition("a<b " + "or (a<b " * 149 + ")" * 149), Or)
    condition(" and ".join(["attribute_exists(a)"] * 50) + " and a<b" * 124 + " and not size(a) > b")
    said = refusal(condition, "a<b " + "or a<b " * 150)
    assert said == "The expression contains too many operators; operator count: 301"
    said = refusal(condition, "not " * 301 + "attribute_exists(a)")
    assert said == "The expression contains too many operators; operator count: 301"


def test_4096_bytes_and_no_more() -> None:
    condition("a" + " " * 4091 + "= :s")
    assert refusal(condition, "a" + " " * 4092 + "= :s") == (
        "Expression size has exceeded the maximum allowed size; expression size: 4097"
    )
    assert refusal(condition, "ü" * 2049).endswith("expression size: 4098")
    assert refusal(update, "(" * 5000).endswith("expression size: 5000")


def test_paths_of_32_steps_and_no_more() -> None:
    # test_projection_expression_path_nesting_levels
    projection("a" + ".b" * 31)
    assert (
        refusal(projection, "a" + ".b" * 32)
        == "The document path has too many nesting levels; nesting levels: 33"
    )
    assert refusal(condition, "a" + "[0]" * 32 + " = :s").endswith("nesting levels: 33")


def test_list_indexes_of_31_bits_and_no_more() -> None:
    projection("a[2147483647]")
    for index in ("2147483648", "99999999999999", "9" * 4000):
        expected = f"List index is not within the allowable range; index: [{index}]"
        assert refusal(projection, f"a[{index}]") == expected


def test_the_parameter_is_named_and_writes_are_framed() -> None:
    def said(operation: str, kind: str) -> str:
        with pytest.raises(ServiceError) as raised:
            parse_condition("a = = b", placeholders(operation), kind)
        return raised.value.message or ""

    syntax = 'Syntax error; token: "=", near: "= = b"'
    for operation in ("PutItem", "UpdateItem", "DeleteItem"):
        expected = f"1 validation error detected: Invalid ConditionExpression: {syntax}"
        assert said(operation, "ConditionExpression") == expected
    for operation in ("Query", "Scan"):
        assert said(operation, FILTER) == f"Invalid FilterExpression: {syntax}"


def test_unused_placeholders_are_refused() -> None:
    names = Placeholders({"#a": "a", "#u": "u"}, {":s": {"S": "x"}})
    parse_condition("#a = :s", names)
    with pytest.raises(ServiceError) as raised:
        names.check_all_used()
    assert (
        raised.value.message == "Value provided in ExpressionAttributeNames unused in expressions: keys: {#u}"
    )
    values = Placeholders(
        {"#a": "a"}, {":s": {"S": "x"}, ":u": {"S": "x"}, ":v": {"S": "x"}}, ErrorTexts("PutItem")
    )
    parse_condition("#a = :s", values)
    with pytest.raises(ServiceError) as raised:
        values.check_all_used()
    assert raised.value.message == (
        "1 validation error detected: "
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:u, :v}"
    )
    used = Placeholders({"#a": "a"}, {":s": {"S": "x"}, ":t": {"S": "y"}})
    parse_condition("#a = :s or #a = :t", used)
    used.check_all_used()


def test_placeholders_of_a_cached_text_are_looked_up_anew() -> None:
    for name in ("x", "y"):
        assert parse_condition("#p = :v", Placeholders({"#p": name}, {":v": {"S": name}})) == Compare(
            Attribute((name,)), Comparison.EQ, Literal(text(name))
        )


def test_keys_can_be_read_but_not_led_into() -> None:
    paths = list(paths_of(condition("attribute_exists(a.b.c) and #b = c")))
    refuse_paths_into_keys(paths, ["k", "b"], [])
    for table, index, role in ((["a"], [], "Key"), (["k"], ["a"], "IndexKey")):
        with pytest.raises(ServiceError) as raised:
            refuse_paths_into_keys(paths, table, index)
        assert raised.value.message == (
            f"Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: {role}: a"
        )


def test_filters_of_queries_do_not_read_keys() -> None:
    paths = list(paths_of(condition("c = :s")))
    refuse_filter_on_keys(paths, ["a"])
    with pytest.raises(ServiceError) as raised:
        refuse_filter_on_keys(paths, ["a", "c"], "QueryFilter")
    assert raised.value.message == (
        "QueryFilter can only contain non-primary key attributes: Primary key attribute: c"
    )


# Updates


@pytest.mark.parametrize(
    ("expression", "actions"),
    [
        ("SET a = :s", (SetTo(("a",), Constant(text("x"))),)),
        ("sEt #a.b[1]=c", (SetTo(("a", "b", 1), Current(("c",))),)),
        ("set a = b + :n", (SetTo(("a",), Plus(Current(("b",)), Constant(decimal(5)))),)),
        ("set a = (b - :n)", (SetTo(("a",), Minus(Current(("b",)), Constant(decimal(5)))),)),
        ("set a = ((b)+(c))", (SetTo(("a",), Plus(Current(("b",)), Current(("c",)))),)),
        (
            "SET a = if_not_exists(b, if_not_exists(c, :n)) + :n",
            (
                SetTo(
                    ("a",),
                    Plus(
                        CurrentOrDefault(("b",), CurrentOrDefault(("c",), Constant(decimal(5)))),
                        Constant(decimal(5)),
                    ),
                ),
            ),
        ),
        (
            "SET a = list_append(if_not_exists(a, :l), :l)",
            (
                SetTo(
                    ("a",),
                    Concatenate(
                        CurrentOrDefault(("a",), Constant(Value(Kind.LIST, ()))),
                        Constant(Value(Kind.LIST, ())),
                    ),
                ),
            ),
        ),
        (
            "REMOVE a, b[0] ADD c :n DELETE d :ss SET e = :s",
            (
                Remove(("a",)),
                Remove(("b", 0)),
                Add(("c",), decimal(5)),
                Subtract(("d",), Value(Kind.TEXT_SET, frozenset({"1"}))),
                SetTo(("e",), Constant(text("x"))),
            ),
        ),
        ("add a.b :ns", (Add(("a", "b"), number_set({Decimal(1)})),)),
    ],
)
def test_updates(expression: str, actions: Any) -> None:
    assert update(expression) == actions


@pytest.mark.parametrize(
    ("expression", "token", "near"),
    [
        ("ADD hits : incr", ":", "hits : incr"),  # aws-cdk issue 7591
        ("INVALID SYNTAX HERE", "INVALID", "INVALID SYNTAX"),
        ("SET #a = :s, #, #b = :s", "#", ", #,"),  # dazn-lambda-powertools issue 242
        ("SET #as, #b = :s", ",", "#as, #b"),
        ("SET a = :s +", "<EOF>", "+"),
        ("SET a = b * :n", "*", "b * :n"),
        ("DELETE a", "<EOF>", "a"),
        ("ADD a 1", "1", "a 1"),
        ("DELETE a b", "b", "a b"),
        ("SET _123 = :s", "_", "SET _123"),  # a comment of test_update_expression_name_token
        ("SET a = b + c + d", "+", "c + d"),
        ("SET a[:n] = :s", ":n", "[:n]"),
        ("SET #a[0.#b = :s", ".", "0.#b"),
    ],
)
def test_syntax_errors_in_updates(expression: str, token: str, near: str) -> None:
    assert refusal(update, expression) == f'Syntax error; token: "{token}", near: "{near}"'


@each_row(
    "expression",
    [
        # dynalite updateItem.js
        "whatever",
        "set a",
        "add a",
        "set a=set",
        "remove a = b",
        "add a = b",
        "delete a = b",
        "delete a if_not_exist(b)",
        "add abort b",
        "remove a b",
        "set a b",
        "set :a = b",
        "add :a b",
        "remove :a",
        "set a = b / c",
        'set a[1] = "eight"',
        "set a[1] = 1",
        "SET a = if_not_exist(a, 100)",
        "SET if_not_exist(a, b) = a",
        "set (a = (b + c))",
        "set a = (b.c).d + e",
        "set a = (b.c)[0] + e",
        "SET a = _f(b,c,d)",
        "SET a = if_not_exists(a, :n + :n)",
        "SET a[#a] = :s",
        "   ",
        "a-b",
    ],
)
def test_texts_that_are_no_update(expression: str) -> None:
    assert refusal(update, expression).startswith("Syntax error; token: ")


@each_row(
    "expression, said",
    [
        ("", "The expression can not be empty;"),
        (" set #c = :c set abOrt = true ", "Attribute name is a reserved keyword; reserved keyword: abOrt"),
        ("set #c = if_not_exist(:c) set c = d", "Invalid function name; function: if_not_exist"),
        ("SET a = LIST_APPEND(:l, :l)", "Invalid function name; function: LIST_APPEND"),
        ("set a = #c set c = :d", 'The "SET" section can only be used once in an update expression;'),
        (
            "remove #d set a = b remove e",
            'The "REMOVE" section can only be used once in an update expression;',
        ),
        ("add #d :e set a = b add e :f", 'The "ADD" section can only be used once in an update expression;'),
        (
            "delete #d :e set a = b delete #e :f",
            'The "DELETE" section can only be used once in an update expression;',
        ),
        (
            "SET #x = if_not_exists(:c)",
            "An expression attribute name used in the document path is not defined; attribute name: #x",
        ),
        (
            "SET #a = if_not_exists(:c)",
            "An expression attribute value used in expression is not defined; attribute value: :c",
        ),
        (
            "SET a = :c, b = #x",
            "An expression attribute name used in the document path is not defined; attribute name: #x",
        ),
        (
            "set a = if_not_exists(c)",
            (
                "Incorrect number of operands for operator or function; "
                "operator or function: if_not_exists, number of operands: 1"
            ),
        ),
        (
            "set a = list_append(:l, :l, :l)",
            (
                "Incorrect number of operands for operator or function; "
                "operator or function: list_append, number of operands: 3"
            ),
        ),
        (
            "set a = if_not_exists(:s, c)",
            "Operator or function requires a document path; operator or function: if_not_exists",
        ),
        (
            "set a = if_not_exists(if_not_exists(a, b), c)",
            "Operator or function requires a document path; operator or function: if_not_exists",
        ),
        (
            "SET a = list_append(list_append(b, :l), :l)",  # test_update_expression_function_nesting
            "The function is not allowed to be used this way in an expression; function: list_append",
        ),
        ("SET a = size(b)", "The function is not allowed in an update expression; function: size"),
        (
            "SET a = contains(b, :s)",
            "The function is not allowed in an update expression; function: contains",
        ),
    ],
)
def test_wrong_updates_get_the_texts_of_the_service(expression: str, said: str) -> None:
    assert refusal(update, expression) == said


@pytest.mark.parametrize(
    ("expression", "one", "two"),
    [
        ("set d[1] = a, d.b = a, c[1].a = a, #c = if_not_exists(a)", "[c, [1], a]", "[c]"),
        ("set #c[3].#d = a, #c[3] = a", "[c, [3], [3]]", "[c, [3]]"),
        ("SET a = :s REMOVE a", "[a]", "[a]"),
        ("SET #a = :s, a = :n", "[a]", "[a]"),
        ("SET a.b = :s, a.b.c.d.e = :n", "[a, b]", "[a, b, c, d, e]"),
        ("SET a[1][1] = :s, a[1] = :n", "[a, [1], [1]]", "[a, [1]]"),
        ("REMOVE a.x, a.y, a", "[a, y]", "[a]"),
        ("SET a.b = :s, a[0] = :s REMOVE c, c", "[c]", "[c]"),
    ],
)
def test_paths_that_overlap(expression: str, one: str, two: str) -> None:
    assert refusal(update, expression) == (
        "Two document paths overlap with each other; must remove or rewrite one of these paths; "
        f"path one: {one}, path two: {two}"
    )


@pytest.mark.parametrize(
    ("expression", "one", "two"),
    [
        ("set #c[3].#d = a, #c.#d[3] = if_not_exists(a)", "[c, [3], [3]]", "[c, [3], [3]]"),
        ("remove a.#c set a[1] = #d", "[a, c]", "[a, [1]]"),
        ("SET a.b.c = :s, a.b[2] = :n", "[a, b, c]", "[a, b, [2]]"),
    ],
)
def test_paths_that_conflict(expression: str, one: str, two: str) -> None:
    assert refusal(update, expression) == (
        "Two document paths conflict with each other; must remove or rewrite one of these paths; "
        f"path one: {one}, path two: {two}"
    )


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (
            "ADD a :s DELETE b :n",
            "operator: DELETE, operand type: NUMBER, typeSet: ALLOWED_FOR_DELETE_OPERAND",
        ),
        ("DELETE b :n ADD a :s", "operator: ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND"),
        ("ADD a :s SET b = c + :s", "operator or function: +, operand type: S"),
        ("SET b = c + :s ADD a :s", "operator: ADD, operand type: STRING, typeSet: ALLOWED_FOR_ADD_OPERAND"),
        ("SET b = c + :s, d = list_append(:s, :l)", "operator or function: list_append, operand type: S"),
        ("SET a = :u, c = b + :s", "operator or function: +, operand type: S"),
        ("SET b = :u1, c = :u2", "attribute value: :u2"),
        ("SET a = #x, b = :u", "attribute value: :u"),
        ("SET a = :u REMOVE #x", "attribute name: #x"),
        ("SET b = :u, b = :n", "path one: [b], path two: [b]"),
        ("SET #x = :n, b = :n, b = :n", "path one: [b], path two: [b]"),
        ("SET b = :n, b = :n, #x = :n", "attribute name: #x"),
    ],
)
def test_an_update_is_checked_from_its_end_paths_first(expression: str, said: str) -> None:
    """DynamoDB Local 2.6.1, which contains the service's parser. dynalite's recordings agree."""
    assert refusal(update, expression).endswith(said)


def test_paths_side_by_side_are_fine() -> None:
    update("SET a.b = :s, a.c.d = :n, b.x = :s REMOVE a.x, b.y")
    update("SET a[1] = :s, a[2].b = :s, b = a")


@pytest.mark.parametrize(
    ("section", "value", "kind"),
    [
        *[
            (s, v, k)
            for s in ("ADD", "DELETE")
            for v, k in ((":s", "STRING"), (":null", "NULL"), (":bool", "BOOLEAN"))
        ],
        *[(s, v, k) for s in ("ADD", "DELETE") for v, k in ((":b", "BINARY"), (":m", "MAP"), (":l", "LIST"))],
        ("DELETE", ":n", "NUMBER"),
    ],
)
def test_add_and_delete_refuse_operands_of_other_types(section: str, value: str, kind: str) -> None:
    expression = f"set b = list_append(:s, a), c = if_not_exists(a) {section} a.b {value}"
    said = f"Incorrect operand type for operator or function; operator: {section}, operand type: {kind}"
    assert refusal(update, expression) == f"{said}, typeSet: ALLOWED_FOR_{section}_OPERAND"


@each_row(
    "expression, function, kind",
    [
        *[
            (f"set a = list_append(:{v}, a)", "list_append", v.upper())
            for v in ("s", "n", "b", "bool", "null", "ss", "ns", "bs", "m")
        ],
        *[
            (f"set a = a + :{v}", "+", v.upper())
            for v in ("s", "b", "bool", "null", "ss", "ns", "bs", "m", "l")
        ],
        ("set a = :s + :b", "+", "S"),
        ("set a = :b - a", "-", "B"),
    ],
)
def test_constants_that_updates_cannot_calculate_with(expression: str, function: str, kind: str) -> None:
    assert refusal(update, expression) == (
        "Incorrect operand type for operator or function; "
        f"operator or function: {function}, operand type: {kind}"
    )


def test_keys_are_not_updatable() -> None:
    for expression in ("SET p = :s", "REMOVE p", "ADD p :n", "DELETE p :ss", "SET a = :s, p.b = :s"):
        with pytest.raises(ServiceError) as raised:
            refuse_key_updates(update(expression), ["p"])
        assert raised.value.message == (
            "One or more parameter values were invalid: Cannot update attribute p. This attribute is part of the key"
        )
    refuse_key_updates(update("SET a = p"), ["p"])


def test_paths_an_update_writes_and_reads() -> None:
    actions = update("SET a = if_not_exists(b.c, d) + e, f = list_append(g, :l) REMOVE h[0]")
    assert list(operand_paths(actions)) == [("a",), ("b", "c"), ("d",), ("e",), ("f",), ("g",), ("h", 0)]


def test_updates_that_only_remove_create_no_item() -> None:
    assert creates_item(())
    assert creates_item(update("SET a = :s REMOVE b"))
    assert creates_item(update("ADD a :n"))
    assert not creates_item(update("REMOVE a, b.c"))
    assert not creates_item(update("DELETE a :ss REMOVE b"))


# Projections

ITEM = {
    "p": text("key"),
    "a": Value(
        Kind.MAP,
        {
            "b": Value(Kind.LIST, tuple(decimal(number) for number in (2, 4, 6))),
            "c": text("x"),
            "e": Value(Kind.LIST, (Value(Kind.MAP, {"x": decimal(1), "y": decimal(2), "z": decimal(3)}),)),
        },
    ),
}


def shown(expression: str) -> Any:
    return {name: plain(value) for name, value in project(ITEM, projection(expression)).items()}


def plain(value: Value) -> Any:
    if value.kind is Kind.MAP:
        return {name: plain(member) for name, member in value.data.items()}
    if value.kind is Kind.LIST:
        return [plain(member) for member in value.data]
    return value.data


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("p", {"p": "key"}),
        ("a.c, p", {"a": {"c": "x"}, "p": "key"}),
        ("a.b[0]", {"a": {"b": [2]}}),
        ("a.b[2], a.b[0]", {"a": {"b": [2, 6]}}),  # dynoxide, eu-west-2
        ("a.e[0].x, a.e[0].z", {"a": {"e": [{"x": 1, "z": 3}]}}),
        ("a.x, a.b[0], x, a.b[3].x", {"a": {"b": [2]}}),
        ("a.c.d, a.b.x, p[0], nothing", {}),
        ("a.b", {"a": {"b": [2, 4, 6]}}),
    ],
)
def test_projections(expression: str, expected: Any) -> None:
    assert shown(expression) == expected


def test_a_projection_knows_its_names() -> None:
    assert projection("a.b, a.c, #d").names == {"a", "[3]"}
    assert projection("a.b, a.c, #d").paths == (("a", "b"), ("a", "c"), ("[3]",))


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "The expression can not be empty;"),
        ("a.abORt", "Attribute name is a reserved keyword; reserved keyword: abORt"),
        ("#a,ABSoLUTE", "Attribute name is a reserved keyword; reserved keyword: ABSoLUTE"),
        (
            "a,b,a,#x",
            "An expression attribute name used in the document path is not defined; attribute name: #x",
        ),
    ],
)
def test_wrong_projections_get_the_texts_of_the_service(expression: str, said: str) -> None:
    assert refusal(projection, expression) == said


@each_row(
    "expression",
    [
        "whatever(stuff)",
        ":a",
        "abort,",
        "a,,b",
        "a..b",
        "a[b]",
        "(a.b).c",
        "(a)",
        "(a),(b)",
        "(a,b)",
        "a-b",
        ",a",
        "a[-1]",
        "a[]",
    ],
)
def test_texts_that_are_no_projection(expression: str) -> None:
    assert refusal(projection, expression).startswith("Syntax error; token: ")


@pytest.mark.parametrize(
    ("expression", "rule", "one", "two"),
    [
        ("b[1], b.a, #a.b, a", "overlap", "[a, b]", "[a]"),
        ("a, #a[1]", "overlap", "[a]", "[a, [1]]"),
        ("a, a", "overlap", "[a]", "[a]"),
        ("a.b.d.e, a.b", "overlap", "[a, b, d, e]", "[a, b]"),
        ("a.b, #a[1], #b", "conflict", "[a, b]", "[a, [1]]"),
        ("a.b[1], #a[1], #b", "conflict", "[a, b, [1]]", "[a, [1]]"),
        ("a[3].b, #a.#d.b", "conflict", "[a, [3], b]", "[a, [3], b]"),
    ],
)
def test_projections_with_conflicting_paths_are_refused(
    expression: str, rule: str, one: str, two: str
) -> None:
    assert refusal(projection, expression) == (
        f"Two document paths {rule} with each other; must remove or rewrite one of these paths; "
        f"path one: {one}, path two: {two}"
    )


# Attributes changed by an update (test_returnvalues.py test_update_item_returnvalues_nested)


@pytest.mark.parametrize(
    ("expression", "old", "new"),
    [
        ("SET a.c = :s", {"a": {"c": "x"}}, {"a": {"c": "x"}}),
        ("SET a.b[1] = :n, a.c = :s", {"a": {"b": [4], "c": "x"}}, {"a": {"b": [5], "c": "x"}}),
        ("REMOVE a.b[1], a.b[3]", {"a": {"b": [4]}}, {"a": {"b": [6]}}),
        ("SET a.n = :n", {}, {"a": {"n": 5}}),
        ("SET a.b[100] = :n", {}, {}),
        ("SET n = :n REMOVE a", {"a": plain(ITEM["a"])}, {"n": 5}),
        ("ADD a.b[0] :n", {"a": {"b": [2]}}, {"a": {"b": [7]}}),
    ],
)
def test_updated_parts_have_their_values_before_and_after_the_update(
    expression: str, old: Any, new: Any
) -> None:
    actions = update(expression)
    row = Row(Position(b"p", b""), Contents.of_values(ITEM), 1)
    after = edit(row, actions, EditContext({"p": ITEM["p"]}, 1, stamped=False)).latest
    assert {name: plain(value) for name, value in updated_parts(actions, ITEM).items()} == old
    assert {name: plain(value) for name, value in updated_parts(actions, after).items()} == new


# Hostile input

# fmt: off
TOKENS = [
    "(", ")", "a", "#a", ":s", ":n", ":l", "and", "or", "not", "between", "in", "=", "<", "<>", "size", "contains",
    ",", ".", "[", "0", "]", "set", "remove", "add", "delete", "+", "-", "if_not_exists", "list_append", "_", "ü",
    "\ud800",
]
# fmt: on
texts = st.lists(st.sampled_from(TOKENS), max_size=30).map(" ".join) | st.text(max_size=60)


@examples(300)
@given(texts)
def test_any_text_gives_a_tree_or_the_services_error(expression: str) -> None:
    row = Row(Position(b"p", b""), Contents.of_values(ITEM), 1)
    codes: set[str] = set()
    for parse in (condition, update, projection):
        try:
            tree = parse(expression)
        except ServiceError as error:
            codes.add(error.code)
        else:
            if parse is condition:
                matches(tree, row)
    assert codes <= {"ValidationException"}


@pytest.mark.parametrize(
    ("parse", "expression"),
    [
        (condition, "(" * 4096),
        (condition, "f(" * 1355 + "b" + ")" * 1355 + " < a"),
        (condition, "a < " + "size(" * 680 + "b" + ")" * 680),
        (condition, "not " * 1000 + "a<b"),
        (condition, "a<b " + "and (a<b " * 454 + ")" * 454),
        (condition, "a" + ".b" * 2047 + " = :s"),
        (update, "SET " + ",".join(f"a{n}=b" for n in range(500)) + ",a1=b"),
        (update, "SET a = " + "(" * 2000 + "b" + ")" * 2000),
        (projection, ",".join(["a"] * 2048)),
        (projection, "[" * 4096),
    ],
)
def test_hostile_texts_are_refused_quickly(parse: Callable[[str], Any], expression: str) -> None:
    condition("a = b")  # the parser is made with the first text
    started = time.process_time()  # the machine may be busy with other things
    refusal(parse, expression)
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("parse", "expression"),
    [
        (condition, "a<b " + "or not (a<b " * 99 + ")" * 99),
        (condition, "not " * 299 + "a<b"),
        (projection, ",".join(f"a{n}" for n in range(700))),
    ],
)
def test_deep_and_wide_texts_within_the_limits_are_taken(
    parse: Callable[[str], Any], expression: str
) -> None:
    tree = parse(expression)
    if parse is condition:
        assert matches(tree, Row(Position(b"p", b""), Contents.of_values(ITEM), 1)) in (True, False)


def test_a_long_chain_of_fallbacks_is_taken() -> None:
    depth = 235
    actions = update("SET a = " + "if_not_exists(z," * depth + ":n" + ")" * depth)
    row = Row(Position(b"p", b""), Contents.of_values(ITEM), 1)
    assert edit(row, actions, EditContext({"p": ITEM["p"]}, 1, stamped=False)).latest["a"] == decimal(5)
