"""Any JSON body, for any operation, in both styles, gives a dict or a ServiceError: never another exception."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablegate.adapters.dynamodb.validation import fast_validator, full_validator, operation_schemas
from tablegate.adapters.dynamodb.validation.rules.rule_context import RuleContext
from tablegate.adapters.dynamodb.validation.schemas import schema_types
from tablegate.adapters.dynamodb.wire.errors import ServiceError, render
from tablegate.adapters.dynamodb.wire.styles import CLASSIC, LATEST

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


def likely(shape: schema_types.Shape) -> st.SearchStrategy[Any]:
    """Data that is near enough to a shape to get past the first check."""
    match shape:
        case schema_types.Text():
            good = (
                st.sampled_from(shape.enum)
                if shape.enum
                else st.sampled_from(["abc", "a-table", "", "x" * 300])
            )
            return good | JSON
        case schema_types.Number():
            return st.integers(-1, 3) | JSON
        case schema_types.Boolean():
            return st.booleans() | st.sampled_from(["true", "no", "what"]) | JSON
        case schema_types.AttributeValue():
            return TAGGED
        case schema_types.Sequence():
            return st.lists(likely(shape.of), max_size=2) | JSON
        case schema_types.Mapping():
            keys = st.sampled_from(["abc", "def", "#a", ":b", ""]) | st.text(max_size=3)
            return st.dictionaries(keys, likely(shape.of), max_size=2) | JSON
        case schema_types.Structure():
            optional = {name: likely(member) for name, member in shape.members.items()}
            return st.fixed_dictionaries({}, optional=optional) | JSON


BODIES = {
    operation: likely(operation_schemas.of(LATEST).requests[operation].shape)
    for operation in operation_schemas.OPERATIONS
}


@pytest.mark.parametrize("operation", sorted(operation_schemas.OPERATIONS))
@pytest.mark.parametrize("style", [LATEST, CLASSIC])
def test_any_body_is_cleaned_or_refused(operation: str, style: str) -> None:
    @settings(max_examples=20, deadline=None)
    @given(BODIES[operation])
    def run(body: Any) -> None:
        try:
            got = operation_schemas.of(style).check(operation, copy.deepcopy(body))
        except ServiceError as error:
            json.loads(render(error))
        else:
            assert isinstance(got, dict)

    run()


@pytest.mark.parametrize("operation", sorted(operation_schemas.OPERATIONS))
def test_a_style_is_one_of_texts(operation: str) -> None:
    """A request that one style accepts, the other accepts unchanged."""

    def passed(body: Any, style: str) -> Any:
        try:
            return operation_schemas.of(style).check(operation, copy.deepcopy(body))
        except ServiceError:
            return None

    @settings(max_examples=40, deadline=None)
    @given(BODIES[operation])
    def run(body: Any) -> None:
        assert passed(body, LATEST) == passed(body, CLASSIC)

    run()


@pytest.mark.parametrize("operation", sorted(operation_schemas.OPERATIONS))
def test_what_the_fast_validator_lets_through_the_full_one_does(operation: str) -> None:
    """The members are equal. test_fast_paths.py compares their contents."""
    request = operation_schemas.of(LATEST).requests[operation]
    fast_check = fast_validator.fast_check(fast_validator.strict(request))

    @settings(max_examples=20, deadline=None)
    @given(BODIES[operation])
    def run(body: Any) -> None:
        changed = copy.deepcopy(body)
        try:
            good = fast_check(changed)
        except (ServiceError, TypeError, AttributeError, ValueError):
            good = False
        if good:
            assert full_validator.clean(RuleContext(operation), request, body).keys() == changed.keys()

    run()


def test_deep_nesting_is_refused_in_bounded_depth() -> None:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(5_000):
        value = {"L": [value]}
    with pytest.raises(ServiceError, match="Nesting Levels"):
        operation_schemas.of(LATEST).check("PutItem", {"TableName": "abc", "Item": {"a": value}})
