"""Local transactions of Table Store in one namespace: a caller with the id of another caller's transaction cannot end
it.

`CommitTransaction` and `AbortTransaction` name a transaction and no table. They need a right to the table and to the
partition that the transaction locks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import tablestore as ots

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL, written_of
from tablegate.gateway.wiring import connect, open_store
from tests.support.running import start

SETTINGS = {"auth": "strict", "secret_key": "what encrypts the secrets of these callers"}
ACTIONS = [
    f"ots:{each}"
    for each in ("StartLocalTransaction", "CommitTransaction", "AbortTransaction", "PutRow", "GetRow")
]
IGNORE = ots.Condition(ots.RowExistenceExpectation.IGNORE)


def of_table(name: str) -> Any:
    resource = f"acs:ots:*:*:instance/inst/table/{name}"
    return written_of(
        {"Version": "1", "Statement": [{"Effect": "Allow", "Action": ACTIONS, "Resource": resource}]}
    )


GRANTED = {
    "owner": ALL,
    "clerk": of_table("mine"),
    "other": of_table("theirs"),
    "tenant1": written_of({"read": ["mine"], "write": ["mine"], "keys": ["p1*"]}),
    "tenant2": written_of({"read": ["mine"], "write": ["mine"], "keys": ["p2"]}),
}


@pytest.fixture(autouse=True)
def untouched() -> None:
    """These callers have a server of their own."""


@pytest.fixture
def clients(database_url: str) -> Iterator[dict[str, Any]]:
    settings = load({"database": database_url, **SETTINGS}, {})
    opened = open_store(settings, connect(settings))
    for name, granted in GRANTED.items():
        opened.credential_store.add(Credential(Scheme.TABLESTORE, name, ("secret",)), [granted])
    opened.close()
    server = start(database_url, **SETTINGS)
    made = {
        name: ots.OTSClient(server.url, name, "secret", "inst", retry_policy=ots.NoRetryPolicy())
        for name in GRANTED
    }
    for table in ("mine", "theirs"):
        meta = ots.TableMeta(table, [("pk", "STRING"), ("sk", "STRING")])
        none = ots.ReservedThroughput(ots.CapacityUnit(0, 0))
        made["owner"].create_table(meta, ots.TableOptions(), none)
    yield made
    server.stop()


def begun(client: Any, pk: str = "p1") -> str:
    """A transaction with a row staged in it."""
    known: str = client.start_local_transaction("mine", [("pk", pk)])
    client.put_row("mine", ots.Row([("pk", pk), ("sk", "s")], [("note", "n")]), IGNORE, transaction_id=known)
    return known


def refused(call: Any, transaction: str) -> str:
    try:
        call(transaction)
    except ots.OTSServiceError as error:
        return str(error.get_error_code())
    return ""


@pytest.mark.parametrize("thief", ["other", "tenant2"])
@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_an_id_does_not_permit_ending_a_transaction(clients: dict[str, Any], thief: str, end: str) -> None:
    victim = clients["tenant1" if thief == "tenant2" else "clerk"]
    known = begun(victim)
    assert refused(getattr(clients[thief], end), known) == "OTSNoPermissionAccess"
    row = [("pk", "p1"), ("sk", "s")]
    assert victim.get_row("mine", row, max_version=1, transaction_id=known)[1] is not None
    assert refused(getattr(victim, end), known) == ""
    assert (victim.get_row("mine", row, max_version=1)[1] is not None) is (end == "commit_transaction")
    assert refused(getattr(victim, end), known) == "OTSSessionNotExist"


def test_an_unrestricted_caller_ends_any_transaction(clients: dict[str, Any]) -> None:
    assert refused(clients["owner"].commit_transaction, begun(clients["clerk"])) == ""


def test_a_transaction_on_a_long_partition_needs_a_right_to_all(clients: dict[str, Any]) -> None:
    """Its transaction has but a digest of it, so that a grant of partitions does not reach it."""
    long = "p1" + "\x00" * 700  # in the bytes of a key a zero is two
    known = clients["clerk"].start_local_transaction("mine", [("pk", long)])
    assert refused(clients["tenant1"].abort_transaction, known) == "OTSNoPermissionAccess"
    assert refused(clients["clerk"].abort_transaction, known) == ""
