"""Rows as JSON in the console: a number keeps its digits or is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tablegate.adapters.tablestore.display import TYPE_NAMES, values_of
from tablegate.gateway.model.values.values import Kind, Value


def _document(kind: Kind, data: Any) -> dict[str, Any]:
    return {"attribute_columns": [{"name": "n", "type": TYPE_NAMES[kind], "value": data}]}


def test_a_whole_number_is_a_double_only_if_a_double_has_its_digits() -> None:
    table: Any = None  # the form does not depend on it
    for data in (5, 2**53, 1234567890123456768, -(2**63)):
        assert values_of(table, _document(Kind.DOUBLE, data)) == {"n": Value(Kind.DOUBLE, float(data))}
    for kind, data, words in (
        (Kind.DOUBLE, 2**53 + 1, "n has more digits than a DOUBLE: 9007199254740993"),
        (Kind.INT64, 5.0, "n is not of the type INTEGER"),
    ):
        with pytest.raises(ValueError, match=words):
            values_of(table, _document(kind, data))
