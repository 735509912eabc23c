"""Answers of AWS as the tests of this folder record them, and their comparison with this server's answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.dynamodb.client import DynamoDBService
from tests.support.capabilities import needs

OK = ""
INVALID = "One or more parameter values were invalid: "
DETECTED = "1 validation error detected: Value "
MISSING = "Requested resource not found: "
IN_USE = "Attempt to change a resource which is still in use: "

Recorded = str | tuple[str, str]
"""An answer: OK, the text of a ValidationException, or (code, text) of another error. A text that ends in "…" was recorded
up to there."""
Case = tuple[str, str, dict[str, Any], Recorded]
"""(finding, operation, request, answer)."""


def arn(name: str, account: str = "000000000000", region: str = "us-east-1") -> str:
    """Return the ARN of a resource behind `table/`, as the fixtures' servers write it."""
    return f"arn:aws:dynamodb:{region}:{account}:table/{name}"


def tags(**given: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in given.items()]


def units(read: int, write: int) -> dict[str, int]:
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


def not_found(rest: str) -> tuple[str, str]:
    return "ResourceNotFoundException", f"{MISSING}{rest}"


def in_use(rest: str) -> tuple[str, str]:
    return "ResourceInUseException", IN_USE + rest


def answer(service: DynamoDBService, operation: str, request: dict[str, Any]) -> tuple[str, str]:
    """Return (code, text) of an error, or ("", "") for a success."""
    body = service.call(operation, request)
    if service.last.status == 200:
        return "", ""
    text = body.get("message", body.get("Message", ""))
    return body["__type"].partition("#")[2], text


def check(service: DynamoDBService, operation: str, request: dict[str, Any], *recorded: Recorded) -> None:
    """Assert that the answer to a request is one of the recorded answers."""
    found = answer(service, operation, request)
    shown = f"{operation} {request}\n   found {found}\nrecorded {recorded}"
    assert any(_same(found, each) for each in recorded), shown


def _same(found: tuple[str, str], recorded: Recorded) -> bool:
    if isinstance(recorded, str):
        recorded = ("ValidationException" if recorded else "", recorded)
    code, text = recorded
    cut = text.removesuffix("…")
    if cut != text:
        return found[0] == code and found[1].startswith(cut)
    return found[0] == code and _parts(found[1]) == _parts(text)


def _parts(text: str) -> tuple[str, list[str]]:
    """A text, its list of broken constraints in the order of the alphabet. The service lists them in the order of a hash."""
    head, detected, listed = text.partition(" detected: ")
    return head + detected, sorted(listed.split("; "))


def each(cases: list[Case]) -> Any:
    """Parametrize a test with `operation`, `request_` and `recorded` of cases. The ids are the findings."""
    given = [
        pytest.param(*case[1:], id=f"{case[0]}-{case[1]}", marks=_capability_of(*case)) for case in cases
    ]
    return pytest.mark.parametrize(("operation", "request_", "recorded"), given)


def _capability_of(finding: str, operation: str, request: dict[str, Any], recorded: Recorded) -> Any:
    """Return the mark of a case that is about a capability, or ()."""
    is_of_replicas = operation.endswith("ReplicaAutoScaling") or not request.keys().isdisjoint(
        ("GlobalTableName", "GlobalTableWitnessUpdates", "MultiRegionConsistency", "ReplicaUpdates")
    )
    return needs("global_tables") if is_of_replicas else ()


# Requests that several tests send

GONE = {"TableName": "missing"}
NO_TABLE = not_found("Table: missing not found")
ENABLE = {"ContributorInsightsAction": "ENABLE"}
CREATE = {
    "TableName": "new",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}
