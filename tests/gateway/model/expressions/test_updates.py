"""Edits of rows: operands read the old row, documents change along paths, kinds and stamps are kept."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from tablegate.gateway.model.errors import BadOperand, BadPath, NumberOutOfRange
from tablegate.gateway.model.expressions.updates import (
    Action,
    Add,
    Concatenate,
    Current,
    CurrentOrDefault,
    DeleteCell,
    DeleteCells,
    EditContext,
    Increment,
    Literal,
    Minus,
    Plus,
    PutCell,
    Remove,
    SetTo,
    Subtract,
    edit,
    names_of,
)
from tablegate.gateway.model.values.keys import Position
from tablegate.gateway.model.values.rows import Cell, Contents, Row
from tablegate.gateway.model.values.values import NULL, Kind, Value, decimal, number_set, text
from tests.support.tables import each_row

KEY = {"k": text("key")}


def numbers(*members: int) -> Value:
    return Value(Kind.LIST, tuple(decimal(member) for member in members))


def fields(**members: Value) -> Value:
    return Value(Kind.MAP, members)


def letters(members: str) -> Value:
    return Value(Kind.TEXT_SET, frozenset(members))


def row_of(**attributes: Value) -> Row:
    return Row(Position(b"p", b""), Contents.of_values({**KEY, **attributes}), modified_at=50_000)


def edited(old: Row | None, *actions: Action) -> dict[str, Value]:
    latest = edit(old, actions, EditContext(KEY, now_ms=9, stamped=False)).latest
    assert latest.pop("k") == KEY["k"]
    return latest


def set_to(path: str, value: Value) -> SetTo:
    return SetTo((path,), Literal(value))


ONE = Literal(decimal(1))


def test_an_edit_merges_into_existing_attributes() -> None:
    assert edited(row_of(a=NULL, b=NULL), set_to("b", decimal(1)), set_to("c", decimal(2))) == {
        "a": NULL,
        "b": decimal(1),
        "c": decimal(2),
    }


def test_an_edit_of_an_absent_row_has_its_key() -> None:
    assert edited(None) == {}
    assert edited(None, set_to("a", NULL)) == {"a": NULL}


def test_no_action_changes_the_key() -> None:
    assert edit(row_of(), (Remove(("k",)),), EditContext(KEY, 9, False)).latest == KEY


def test_operands_read_the_row_as_it_was() -> None:
    # test_update_expression.py: test_update_expression_multi_with_copy, test_update_expression_set_copy
    assert edited(row_of(a=text("x")), Remove(("a",)), SetTo(("b",), Current(("a",)))) == {"b": text("x")}
    with pytest.raises(BadPath) as raised:
        edited(row_of(), set_to("x", NULL), SetTo(("y",), Current(("x",))))
    assert raised.value.rule == "operand-missing"


def test_the_key_can_be_read() -> None:
    assert edited(None, SetTo(("a",), Current(("k",)))) == {"a": text("key")}


def test_the_fallback_replaces_an_absent_value() -> None:
    fallback = CurrentOrDefault(("a",), CurrentOrDefault(("b",), Literal(decimal(0))))
    assert edited(row_of(), SetTo(("n",), fallback))["n"] == decimal(0)
    assert edited(row_of(b=decimal(2)), SetTo(("n",), fallback))["n"] == decimal(2)
    assert edited(row_of(a=decimal(1), b=decimal(2)), SetTo(("n",), fallback))["n"] == decimal(1)


def test_arithmetic_is_exact() -> None:
    row = row_of(n=decimal("0.1"))
    assert edited(row, SetTo(("n",), Plus(Current(("n",)), Literal(decimal("0.2")))))["n"] == decimal("0.3")
    assert edited(row, SetTo(("n",), Minus(ONE, Current(("n",)))))["n"] == decimal("0.9")


@pytest.mark.parametrize(
    ("left", "right", "rule"),
    [("1e50", "1", "precision"), ("9e125", "9e125", "overflow"), ("1.1e-130", "-1e-130", "underflow")],
)
def test_numbers_out_of_range_are_refused_and_not_rounded(left: str, right: str, rule: str) -> None:
    with pytest.raises(NumberOutOfRange) as raised:
        edited(row_of(n=decimal(left)), Add(("n",), decimal(right)))
    assert raised.value.rule == rule


def test_arithmetic_requires_numbers() -> None:
    for operand in (Plus(Current(("s",)), ONE), Minus(ONE, Current(("s",)))):
        with pytest.raises(BadOperand):
            edited(row_of(s=text("1")), SetTo(("n",), operand))


def test_lists_are_concatenated() -> None:
    row = row_of(a=numbers(1))
    assert edited(row, SetTo(("a",), Concatenate(Current(("a",)), Literal(numbers(2)))))["a"] == numbers(1, 2)
    assert edited(row, SetTo(("a",), Concatenate(Literal(numbers(2)), Current(("a",)))))["a"] == numbers(2, 1)
    with pytest.raises(BadOperand):
        edited(row_of(a=text("x")), SetTo(("a",), Concatenate(Literal(numbers(1)), Current(("a",)))))


def test_nested_paths_change_only_their_targets() -> None:
    old = row_of(
        a=fields(x=decimal(3), y=decimal(4), c=fields(y=decimal(3))), b=fields(x=decimal(1), y=decimal(2))
    )
    assert edited(
        old,
        SetTo(("a", "b"), Literal(decimal(10))),
        SetTo(("a", "c", "d"), Literal(text("dog"))),
        SetTo(("b", "x"), Literal(decimal(17))),
        Remove(("a", "x")),
        Remove(("b", "y")),
    ) == {
        "a": fields(y=decimal(4), c=fields(y=decimal(3), d=text("dog")), b=decimal(10)),
        "b": fields(x=decimal(17)),
    }
    assert old.latest["b"] == fields(x=decimal(1), y=decimal(2))


def test_list_indexes_are_those_from_before_the_edit() -> None:
    # test_update_expression_nested_remove_list_item_original_number
    row = row_of(a=numbers(2, 3, 4, 5, 6, 7))
    put, drop = SetTo(("a", 3), Literal(decimal(17))), Remove(("a", 1))
    assert edited(row, drop, put)["a"] == edited(row, put, drop)["a"] == numbers(2, 4, 17, 6, 7)
    assert edited(row, Remove(("a", 0)), Remove(("a", 2)), Remove(("a", 5)))["a"] == numbers(3, 5, 6)


def test_indexes_past_the_end_append_in_the_order_of_the_indexes() -> None:
    # test_nested_attribute_update_array_out_of_bounds
    actions = [SetTo(("a", index), Literal(decimal(index))) for index in (84, 37, 17, 50)]
    assert edited(row_of(a=numbers(0)), *actions)["a"] == numbers(0, 17, 37, 50, 84)
    assert edited(row_of(a=numbers(0)), Remove(("a", 0)), SetTo(("a", 9), ONE))["a"] == numbers(1)


def test_removing_an_absent_attribute_changes_nothing() -> None:
    row = row_of(a=fields(x=NULL), b=numbers(1))
    actions = (Remove(("a", "y")), Remove(("b", 7)), Remove(("c",)), Subtract(("d",), letters("a")))
    assert edited(row, *actions) == {"a": fields(x=NULL), "b": numbers(1)}


def test_emptied_documents_stay() -> None:
    assert edited(row_of(a=fields(b=NULL)), Remove(("a", "b"))) == {"a": fields()}
    assert edited(row_of(a=numbers(1)), Remove(("a", 0))) == {"a": numbers()}


@each_row("path", [("s", "c"), ("l", "c"), ("z", "c"), ("s", 0), ("m", 0), ("z", 0), ("m", "x", "y")])
@each_row(
    "action",
    [
        lambda path: SetTo(path, ONE),
        Remove,
        lambda path: Add(path, decimal(1)),
        lambda path: Subtract(path, letters("a")),
    ],
)
def test_a_path_through_a_scalar_is_refused(
    path: tuple[str | int, ...], action: Callable[..., Action]
) -> None:
    # test_nested_attribute_update_bad_path_dot, test_nested_attribute_update_bad_path_array
    with pytest.raises(BadPath) as raised:
        edited(row_of(s=text("hello"), l=numbers(1), m=fields()), action(path))
    assert raised.value.rule == "path"


def test_add_creates_adds_unites_and_appends() -> None:
    row = row_of(n=decimal(3), s=letters("ab"), l=numbers(1))
    assert edited(row, Add(("n",), decimal(4)))["n"] == decimal(7)
    assert edited(row, Add(("s",), letters("bc")))["s"] == letters("abc")
    assert edited(row, Add(("l",), numbers(1, 2)))["l"] == numbers(1, 1, 2)
    assert edited(None, Add(("n",), decimal(8))) == {"n": decimal(8)}
    assert edited(row_of(m=fields()), Add(("m", "n"), decimal(8)))["m"] == fields(n=decimal(8))


@pytest.mark.parametrize("value", [decimal(1), letters("a"), number_set({Decimal(1)})])
def test_add_requires_the_same_kind(value: Value) -> None:
    for other in (text("x"), numbers(1), Value(Kind.BYTES_SET, frozenset({b"x"}))):
        with pytest.raises(BadOperand):
            edited(row_of(a=other), Add(("a",), value))


def test_subtract_takes_members_out_and_the_emptied_set_away() -> None:
    row = row_of(s=letters("abc"), m=fields(s=letters("a"), x=NULL))
    assert edited(row, Subtract(("s",), letters("bcz")))["s"] == letters("a")
    assert "s" not in edited(row, Subtract(("s",), letters("abc")))
    assert edited(row, Subtract(("m", "s"), letters("a")))["m"] == fields(x=NULL)
    with pytest.raises(BadOperand):
        edited(row, Subtract(("s",), number_set({Decimal(1)})))


# Kinds


def as_dynamodb(value: Value) -> Value:
    match value.kind:
        case Kind.INT32 | Kind.INT64:
            return Value(Kind.DECIMAL, Decimal(value.data))
        case Kind.DOUBLE if value.data == value.data:
            return Value(Kind.DECIMAL, Decimal(repr(value.data)))
        case Kind.DOUBLE:
            return text("NaN")
        case Kind.GUID:
            return text(str(value.data))
    return value


def edited_by_dynamodb(old: Row, *actions: Action) -> dict[str, Value]:
    return edit(old, actions, EditContext(KEY, 9, stamped=False, view=as_dynamodb)).latest


def test_attributes_not_named_keep_their_kind() -> None:
    row = row_of(i=Value(Kind.INT32, 5), d=Value(Kind.DOUBLE, 0.5))
    assert edited_by_dynamodb(row, set_to("x", NULL))["i"] == Value(Kind.INT32, 5)


@pytest.mark.parametrize(
    ("stored", "delta", "result"),
    [
        (Value(Kind.INT32, 5), "1", Value(Kind.INT32, 6)),
        (Value(Kind.INT32, 2**31 - 1), "1", decimal(2**31)),
        (Value(Kind.INT64, -(2**63)), "-1", decimal(-(2**63) - 1)),
        (Value(Kind.INT64, 1), "0.5", decimal("1.5")),
        (Value(Kind.DOUBLE, 0.5), "1", Value(Kind.DOUBLE, 1.5)),
        (Value(Kind.DOUBLE, 0.1), "0.2", Value(Kind.DOUBLE, 0.3)),
        (Value(Kind.DOUBLE, 0.1), "1e20", decimal("100000000000000000000.1")),
        (decimal("0.1"), "1", decimal("1.1")),
    ],
)
def test_arithmetic_keeps_the_stored_kind_where_the_result_fits(
    stored: Value, delta: str, result: Value
) -> None:
    assert edited_by_dynamodb(row_of(n=stored), Add(("n",), decimal(delta)))["n"] == result
    plus = SetTo(("n",), Plus(Literal(decimal(delta)), Current(("n",))))
    assert edited_by_dynamodb(row_of(n=stored), plus)["n"] == result


def test_writing_back_what_was_read_leaves_the_stored_kind() -> None:
    row = row_of(i=Value(Kind.INT32, 5))
    assert edited_by_dynamodb(row, set_to("i", decimal("5.0")))["i"] == Value(Kind.INT32, 5)
    assert edited_by_dynamodb(row, set_to("i", decimal(6)))["i"] == decimal(6)
    assert edited_by_dynamodb(row, set_to("i", text("5")))["i"] == text("5")


def test_a_value_that_the_dialect_shows_as_text_is_no_number() -> None:
    with pytest.raises(BadOperand):
        edited_by_dynamodb(row_of(d=Value(Kind.DOUBLE, float("nan"))), Add(("d",), decimal(1)))


def test_a_copied_attribute_keeps_its_kind() -> None:
    assert (
        edited_by_dynamodb(row_of(i=Value(Kind.INT32, 5)), SetTo(("j",), Current(("i",))))["j"].kind
        is Kind.INT32
    )


# Cells


def stamped(max_versions: int = 2) -> EditContext:
    return EditContext(KEY, now_ms=900, stamped=True, max_versions=max_versions)


def versions(contents: Contents) -> dict[str, list[tuple[object, int]]]:
    return {
        name: [(cell.value.data, cell.stamp_ms) for cell in cells]
        for name, cells in contents.cells(0).items()
    }


def integer(number: int) -> Value:
    return Value(Kind.INT64, number)


OLD = Row(
    Position(b"p", b""),
    Contents.of_cells(
        KEY, {"a": (Cell(integer(3), 300), Cell(integer(1), 100)), "b": (Cell(integer(7), 700),)}
    ),
    modified_at=8_000_000,
)


def test_versions_are_kept_newest_first_up_to_the_maximum() -> None:
    made = edit(OLD, (PutCell("a", integer(2), 200), PutCell("c", integer(9))), stamped())
    assert versions(made) == {"a": [(3, 300), (2, 200)], "b": [(7, 700)], "c": [(9, 900)]}
    assert made.latest == {**KEY, "a": integer(3), "b": integer(7), "c": integer(9)}


def test_a_version_with_an_existing_stamp_replaces_it() -> None:
    made = edit(OLD, (PutCell("a", integer(4), 300), PutCell("a", integer(5), 300)), stamped())
    assert versions(made)["a"] == [(5, 300), (1, 100)]


def test_versions_and_attributes_go_away() -> None:
    assert versions(edit(OLD, (DeleteCell("a", 300),), stamped()))["a"] == [(1, 100)]
    gone = edit(OLD, (DeleteCell("b", 700), DeleteCells("a"), DeleteCell("z", 1)), stamped())
    assert versions(gone) == {}
    assert gone.latest == KEY


def test_increments_add_to_the_newest_version() -> None:
    made = edit(OLD, (Increment("a", integer(10)), Increment("n", integer(-1), 5)), stamped())
    assert versions(made) == {"a": [(13, 900), (3, 300)], "b": [(7, 700)], "n": [(-1, 5)]}
    assert made.latest["n"] == integer(-1)


def test_increments_stay_within_their_kind() -> None:
    with pytest.raises(NumberOutOfRange):
        edit(row_of(n=integer(2**63 - 1)), (Increment("n", integer(1)),), stamped())
    with pytest.raises(BadOperand):
        edit(row_of(n=text("1")), (Increment("n", integer(1)),), stamped())


def test_document_actions_on_a_row_with_stamps_make_versions_of_now() -> None:
    made = edit(
        OLD, (SetTo(("a",), Literal(integer(9))), Remove(("b",))), EditContext(KEY, 900, stamped=False)
    )
    assert versions(made) == {"a": [(9, 900)]}


def test_cells_without_a_stamp_have_the_time_of_their_rows_write() -> None:
    made = edit(row_of(a=integer(1)), (PutCell("a", integer(2)),), stamped())
    assert versions(made)["a"] == [(2, 900), (1, 5)]


def test_a_row_without_stamps_keeps_one_version() -> None:
    made = edit(row_of(a=integer(1)), (PutCell("a", integer(2), 77),), EditContext(KEY, 9, stamped=False))
    assert made.kinds == b"{}"
    assert made.latest["a"] == integer(2)
    assert "a" not in edit(row_of(a=integer(1)), (DeleteCell("a", 5),), EditContext(KEY, 9, False)).latest
    assert "a" in edit(row_of(a=integer(1)), (DeleteCell("a", 6),), EditContext(KEY, 9, False)).latest


def test_names_of_actions() -> None:
    assert names_of((set_to("a", NULL), Remove(("b", 0)), DeleteCells("c"), Increment("d", integer(1)))) == (
        "a",
        "b",
        "c",
        "d",
    )
