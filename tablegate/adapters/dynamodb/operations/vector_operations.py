"""The operation on vectors."""

from __future__ import annotations

from tablegate.adapters.dynamodb.operation import Operation, by_name
from tablegate.adapters.dynamodb.operations import vectors
from tablegate.adapters.dynamodb.validation.rules import vector_rules
from tablegate.adapters.dynamodb.validation.schemas.vector_schemas import VECTOR_REQUESTS
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

# Operations


OPERATIONS = by_name(
    Operation(
        "SearchVectors", vectors.search_vectors, VECTOR_REQUESTS, Purpose((Permission.SEARCH,)),
        rule=vector_rules.search_vectors, refusal_of_body=vector_rules.refusal_of_body,
    ),
)  # fmt: skip
