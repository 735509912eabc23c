"""A caller cannot distinguish a forbidden table from an absent one.

Every operation of the three dialects is sent to a forbidden and an absent table, with valid and invalid keys, index
names and attribute types (named_requests.py). Status, code, text (except for the name) and the commands that reach the
engine are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.security import named_requests, named_requests_of_others
from tests.gateway.security.named_requests import INDEX, furnish
from tests.support.capabilities import INSTALLED
from tests.support.strict import FULL, LIMITED, Strict, Told, strict

FORBIDDEN, ABSENT = "forbidden", "absentish"  # of one length, for limits of sizes
Ask = Callable[[str, Any], Told]
REFUSALS = {"AccessDeniedException", "AuthorizationPermissionMismatch", "OTSNoPermissionAccess"}

ON = "arn:aws:dynamodb:*:*:table/"
RAM_ON = "acs:ots:*:*:instance/inst/table/granted"


def iam(*resources: str) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": "dynamodb:*", "Resource": [ON + each for each in resources]}
    return {"Version": "2012-10-17", "Statement": [statement]}


WORDS = ("read", "query", "scan", "write", "delete", "define", "stream")
GRANTS: dict[str, list[Any]] = {
    "admin of another table": [{"admin": ["granted*"]}],
    "words on another table": [{word: ["granted*"] for word in WORDS}],
    "reads of another table": [{"read": ["granted*"], "query": ["granted*"]}],
    "partitions of another table": [{"read": ["granted*"], "write": ["granted*"], "keys": ["a"]}],
    "IAM on another table": [iam("granted", "granted/*")],
    "IAM on parts of all tables": [iam("*/index/granted", "granted")],
    "RAM on another table": [{"Version": "1", "Statement": {"Effect": "Allow", "Action": "ots:*", "Resource": RAM_ON}}],
    "everything but the two": [
        {"admin": ["*"]}, {"admin": [FORBIDDEN, ABSENT, FORBIDDEN.upper(), ABSENT.upper()], "deny": True},
    ],
}  # fmt: skip


ENTRIES = ("flask", "tick")
# Authorization is the same at both entries, so `make test` has each grant at one of them.
with_each_grant = pytest.mark.parametrize(
    ("entry", "grants"),
    [
        pytest.param(
            entry, grants, id=f"{name}-{entry}", marks=[pytest.mark.extended] * ((number + place) % 2)
        )
        for number, (name, grants) in enumerate(GRANTS.items())
        for place, entry in enumerate(ENTRIES)
    ],
    indirect=["entry"],
)
# Authorization may not know the database (import rules 2 to 4 of docs/architecture.md).
pytestmark = pytest.mark.parametrize("shared_database_url", ["sqlite"], indirect=True, scope="module")


class Pair:
    """A gateway with a forbidden table."""

    def __init__(self, server: Strict) -> None:
        self.server = server
        furnish(server, "granted")
        self.has = furnish(server, FORBIDDEN)

    def differences(
        self, ask: Ask, of: Callable[[str], Iterable[tuple[str, str, Any]]]
    ) -> tuple[set[str], list[str]]:
        """Return the operations that were sent, and the requests that were not refused equally for both tables."""
        operations, wrong = set(), []
        self.requests = self.malformed = 0
        for (operation, said, forbidden), (_, _, absent) in zip(of(FORBIDDEN), of(ABSENT), strict=True):
            operations.add(operation)
            self.requests += 1
            told = self.difference(ask, operation, forbidden, absent)
            if told:
                wrong.append(f"{operation} {said}: {told}")
        if self.malformed * 4 > self.requests:
            wrong.append(f"{self.malformed} of {self.requests} requests are malformed")
        return operations, wrong

    def difference(self, ask: Ask, operation: str, forbidden: Any, absent: Any) -> str:
        """Return the difference between two replies. It is empty if they are equal and both refuse."""
        of_forbidden, its_commands = self.told(ask, operation, forbidden)
        of_absent, commands = self.told(ask, operation, absent)
        status, code, text = of_absent.error
        expected = (status, code, text.replace(ABSENT, FORBIDDEN).replace(ABSENT.upper(), FORBIDDEN.upper()))
        if of_forbidden.error != expected:
            return f"{of_forbidden.error} != {expected}"
        if its_commands != commands:
            return f"{its_commands} != {commands}"
        if code in REFUSALS or "AccessDenied" in str(of_forbidden.body):
            return ""
        self.malformed += 1  # that is told to everybody, if nothing was looked up for it
        return f"not refused after {commands}: {of_forbidden}" if commands else ""

    def told(self, ask: Ask, operation: str, given: Any) -> tuple[Told, list[str]]:
        self.server.engine_commands.clear()
        return ask(operation, given), [*self.server.engine_commands]


@pytest.fixture(scope="module")
def pair(shared_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder: Path = tmp_path_factory.mktemp("objects")
    (folder / "bucket").mkdir()
    settings = {"s3_folder": str(folder), "kinesis_endpoint_url": "http://127.0.0.1:1"}
    with strict(shared_database_url, **settings) as server:
        yield Pair(server)


@pytest.fixture(params=ENTRIES)
def entry(request: pytest.FixtureRequest, pair: Pair) -> str:
    pair.server.is_ticked = request.param == "tick"
    return str(request.param)


@with_each_grant
def test_dynamodb_answers_alike_for_forbidden_and_absent_tables(
    pair: Pair, entry: str, grants: list[Any]
) -> None:
    pair.server.grant(LIMITED, *grants)

    def ask(operation: str, given: Any) -> Told:
        return pair.server.dynamodb(LIMITED, operation, **given)

    asked, wrong = pair.differences(ask, partial(named_requests.of_dynamodb, has=pair.has))
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)
    assert asked == named_requests.OF_DYNAMODB


@with_each_grant
def test_azure_answers_alike_for_forbidden_and_absent_tables(
    pair: Pair, entry: str, grants: list[Any]
) -> None:
    pair.server.grant(LIMITED, *grants)

    def ask(operation: str, given: Any) -> Told:
        method, path, body, headers = given
        if isinstance(body, bytes):
            body = body.replace(b"ACCOUNT", LIMITED.encode())
        return pair.server.azure(LIMITED, method, path, body, headers)

    asked, wrong = pair.differences(ask, named_requests_of_others.of_azure)
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)
    assert asked == named_requests_of_others.OF_AZURE


@with_each_grant
def test_table_store_answers_alike_for_forbidden_and_absent_tables(
    pair: Pair, entry: str, grants: list[Any]
) -> None:
    pair.server.grant(LIMITED, *grants)

    def ask(operation: str, given: Any) -> Told:
        return pair.server.tablestore(LIMITED, operation, given)

    asked, wrong = pair.differences(ask, partial(named_requests_of_others.of_table_store, has=pair.has))
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)
    assert asked == named_requests_of_others.OF_TABLE_STORE


def test_the_comparison_finds_differences(pair: Pair) -> None:
    """An unrestricted caller gets different answers for existing and absent tables."""
    reading = (
        "GetItem",
        "Query",
        "Scan",
        "BatchGetItem",
        "TransactGetItems",
        "DescribeTable",
        "DescribeStream",
    )

    def ask(operation: str, given: Any) -> Told:
        return (
            pair.server.dynamodb(FULL, operation, **given) if operation in reading else Told(403, "", "", "")
        )

    _, wrong = pair.differences(ask, partial(named_requests.of_dynamodb, has=pair.has))
    assert len([each for each in wrong if " != " in each]) > 40


def test_a_forbidden_index_gets_the_answer_of_an_absent_one(pair: Pair, entry: str) -> None:
    """A right to the table alone is none to its indexes."""
    pair.server.grant(LIMITED, iam(FORBIDDEN))
    values = {"KeyConditionExpression": "pk = :v", "ExpressionAttributeValues": {":v": {"S": "a"}}}
    vector = {"QueryVector": {"L": [{"N": "1"}]}, "TopK": 1}
    for operation, more in (
        ("Query", values),
        ("Scan", {}),
        ("Scan", {"ConsistentRead": True}),
        *([("SearchVectors", vector)] if "vectors" in INSTALLED else []),
    ):

        def ask(operation: str, index: str, more: Any = more) -> Told:
            return pair.server.dynamodb(LIMITED, operation, TableName=FORBIDDEN, IndexName=index, **more)

        assert_alike(pair, ask, operation)

    def select(operation: str, index: str) -> Told:
        return pair.server.dynamodb(LIMITED, operation, Statement=f'SELECT * FROM "{FORBIDDEN}"."{index}"')

    assert_alike(pair, select, "ExecuteStatement")


def assert_alike(pair: Pair, ask: Ask, operation: str) -> None:
    of_present, its_commands = pair.told(ask, operation, INDEX)
    of_absent, commands = pair.told(ask, operation, "byNobody")
    assert of_present.code == "AccessDeniedException"
    assert (of_present.text, its_commands) == (of_absent.text.replace("byNobody", INDEX), commands)
