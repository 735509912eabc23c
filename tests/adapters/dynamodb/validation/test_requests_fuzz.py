"""Any JSON body, for any operation, in both styles, gives a dict or a ServiceError: never another exception."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.features.partiql.statement_syntax import check_parameters
from tablegate.adapters.dynamodb.operation_table import OPERATIONS
from tablegate.adapters.dynamodb.validation import fast_validator, shapes
from tablegate.adapters.dynamodb.values.values import ParsedItem
from tablegate.adapters.dynamodb.wire.errors import ServiceError, render
from tests.support.examples import examples

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
NUMBERS = st.sampled_from(
    ["0", "-0", "1e3", "1E-130", "9e125", "1e126", ".5", "5.", "", " 1", "NaN", "1" * 39, "1e" + "9" * 30]
)
TAGGED = st.deferred(
    lambda: st.one_of(
        st.fixed_dictionaries({"S": st.text(max_size=4)}),
        st.fixed_dictionaries({"N": NUMBERS}),
        st.fixed_dictionaries(
            {"B": st.sampled_from(["", "YQ==", "YQ", "????", "YR==", "YWI=", "\ud800aaa"])}
        ),
        st.fixed_dictionaries({"SS": st.lists(st.text(max_size=2), max_size=3)}),
        st.fixed_dictionaries({"NS": st.lists(NUMBERS, max_size=3)}),
        st.fixed_dictionaries({"BS": st.lists(st.sampled_from(["YQ==", "YWI=", ""]), max_size=3)}),
        st.fixed_dictionaries({"L": st.lists(TAGGED, max_size=2)}),
        st.fixed_dictionaries({"M": st.dictionaries(st.text(max_size=2), TAGGED, max_size=2)}),
        st.dictionaries(st.sampled_from(["S", "N", "BOOL", "NULL", "L", "X"]), JSON, max_size=2),
        JSON,
    )
)


def likely(shape: shapes.Shape) -> st.SearchStrategy[Any]:
    """Data that is near enough to a shape to get past the first check."""
    match shape:
        case shapes.Text():
            good = (
                st.sampled_from(shape.enum)
                if shape.enum
                else st.sampled_from(["abc", "a-table", "", "x" * 300])
            )
            return good | JSON
        case shapes.Number():
            return st.integers(-1, 3) | JSON
        case shapes.Boolean():
            return st.booleans() | st.sampled_from(["true", "no", "what"]) | JSON
        case shapes.AttributeValue():
            return TAGGED
        case shapes.Sequence():
            return st.lists(likely(shape.of), max_size=2) | JSON
        case shapes.Mapping():
            keys = st.sampled_from(["abc", "def", "#a", ":b", ""]) | st.text(max_size=3)
            return st.dictionaries(keys, likely(shape.of), max_size=2) | JSON
        case shapes.Structure():
            optional = {name: likely(member) for name, member in shape.members.items()}
            return st.fixed_dictionaries({}, optional=optional) | JSON


BODIES = {name: likely(operation.request.shape) for name, operation in OPERATIONS.items()}


def checked(check: Callable[[Any], bool], operation: str, body: Any) -> tuple[str, Any, Any]:
    """Return the result of a request with this fast check.

    It is "cleaned" with the input and the contents of its items, or "refused" with the error and its body.
    """
    checker = OPERATIONS[operation].check
    try:
        found = replace(checker, fast_check=check)(copy.deepcopy(body))
    except ServiceError as error:
        return "refused", (error.code, error.message), json.loads(render(error))
    assert isinstance(found, dict)
    _convert_parameters(found)
    return "cleaned", found, [(item.contents.body, item.size_bytes) for item in _items(found)]


def _items(part: Any) -> list[ParsedItem]:
    """All parsed items in a request."""
    if isinstance(part, ParsedItem):
        return [part]
    members = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return [item for member in members for item in _items(member)]


def _convert_parameters(part: Any) -> None:
    """Convert the parameters of statements to canonical form, as their handlers do first."""
    if isinstance(part, dict):
        with suppress(ServiceError):
            check_parameters(part.get("Parameters", []))
    for member in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _convert_parameters(member)


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_any_body_is_cleaned_or_refused(operation: str) -> None:
    """Both validators make the same of it."""
    fast_check = fast_validator.fast_check(fast_validator.strict(OPERATIONS[operation].request))

    @examples(80)
    @given(BODIES[operation])
    def run(body: Any) -> None:
        general = checked(fast_validator.leave_to_full_validator, operation, body)
        assert checked(fast_check, operation, body) == general

    run()


def test_deep_nesting_is_refused_in_bounded_depth() -> None:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(5_000):
        value = {"L": [value]}
    with pytest.raises(ServiceError, match="Nesting Levels"):
        OPERATIONS["PutItem"].check({"TableName": "abc", "Item": {"a": value}})
