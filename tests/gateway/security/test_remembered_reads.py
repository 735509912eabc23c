"""A policy's cache of reads never permits a row that the plain evaluator would refuse, whatever was read before."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from benchmarks import grants as measured
from benchmarks.in_process import CONNECTIONS, REQUESTS, Calls, InProcess
from tablegate.gateway.model.authorization import grants
from tablegate.gateway.model.authorization.accesses import Access
from tablegate.gateway.model.authorization.authorizations import Authorization, CallerIdentity, RequestSource
from tablegate.gateway.model.authorization.grants import Policy, Verdict
from tablegate.gateway.model.authorization.permissions import Channel, Permission, Purpose
from tablegate.gateway.model.commands.row_commands import Get, VisibleNames
from tablegate.gateway.model.tables.tables import Rules, State, Table
from tablegate.gateway.model.values.keys import KeyColumn, KeySchema, Position, encode_column
from tablegate.gateway.model.values.values import Kind, text
from tablegate.gateway.security.grant_store import WrittenGrant, policy_of
from tablegate.gateway.server.server_process import run_in_loop
from tests.support.examples import examples

IDENTITY = CallerIdentity("aws", "LIMITED", "000000000000", "arn:aws:iam::000000000000:user/LIMITED")
CONDITIONS: list[dict[str, Any]] = [
    {},
    {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["k1"]}},
    {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["k*"]}},
    {"ForAnyValue:StringEquals": {"dynamodb:LeadingKeys": ["1"]}},
    {"ForAnyValue:StringEquals": {"dynamodb:LeadingKeys": ["k2"]}, "DateLessThan": {"aws:EpochTime": "2"}},
    {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["k1"], "dynamodb:Attributes": ["pk", "a"]}},
]
"""Some are by the partition alone, some by other things too."""


def table(kind: Kind, name: str = "things") -> Table:
    schema = KeySchema((KeyColumn("pk", kind),))
    return Table(1, "shared", name, name, schema, (), Rules(), {}, State.ACTIVE, 0, 1, 0)


TABLES = [table(Kind.TEXT), table(Kind.DECIMAL), table(Kind.TEXT, "others")]


def get_of(of: Table, key: str, shown: frozenset[str] | None) -> Get:
    return Get(
        of,
        Position(encode_column(text(key)), b""),
        visible_attributes=None if shown is None else VisibleNames(shown),
    )


policies = st.lists(
    st.tuples(st.sampled_from(["Allow", "Allow", "Deny"]), st.sampled_from(["table/*", "table/things"]),
              st.sampled_from(CONDITIONS)),
    min_size=1, max_size=2,
)  # fmt: skip
reads = st.lists(
    st.tuples(st.sampled_from(TABLES), st.sampled_from(["k1", "k2"]), st.sampled_from([None, frozenset({"a"})]),
              st.sampled_from([Channel.SINGLE, Channel.BATCH]), st.sampled_from([1_000, 3_000])),
    min_size=4, max_size=16,
)  # fmt: skip


def policy(statements: list[tuple[str, str, dict[str, Any]]]) -> Policy:
    written = [
        {"Effect": effect, "Action": ["dynamodb:GetItem", "dynamodb:BatchGetItem"],
         "Resource": f"arn:aws:dynamodb:*:*:{resource}", **({"Condition": condition} if condition else {})}
        for effect, resource, condition in statements
    ]  # fmt: skip
    return policy_of(
        WrittenGrant("iam", json.dumps({"Version": "2012-10-17", "Statement": written})), IDENTITY
    )


@examples(400)
@given(statements=policies, asked=reads)
def test_each_read_is_authorized_like_the_first(statements: Any, asked: Any) -> None:
    kept = policy(statements)
    for of, key, shown, way, now_ms in asked:
        get = get_of(of, key, shown)
        authorization = Authorization(kept, IDENTITY, RequestSource("127.0.0.1", False), now_ms)
        authorization.purpose = Purpose((Permission.READ,), way)
        access = Access(Permission.READ, way, of.namespace, of.name, get, of)
        plain = policy(statements).decide(access).judge(access, authorization)
        refusal = authorization.refusal([get])
        assert (refusal is None) is (plain is Verdict.ALLOWED)
        assert authorization.is_checked


def remembered(kept: Policy, key: str) -> int:
    """Return the number of partitions that a policy caches after a read."""
    authorization = Authorization(kept, IDENTITY, RequestSource("127.0.0.1", False), 1_000)
    authorization.purpose = Purpose((Permission.READ,))
    authorization.refusal([get_of(TABLES[0], key, None)])
    return len(kept.readable)


def test_remembered_reads_are_bounded_and_depend_on_the_partition_only() -> None:
    patterns = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["k*"]}}
    kept = policy([("Allow", "table/*", patterns)])
    assert remembered(kept, "k1") == remembered(kept, "k1") == 1
    assert remembered(kept, "x1") == 1  # which is refused
    longest = grants._LONGEST_KEPT_BYTES - len(encode_column(text("")))
    assert remembered(kept, "k" * longest) == 2
    assert remembered(kept, "k" * (longest + 1)) == 2
    for number in range(grants._DECISIONS_KEPT - 2):
        remembered(kept, f"k-{number}")
    assert remembered(kept, "k-0") == grants._DECISIONS_KEPT
    assert remembered(kept, "k-new") == 1
    for at_a_time in ({"DateLessThan": {"aws:EpochTime": "2"}}, {"Bool": {"aws:SecureTransport": "false"}}):
        assert remembered(policy([("Allow", "table/*", {**patterns, **at_a_time})]), "k1") == 0


async def calls_of_each(running: InProcess, requests: list[bytes]) -> int:
    """Return how many of our functions a request calls."""
    with Calls() as calls:
        await running.send(requests)
    return sum(number // len(requests) for number in calls.names.values())


def test_a_read_of_a_granted_partition_takes_three_calls_more() -> None:
    """From its first byte to the last of its reply, warm: that its caller is limited, that it may, and where that is kept."""
    found = {}

    async def work() -> bool:
        running = InProcess(auth="strict", secret_key="what encrypts nothing here")
        await measured.begin(running)
        requests = REQUESTS["DynamoDB GetItem"]()[: 2 * CONNECTIONS]
        for name, granted in measured.GRANTED.items():
            measured.grant(running, granted)
            await running.send(requests)
            # Timers, and requests that arrive in several turns of the loop, only add calls: the smallest of some rounds.
            found[name] = min([await calls_of_each(running, requests) for _ in range(5)])
        await running.stop()
        return True

    run_in_loop(work())
    for name in found:
        assert found[name] <= found[measured.EVERYTHING] + 3, found


def test_a_table_that_is_made_anew_is_read_by_its_own_schema() -> None:
    """The bytes of a partition under another schema are another value, or none."""
    kept = policy([("Allow", "table/*", {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["k*"]}})])
    assert remembered(kept, "k1") == 1
    authorization = Authorization(kept, IDENTITY, RequestSource("127.0.0.1", False), 1_000)
    authorization.purpose = Purpose((Permission.READ,))
    assert authorization.refusal([get_of(TABLES[0], "k1", None)]) is None
    assert authorization.refusal([get_of(TABLES[1], "k1", None)]) is not None
