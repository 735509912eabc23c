"""The general validator: the service's error for a request, or the request without nulls and unknown members.

fast_validator.py is its fast path. Errors are found in this order: JSON types, the member that is reported alone,
constraints in the order of the shape.
"""

from __future__ import annotations

from typing import Any

from tablegate.adapters.dynamodb.validation.constraints import violations
from tablegate.adapters.dynamodb.validation.json_types import ValueBudget, typed_members
from tablegate.adapters.dynamodb.validation.rules.rule_context import RuleContext
from tablegate.adapters.dynamodb.validation.schemas.schema_types import Request
from tablegate.adapters.dynamodb.wire.errors import constraint_error, serialization
from tablegate.adapters.dynamodb.wire.messages import json_type

# The validator


def clean(context: RuleContext, request: Request, body: Any) -> dict[str, Any]:
    """Return the input without nulls and unknown members.

    Raises ServiceError: the first error in the service's order.
    """
    if not isinstance(body, dict):
        raise serialization(json_type("structure", body, context.operation + "Input"))
    data: dict[str, Any] = typed_members(request.shape, body, ValueBudget())
    violated = violations(context, request.shape, data)
    if request.named and data.get(request.named) is None:
        raise context.refused("required", name=request.named)
    if violated:
        first = [violation for violation in violated if violation.path == request.alone]
        raise constraint_error(context, first or violated)
    return data
