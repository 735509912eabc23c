"""The cost of grants: CPU time and function calls of GetItem and PutItem for a caller with and without restrictions.

The cases are full access, grants for tables or partitions, and a table with its own policy.
`python -m benchmarks.grants [ROUNDS]` prints calls of our Python code and microseconds of CPU for a request, 16 at a
time, and the median ratio to full access. Cases alternate, so that other load of the machine affects all of them.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from benchmarks import signing
from benchmarks.in_process import CONNECTIONS, PREPARED, REQUESTS, Calls, InProcess
from tablegate.gateway.model.authorization.grants import Policy
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import WrittenGrant, policy_of
from tablegate.gateway.server.server_process import run_in_loop

_ACTIONS = ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"]
_KEY = Credential(Scheme.AWS, signing.AWS_KEY_ID, (signing.AWS_SECRET,))
_ELSEWHERE = {("shared", "another"): {"": {"text": "", "revision": "1"}}}


def _statement(**condition: object) -> dict[str, object]:
    return {
        "Effect": "Allow",
        "Action": _ACTIONS,
        "Resource": "arn:aws:dynamodb:*:*:table/items",
        **condition,
    }


def _policy(*statements: dict[str, object]) -> Policy:
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    return policy_of(WrittenGrant("iam", document), _KEY.identity)


def _leading(operator: str, *values: str) -> dict[str, object]:
    return {"Condition": {f"ForAllValues:{operator}": {"dynamodb:LeadingKeys": list(values)}}}


EVERYTHING = "everything"
GRANTED: dict[str, Policy | None] = {
    EVERYTHING: None,
    "tables": _policy(_statement()),
    "partitions by value": _policy(_statement(**_leading("StringEquals", "p0", "p1", "p2", "p3"))),
    "partitions by pattern": _policy(_statement(**_leading("StringLike", "p*"))),
}
OPERATIONS = ("DynamoDB GetItem", "DynamoDB PutItem")


async def _start(has_resource_policies: bool) -> InProcess:
    running = InProcess(auth="strict", secret_key="what encrypts nothing here")
    await begin(running)
    running.gateway.credentials.keep_resource_policies(_ELSEWHERE if has_resource_policies else {})
    return running


async def begin(running: InProcess) -> None:
    """Create the table and its items with full access."""
    grant(running, None)
    tables, items, *_ = PREPARED
    await running.send(tables()[:1])
    await running.send(items())


def grant(running: InProcess, policy: Policy | None) -> None:
    """Set the policy of the key. None allows everything."""
    running.gateway.credentials.replace([replace(_KEY, policy=policy)])


async def _round(running: InProcess, requests: list[bytes]) -> float:
    gc.collect()
    began = time.process_time()
    await running.send(requests)
    return (time.process_time() - began) / len(requests) * 1e6


async def _measure(servers: dict[bool, InProcess], rounds: int, write_line: Callable[[str], None]) -> None:
    cases = [(name, False) for name in GRANTED] + [(name, True) for name in GRANTED]
    for operation in OPERATIONS:
        requests = REQUESTS[operation]()
        times: dict[tuple[str, bool], list[float]] = {case: [] for case in cases}
        calls = {}
        for case in cases:
            running = servers[case[1]]
            grant(running, GRANTED[case[0]])
            await running.send(requests)
            half = len(requests) // 2 // CONNECTIONS * CONNECTIONS
            with Calls() as counter:
                await running.send(requests[:half])
            calls[case] = sum(counter.names.values()) / half
        order = random.Random(0)
        for _ in range(rounds):
            for case in order.sample(cases, len(cases)):
                running = servers[case[1]]
                grant(running, GRANTED[case[0]])
                await running.send(requests[: 2 * CONNECTIONS])
                times[case].append(await _round(running, requests))
        write_line(operation)
        for case in cases:
            pairs = [own / full for own, full in zip(times[case], times[EVERYTHING, False], strict=True)]
            name = case[0] + (", a table has a policy" if case[1] else "")
            write_line(
                f"  {name:46} {calls[case]:6.1f} calls {statistics.median(times[case]):7.1f} us"
                f" {(statistics.median(pairs) - 1) * 100:+6.1f} %"
            )


def main() -> None:
    """Print the figures."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 31

    async def work() -> bool:
        servers = {has_policies: await _start(has_policies) for has_policies in (False, True)}
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)  # as in the server process
        await _measure(servers, rounds, print)
        for running in servers.values():
            await running.stop()
        return True

    run_in_loop(work())


if __name__ == "__main__":
    main()
