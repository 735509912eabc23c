"""The clauses of a request - conditions, filters, projections, updates - from either of their spellings.

A request spells them as expressions or in the legacy form, never both (rules.py sees to it). Both become the same trees
(gateway/model). What is wrong without a table is found when the clauses are made; what needs the key schema (key attributes
must not be updated, nor filtered on) when a handler asks for the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from adapters.dynamodb import expressions, key_conditions, legacy
from adapters.dynamodb.calls import Call
from adapters.dynamodb.placeholders import Placeholders
from adapters.dynamodb.projections import Projection, project
from adapters.dynamodb.values import render_row, render_values
from gateway.model.keys import KeySchema
from gateway.model.predicates import ALWAYS, Predicate, paths_of
from gateway.model.ranges import KeyRange
from gateway.model.rows import Row
from gateway.model.tables import Index, Table
from gateway.model.updates import Action

Input = Mapping[str, Any]


def _placeholders(call: Call, given: Input) -> Placeholders:
    names = given.get("ExpressionAttributeNames")
    values = given.get("ExpressionAttributeValues")
    return Placeholders(names, values, call.house.settings.message_style, call.operation)


class ReadClauses:
    """The projection, filter and key condition of a read; `given` is the request, or one member of a batch."""

    def __init__(self, call: Call, given: Input) -> None:
        self._given = given
        self._placeholders = placeholders = _placeholders(call, given)
        text = given.get("KeyConditionExpression")
        self._key_condition = None if text is None else key_conditions.parse(text, placeholders)
        text = given.get("FilterExpression")
        self._filter: Predicate = ALWAYS
        if text is not None:
            self._filter = expressions.parse_condition(text, placeholders, expressions.FILTER)
        self.projection = self._projected(given)
        placeholders.check_all_used()

    def _projected(self, given: Input) -> Projection | None:
        text = given.get("ProjectionExpression")
        if text is not None:
            return expressions.parse_projection(text, self._placeholders)
        names = given.get("AttributesToGet")
        return None if names is None else legacy.projection(names)
