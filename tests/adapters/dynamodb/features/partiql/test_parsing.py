"""Statements' texts: what is read, what is refused in which words, and that no text does anything else.

The words are those that nubo-db/dynamodb-conformance and floci captured from the service in September and October 2026
(eu-west-2), where they have the case.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.expressions.syntax import (
    AndNode,
    CompareNode,
    InNode,
    NotNode,
    PathNode,
    ValueNode,
)
from tablegate.adapters.dynamodb.features.partiql.parsing import parse
from tablegate.adapters.dynamodb.features.partiql.statement_syntax import (
    Delete,
    Exists,
    Insert,
    Select,
    Statement,
    Update,
)
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.adapters.dynamodb.wire.limits import STATEMENT_CHARACTERS
from tests.support.examples import examples
from tests.support.tables import each_row

BAD = "Statement wasn't well formed, can't be processed: "
LEFT_OVER = BAD + "Unexpected token after expression"
ALIAS = "Aliasing is not supported"
NO_TERM = BAD + "Unexpected term"


def read(text: str) -> Statement:
    return parse(text).statement


def refusal(text: str) -> str:
    with pytest.raises(ServiceError) as refused:
        parse(text)
    assert refused.value.code == "ValidationException"
    assert refused.value.message is not None
    return refused.value.message


def outcome(text: str) -> str:
    """The code of the error that a text ends in, if any."""
    try:
        parse(text)
    except ServiceError as error:
        return error.code
    return ""


def test_a_select_is_parsed_to_its_parts() -> None:
    statement = read("select a, b.c[1] From \"my-table\".\"by-x\" wHeRe x = 'it''s' order by x desc, y")
    assert statement == Select(
        ("my-table", "by-x"),
        (PathNode(("a",)), PathNode(("b", "c", 1))),
        CompareNode("=", PathNode(("x",)), ValueNode('{"S":"it\'s"}')),
        (("x", True), ("y", False)),
    )


def test_statements_other_than_select_are_parsed() -> None:
    assert isinstance(read("INSERT INTO t VALUE {'a': ?, 'b': <<1, 2>>}"), Insert)
    assert isinstance(
        read("UPDATE t SET a = 1 SET b = b - 1, c = list_append(c, [1]) REMOVE d WHERE e = 1"), Update
    )
    assert isinstance(read("DELETE FROM t WHERE a = 1 RETURNING ALL OLD *"), Delete)
    assert isinstance(read("EXISTS(SELECT * FROM t WHERE a = 1 AND b IS MISSING)"), Exists)
    assert read("FROM t WHERE a = 1 SET b = 2") == read("UPDATE t SET b = 2 WHERE a = 1")


def test_every_form_of_returning_is_parsed() -> None:
    for text, mode in [
        ("ALL OLD", "ALL_OLD"),
        ("all new", "ALL_NEW"),
        ("MODIFIED OLD", "UPDATED_OLD"),
        ("MODIFIED NEW", "UPDATED_NEW"),
    ]:
        statement = read(f"UPDATE t SET a = 1 WHERE k = 1 RETURNING {text} *")
        assert isinstance(statement, Update)
        assert statement.returning == mode


def test_connectives_bind_as_in_sql() -> None:
    statement = read("SELECT * FROM t WHERE NOT a = 1 AND b IN (1, 2) AND (c <> 3)")
    assert isinstance(statement, Select)
    a, b, c = (CompareNode("=", PathNode(("a",)), ValueNode('{"N":"1"}')), "b", "c")
    assert isinstance(statement.where, AndNode)
    first, second, third = statement.where.parts
    assert first == NotNode(a)
    assert second == InNode(PathNode((b,)), (ValueNode('{"N":"1"}'), ValueNode('{"N":"2"}')))
    assert third == CompareNode("<>", PathNode((c,)), ValueNode('{"N":"3"}'))
    assert read("SELECT * FROM t WHERE a != 1") == read("SELECT * FROM t WHERE a <> 1")


@pytest.mark.parametrize(
    ("literal", "wire"),
    [
        ("7.31e6", '{"N":"7310000"}'),
        ("73100000E-1", '{"N":"7310000"}'),
        (".73e1", '{"N":"7.3"}'),
        ("-.5", '{"N":"-0.5"}'),
        ("- -1", '{"N":"1"}'),
        ("-/* c */1", '{"N":"-1"}'),
        ("+5", '{"N":"5"}'),
        ("True", '{"BOOL":true}'),
        ("null", '{"NULL":true}'),
        ("[1, 'a']", '{"L":[{"N":"1"},{"S":"a"}]}'),
        ("{'a': {'b': []}}", '{"M":{"a":{"M":{"b":{"L":[]}}}}}'),
        ("<<'a', 'b'>>", '{"SS":["a","b"]}'),
        ("<<1, 2.50>>", '{"NS":["1","2.5"]}'),
    ],
)
def test_literals(literal: str, wire: str) -> None:
    statement = read(f"SELECT * FROM t WHERE a = {literal}")
    assert isinstance(statement, Select)
    assert statement.where == CompareNode("=", PathNode(("a",)), ValueNode(wire))


def test_comments_are_space() -> None:
    plain = read("SELECT * FROM t WHERE a = '--/**/'")
    assert read("-- first\nSELECT/**/* FROM t -- the table\nWHERE a /* key */= '--/**/' ; --") == plain


def test_parameters_are_distinguished_by_position() -> None:
    parsed = parse("SELECT * FROM t WHERE a = ? AND b = '?' AND c IN [?, ?]")
    assert len(set(parsed.parameters)) == 3


@each_row(
    "text, message",
    [
        ("SELECT * FROM t WHERE k = 1 foo", LEFT_OVER),
        ("SELECT * FROM t WHERE k = 1 e5", LEFT_OVER),
        ("SELECT * FROM t WHERE k = 1)", LEFT_OVER),
        ("SELECT * FROM t ORDER BY k WHERE k = 1", LEFT_OVER),
        ("INSERT INTO t VALUE {'k': 1} foo", LEFT_OVER),
        ("INSERT INTO t u VALUE {'k': 1}", LEFT_OVER),
        ("UPDATE t SET a = 9 WHERE k = 2 foo", LEFT_OVER),
        ("DELETE FROM t WHERE k = 4 ORDER BY k", LEFT_OVER),
        ("FROM t SET a = 1 WHERE k = 1", LEFT_OVER),
        ("SELECT * FROM t u WHERE k = 1", ALIAS),
        ("SELECT * FROM t AS u", ALIAS),
        ("UPDATE t u SET a = 3 WHERE k = 1", ALIAS),
        ("DELETE FROM t u WHERE k = 1", ALIAS),
        ("SELECT * FROM t WHERE", NO_TERM),
        ("SELECT * FROM t WHERE;", NO_TERM),
        ("UPDATE t SET a = 1 WHERE", NO_TERM),
        ("SELECT * FROM t WHERE NOT", NO_TERM),
        ("SELECT * FROM t WHERE (", NO_TERM),
        ("SELECT * FROM", NO_TERM),
        ("DELETE FROM", BAD + "Expected identifier for simple path"),
        ("DELETE FROM WHERE k = 1", BAD + "Expected identifier for simple path"),
        ("SELECT * FROM t WHERE k = 1 AND", BAD + "Missing right-hand side expression of infix operator"),
        ("SELECT * FROM t WHERE ORDER BY k", BAD + "Unexpected keyword"),
        ("SELECT * FROM t WHERE IS NULL", BAD + "Unexpected operator"),
        ("SELECT * FROM t WHERE k = LIKE", BAD + "Unexpected operator"),
        ("SELECT * FROM t WHERE k IS FOO", BAD + "Expected type name"),
        ("SELECTT * FROMM t", BAD + "Expected data manipulation"),
        ("UPDATE a-b SET a = 1 WHERE k = 1", BAD + "Expected data manipulation"),
        ("", BAD + "Expected data manipulation"),
        ("SELECT * FROM t WHERE k = 1e2147483648", BAD),
        ("SELECT * FROM t WHERE k = 1e99999999999", BAD),
        ("SELECT * FROM t WHERE k = 1.5e-2147483647", BAD),
        ("SELECT * FROM t WHERE k = 1 # note", BAD),
        ("SELECT * FROM t WHERE k = 1 /* note", BAD),
        ('SELECT * FROM "t', BAD),
        ("SELECT * FROM t WHERE k = 'a", BAD),
    ],
)
def test_unreadable_statements_get_the_texts_of_the_service(text: str, message: str) -> None:
    assert refusal(text) == message


@each_row(
    "text, message",
    [
        ('SELECT * FROM ""', "Path component cannot be an empty string"),
        ('SELECT * FROM t.""', "Path component cannot be an empty string"),
        ("SELECT * FROM a.b.c", "A path may contain at most 2 components in the FROM clause"),
        ("UPDATE t.i SET a = 1 WHERE k = 1", "This operation is not supported on an index"),
        ("DELETE FROM t.i WHERE k = 1", "This operation is not supported on an index"),
        (
            "INSERT INTO t.i VALUE {'k': 1}",
            "FROM clause may only contain a single table name in data manipulation statements",
        ),
        ("INSERT INTO t VALUE {'k': 1} RETURNING ALL OLD *", "RETURNING is not supported in INSERT"),
        (
            "DELETE FROM t WHERE k = 1 RETURNING MODIFIED NEW *",
            "Invalid returning clause: RETURNING MODIFIED NEW *. Only RETURNING ALL OLD * is allowed in DELETE statements.",
        ),
        ("SELECT a[-1] FROM t", "List index is not within the allowable range; index: [-1] at 1:11:1"),
        (
            "SELECT l[2147483648] FROM t",
            "List index is not within the allowable range; index: [2147483648] at 1:10:10",
        ),
        (
            "UPDATE t\nSET BandMembers = set_add(BandMembers, 'x') WHERE k = 1",
            "The second argument to SET_ADD must be a value with type SET at 2:27:11",
        ),
        (
            "UPDATE t SET a = set_delete(b, <<1>>) WHERE k = 1",
            "The first argument to SET_DELETE must equal the assignment value at 1:18:10",
        ),
        (
            "UPDATE t SET a = set_add(<<1>>, <<1>>) WHERE k = 1",
            "The first argument to SET_ADD must equal the assignment value at 1:18:7",
        ),
        (
            "UPDATE t SET a = set_add(a, ['x']) WHERE k = 1",
            "The second argument to SET_ADD must be a value with type SET at 1:26:1",
        ),
        (
            "UPDATE t SET a = set_add(a) WHERE k = 1",
            "SET_ADD must have exactly two arguments at 1:18:7",
        ),
        (
            "UPDATE t SET a = SET_DELETE(a, <<1>>, <<2>>) WHERE k = 1",
            "SET_DELETE must have exactly two arguments at 1:18:10",
        ),
        (
            "SELECT * FROM t WHERE k = 1 AND set_add(a, <<'x'>>) = a",
            "Unrecognized function: set_add at 1:33:7",
        ),
        ("SELECT * FROM t WHERE k = 1 AND EXISTS(ss)", "Unrecognized function: exists at 1:33:6"),
        (
            "INSERT INTO t VALUE {'k': 1, 'a': set_add(<<'a'>>, <<'b'>>)}",
            "Unsupported data type: set_add under key root at 1:35:7",
        ),
        (
            "INSERT INTO t VALUE {'k': 1, 'a': {'b': [1, LIST_APPEND(a, [1])]}}",
            "Unsupported data type: list_append under key root.b[1] at 1:45:11",
        ),
        ("SELECT attribute_exists(ss) FROM t WHERE k = 1", "Unexpected path component at 1:8:16"),
        ("SELECT k, count(*) FROM t", "Unexpected path component at 1:11:5"),
        ("SELECT * FROM t WHERE attribute_exists(m.inner)", BAD + "Invalid path dot component"),
        ("UPDATE t SET m.Inner = set_add(m.Inner, <<'y'>>) WHERE k = 1", BAD + "Invalid path dot component"),
        ("SELECT m.value FROM t", BAD + "Invalid path dot component"),
        ("SELECT m. FROM t", BAD + "Invalid path dot component"),
        (
            "SELECT * FROM t WHERE k = 1e126",
            "Number overflow. Attempting to store a number with magnitude larger than supported range under root",
        ),
        (
            "INSERT INTO t VALUE {'k': 1, 'm': {'x': 1e-131}}",
            "Number underflow. Attempting to store a number with magnitude smaller than supported range under root.x",
        ),
        (
            "INSERT INTO t VALUE {'k': 1, 'l': [1, 123456789012345678901234567890123456789]}",
            "Attempting to store more than 38 significant digits in a Number under root[1]",
        ),
        (
            "SELECT * FROM t WHERE k = <<'b','b'>>",
            "One or more parameter values were invalid: Input collection [b, b] contains duplicates.",
        ),
        (
            "SELECT * FROM t WHERE k = <<2, 2.0>>",
            "One or more parameter values were invalid: Input collection [2, 2.0] contains duplicates! under root",
        ),
        ("SELECT * FROM t WHERE k = <<>>", "Empty bags are not supported"),
        ("UPDATE t SET x = [?] WHERE k = 1", "Unsupported data type: Parameter under key root[0] at 1:19:1"),
        (
            "UPDATE t SET x = " + "{'a':" * 32 + "1" + "}" * 32,
            "Nesting Levels have exceeded supported limits under root" + ".a" * 32,
        ),
        ("SELECT * FROM t WHERE k = MISSING", "MISSING must be compared using IS operator"),
        ("SELECT * FROM t WHERE nonsense(k)", "Unrecognized function: nonsense at 1:23:8"),
        ("SELECT * FROM t WHERE Nonsense(k) = 1", "Unrecognized function: nonsense at 1:23:8"),
        ("UPDATE t SET a = nonsense(b) WHERE k = 1", "Unrecognized function: nonsense at 1:18:8"),
        ("SELECT * FROM t WHERE k", "WHERE clause must contain an expression that resolves to a boolean"),
    ],
)
def test_readable_statements_with_errors_get_the_texts_of_the_service(text: str, message: str) -> None:
    assert refusal(text) == message


def test_quoted_words_are_names() -> None:
    statement = read('SELECT m."inner", "value"."key" FROM t')
    assert isinstance(statement, Select)
    assert statement.paths == (PathNode(("m", "inner")), PathNode(("value", "key")))


def test_thirty_one_levels_are_not_too_many() -> None:
    read("INSERT INTO t VALUE {'k': 1, 'd': " + "{'a':" * 31 + "1" + "}" * 31 + "}")


WORDS = """SELECT * FROM t "t" WHERE a = 1 'x' ? AND OR NOT ( ) [ ] { } << >> , . : IN BETWEEN IS MISSING NULL UPDATE SET
    REMOVE - INSERT INTO VALUE DELETE ORDER BY RETURNING ALL OLD EXISTS size contains set_add list_append 1e400 '' ""
    ; -- /* */ # < >= <> \x00 \ud7ff"""
PIECES = st.sampled_from(WORDS.split())


@examples(400)
@given(
    st.one_of(
        st.text(max_size=40), st.lists(PIECES, max_size=25).map(" ".join), st.lists(PIECES).map("".join)
    )
)
def test_any_text_is_a_statement_or_a_validation_error(text: str) -> None:
    assert outcome(text) in ("", "ValidationException")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t WHERE " + "(" * 4000 + "a = 1" + ")" * 4000,
        "SELECT * FROM t WHERE " + "NOT " * 2000 + "a = 1",
        "SELECT * FROM t WHERE a = " + "[" * 4000,
        "SELECT * FROM t WHERE a = " + "[" * 4000 + "]" * 4000,
        "SELECT * FROM t WHERE a = " + " -" * 4000 + "1",
        "SELECT * FROM t WHERE " + "(a=1 AND (a=1 OR " * 480,
        "SELECT * FROM t WHERE " + "(a=1 AND (a=1 OR " * 400 + "a=1" + "))" * 400,
        "UPDATE t SET a = " + "a+" * 4000 + "a",
        "UPDATE t SET a = " + "list_append(" * 500 + "a" + ",a)" * 500,
        "SELECT * FROM t WHERE a = '" + "''" * 4000,
        "/*" * 4000,
        "SELECT * FROM t WHERE " + "(" * 1000 + "a = 1" + ") = 1" * 1000,
        "SELECT * FROM t WHERE " + "(" * 850 + "a = 1" + ") = true" * 850,
        "INSERT INTO t VALUE {" + ",".join(f"'{number}':1" for number in range(900)) + "}",
        "SELECT " + ",".join(f"a{number}" for number in range(1200)) + " FROM t",
    ],
)
def test_no_text_takes_long(text: str) -> None:
    assert len(text) <= STATEMENT_CHARACTERS + 200
    began = time.process_time()
    assert outcome(text) in ("", "ValidationException")
    assert time.process_time() - began < 2
