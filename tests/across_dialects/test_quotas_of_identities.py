"""Quotas of identities and groups: one allowance in all dialects, for temporary keys and tokens."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tablegate.gateway.console.access_pages import ACCOUNT_FORMS
from tablegate.gateway.console.sign_in import SignIn
from tablegate.gateway.dialects.dialect import Dialect
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.errors import QuotaExceeded
from tablegate.gateway.observability.audit import AuditScope, AuditTrail, KeyForm
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL
from tablegate.gateway.security.identities import Identity
from tests.across_dialects.test_attempts_of_identities import (
    ITEM,
    STORED,
    Attempts,
    azure_requests,
    dynamodb_requests,
    tablestore_requests,
)
from tests.adapters.azuretable.identified import KEY, identified_service
from tests.support.audit_lines import Gathering

ONE_REQUEST = 0.001
"""A rate that allows one request, and the next one a thousand seconds later."""


@pytest.fixture(scope="module")
def opened() -> Iterator[Attempts]:
    with identified_service() as service:
        service.store.add(STORED, [ALL])
        service.store.add(Credential(Scheme.TABLESTORE, "STORED", ("a secret",)), [ALL])
        for grantee in ("entra/alice", "entra/bob"):
            service.grant(grantee, "all")
        yield Attempts(service)


@pytest.fixture
def attempts(opened: Attempts) -> Iterator[Attempts]:
    yield opened
    opened.service.gateway.quotas.replace({})


def passed(attempts: Attempts, *identities: Identity) -> str:
    """The dialects in which a read of each identity passes, by their initials. Each is asked in this order."""
    found = ""
    for identity in identities:
        keys = attempts.keys_of(identity)
        token = attempts.service.issuer.token(oid=identity.object_id, groups=list(identity.groups))
        reply = attempts.azure(token, *azure_requests("people")["get"][1])
        found += answered(reply.status, b"ServerBusy" in reply.body, "a")
        reply = attempts.dynamodb(keys, "GetItem", dynamodb_requests("people")["GetItem"][1])
        found += answered(reply.status, b"RequestLimitExceeded" in reply.body, "d")
        reply = attempts.tablestore(keys, "GetRow", tablestore_requests("people")["GetRow"][1])
        found += answered(reply.status, b"OTSServerBusy" in reply.body, "t")
    return found


def answered(status: int, is_throttled: bool, initial: str) -> str:
    assert (status == 200) is not is_throttled
    return "" if is_throttled else initial


@contextlib.contextmanager
def audited(*dialects: Dialect) -> Iterator[tuple[AuditTrail, Gathering]]:
    """Record the requests of dialects as a server does. The lines are complete after the block."""
    sink = Gathering()
    trail = AuditTrail(sink, KeyForm(True, ""), AuditScope(writes=False, requests=False))
    trail.start()
    with pytest.MonkeyPatch.context() as patched:
        for dialect in dialects:

            def serve(request: Request, dialect: Dialect = dialect, inner: Any = dialect.serve) -> Reply:
                reply: Reply = inner(request)
                trail.record_request(request, reply, dialect, dialect.operation(request))
                return reply

            patched.setattr(dialect, "serve", serve)
        yield trail, sink
    trail.close()


ALICE, MEMBER, BOB = Identity("alice"), Identity("alice", ("ops",)), Identity("bob")


@pytest.mark.parametrize(
    ("owner", "identities", "expected"),
    [
        ("entra/alice", (ALICE, BOB), "aadt"),
        ("entra/alice", (ALICE, ALICE, MEMBER), "a"),  # other temporary keys of the same identity
        ("entra/bob", (ALICE, BOB), "adta"),
        ("group/ops", (ALICE, BOB), "adtadt"),
        ("group/ops", (MEMBER, BOB), "aadt"),
        ("group/ops", (MEMBER, Identity("bob", ("dev", "ops"))), "a"),
    ],
)
def test_all_dialects_share_one_quota(
    attempts: Attempts, owner: str, identities: tuple[Identity, ...], expected: str
) -> None:
    attempts.service.quota(owner, requests=ONE_REQUEST)
    assert passed(attempts, *identities) == expected


@pytest.mark.parametrize("owner", ["entra/alice", "group/ops"])
def test_a_quota_of_an_identity_does_not_limit_stored_keys(attempts: Attempts, owner: str) -> None:
    attempts.service.quota(owner, requests=ONE_REQUEST)
    assert passed(attempts, MEMBER) == "a"
    get = dynamodb_requests("people")["GetItem"][1]
    for _ in range(3):
        keys = attempts.keys_of(STORED)
        assert attempts.dynamodb(keys, "GetItem", get).status == 200
        assert attempts.service.send("GET", "/people()", key=KEY).status == 200


def test_the_audit_names_a_throttled_identity_as_a_refused_one(attempts: Attempts) -> None:
    """The lines of one identity are found by one name in all dialects, for tokens and for temporary keys."""
    keys = attempts.keys_of(Identity("bob"))
    attempts.service.revoke_tokens()
    attempts.service.grant("entra/bob", "short", {"read": ["people"]})
    try:
        with audited(*attempts.dialects) as (trail, sink):
            for table in ("secrets", "people", "people"):
                if table == "people":
                    attempts.service.quota("entra/bob", requests=ONE_REQUEST)
                attempts.azure(attempts.service.issuer.token(oid="bob"), *azure_requests(table)["get"][1])
                attempts.dynamodb(keys, "GetItem", dynamodb_requests(table)["GetItem"][1])
                attempts.tablestore(keys, "GetRow", tablestore_requests(table)["GetRow"][1])
            sign_in, page = SignIn(attempts.service.gateway), Request("GET", "/_tablegate/console/", (), b"")
            with pytest.raises(QuotaExceeded):
                sign_in.visitor(page, sign_in.cookie_of_identity(Identity("bob")) or "", "shared")
            trail.record_request(page, Reply(429, ()), None, "")
    finally:
        for grantee in ("entra/alice", "entra/bob"):
            attempts.service.grant(grantee, "all")
    found = [(line["event"], line["dialect"], line["who"]) for line in sink.lines]
    for event in ("refusal", "throttled"):
        named = {(dialect, who) for kind, dialect, who in found if kind == event}
        names = {each.name for each in attempts.dialects} | ({"gateway"} if event == "throttled" else set())
        assert named == {(name, "entra/bob") for name in names}, found


def test_units_and_tables_of_an_identity(attempts: Attempts) -> None:
    put = {"TableName": "people", "Item": {**ITEM, "A": {"S": "x" * 4000}}}
    keys = attempts.keys_of(ALICE)
    attempts.service.quota("entra/alice", write_units=1)
    assert attempts.dynamodb(keys, "PutItem", put).status == 200
    method, path, _ = azure_requests("people")["upsert"][1]
    reply = attempts.azure(attempts.service.issuer.token(), method, path, {"A": 1})
    assert (reply.status, b"ServerBusy" in reply.body) == (503, True)
    attempts.service.quota("entra/alice", tables=2)  # people and orders
    reply = attempts.azure(attempts.service.issuer.token(), "POST", "/Tables", {"TableName": "third"})
    assert (reply.status, b"ServerBusy" in reply.body) == (503, True)


def test_pages_of_the_console_count(attempts: Attempts) -> None:
    """A quota hides nothing: an unrestricted identity still sees everything."""
    sign_in = SignIn(attempts.service.gateway)
    cookie = sign_in.cookie_of_identity(MEMBER)
    assert cookie is not None
    page = Request("GET", "/_tablegate/console/", (), b"", secure=True)
    attempts.service.quota("group/ops", requests=ONE_REQUEST)
    visitor = sign_in.visitor(replace(page), cookie, "shared")
    assert visitor is not None
    assert visitor.sees_everything
    with pytest.raises(QuotaExceeded):
        sign_in.visitor(replace(page), cookie, "shared")


def test_a_form_names_the_owner_as_grants_do() -> None:
    """The console names owners as grants do."""
    make = ACCOUNT_FORMS["quota_delete"].document_of
    assert make(None, {"owner": "group/ops"}) == {"access_id": "group/ops"}
    assert make(None, {"owner": "aws/KEY"}) == {"scheme": "aws", "access_id": "KEY"}
