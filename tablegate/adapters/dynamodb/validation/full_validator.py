"""The general validator: the service's error for a request, or the request without nulls and unknown members.

fast_validator.py is its fast path. Errors are found in this order: JSON types, the member that is reported alone,
constraints in the order of the shape.
"""

from __future__ import annotations

import re
from typing import Any

from tablegate.adapters.dynamodb.validation.constraints import violations
from tablegate.adapters.dynamodb.validation.json_types import ValueBudget, typed_members
from tablegate.adapters.dynamodb.validation.rules.rule_context import RuleContext
from tablegate.adapters.dynamodb.validation.schemas.schema_types import Request, Text
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.constraint_messages import constraint_error, lacks_required_member
from tablegate.adapters.dynamodb.wire.errors import serialization
from tablegate.adapters.dynamodb.wire.type_messages import json_type


def clean(context: RuleContext, request: Request, body: Any) -> dict[str, Any]:
    """Return the input without nulls and unknown members.

    Raises ServiceError: the first error in the service's order.
    """
    if not isinstance(body, dict):
        raise serialization(json_type("structure", body, context.operation + "Input"))
    data: dict[str, Any] = typed_members(request.shape, body, ValueBudget())
    violated = violations(context, request.shape, data)
    is_old = context.is_classic and lacks_required_member(violated)
    if request.named:
        _check_named(context, request, data, is_old)
    if violated:
        first = [violation for violation in violated if violation.path == request.alone and not is_old]
        raise constraint_error(context, first or violated)
    return data


def _check_named(context: RuleContext, request: Request, data: dict[str, Any], is_old: bool) -> None:
    name = data.get(request.named)
    if name is None:
        raise context.refused("required", name=request.named)
    member = request.shape.members[request.named]
    if isinstance(member, Text) and member.instead and re.fullmatch(member.instead, name):
        return
    if (
        request.reports_length
        and (is_old or not request.alone)
        and not (limits.TABLE_NAME_MIN_CHARACTERS <= len(name) <= limits.TABLE_NAME_CHARACTERS)
    ):
        raise context.refused("table-name-length", name=request.named)
