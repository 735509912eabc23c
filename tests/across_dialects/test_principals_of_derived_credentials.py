"""Every credential that is derived from a token carries the identity, the groups and the roles of the token.

The credentials: the token itself, a signature by a user delegation key, temporary keys in DynamoDB and in Table Store, and a
session of the console. Each row of the table is a restriction. It must refuse each credential, and no credential of another
identity. Jobs: tests/entry_matrix/test_entry_matrix_of_work.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tablegate.gateway.console.sign_in import SignIn
from tablegate.gateway.control.documents import BadRequest
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.authorization.accesses import Access
from tablegate.gateway.model.authorization.grants import Verdict
from tablegate.gateway.model.authorization.permissions import Channel, Permission
from tablegate.gateway.model.errors import QuotaExceeded
from tablegate.gateway.security.identities import Identity
from tests.across_dialects.test_attempts_of_identities import (
    Attempts,
    azure_requests,
    dynamodb_requests,
    tablestore_requests,
)
from tests.adapters.azuretable.client import code_of
from tests.adapters.azuretable.identified import IdentifiedService, identified_service
from tests.adapters.azuretable.test_delegation import KEY_PATH, get, key_info, key_of, signed

ORIGINS = ("token", "signature", "DynamoDB", "Table Store", "console")
ALICE = Identity("alice", ("ops", "blocked"), ("clerk",))
OTHER = Identity("bob", ("ops",), ("owner",))
ROWS = {"read": ["people"], "query": ["people"], "scan": ["people"]}
VARIABLE = "arn:aws:dynamodb:*:*:table/${aws:username}*"


def denial(resource: str) -> dict[str, Any]:
    statement = {"Effect": "Deny", "Action": "dynamodb:*", "Resource": resource}
    return {"Version": "2012-10-17", "Statement": [statement]}


DENIALS: Mapping[str, tuple[str, Any]] = {
    "entra/alice": ("short", {**ROWS, "deny": True}),
    "group/blocked": ("short", {**ROWS, "deny": True}),
    "role/clerk": ("short", {**ROWS, "deny": True}),
}
QUOTAS = ("entra/alice", "group/blocked")
ONE_REQUEST = 0.001


class Origins:
    """One read of `people` by each credential that is derived from one token."""

    def __init__(self, attempts: Attempts, identity: Identity) -> None:
        self._attempts, self._service = attempts, attempts.service
        claims = {"oid": identity.object_id, "groups": [*identity.groups], "roles": [*identity.roles]}
        self._token = self._service.issuer.token(tid="t", **claims)
        self._signature = signed(key_of(self._service, self._token))
        self._keys = attempts.keys_of(identity)
        self._sign_in = SignIn(self._service.gateway)
        cookie = self._sign_in.cookie_of_identity(identity)
        assert cookie is not None
        self._cookie = cookie

    def reads(self) -> dict[str, bool]:
        """Return credential -> True if it reads."""
        return {origin: self.reads_by(origin) for origin in ORIGINS}

    def reads_by(self, origin: str) -> bool:
        match origin:
            case "token":
                method, path, body = azure_requests("people")["get"][1]
                return self._attempts.azure(self._token, method, path, body).status == 200
            case "signature":
                return get(self._service, self._signature)[0] == 200
            case "DynamoDB":
                given = dynamodb_requests("people")["GetItem"][1]
                return self._attempts.dynamodb(self._keys, "GetItem", given).status == 200
            case "Table Store":
                message = tablestore_requests("people")["GetRow"][1]
                return self._attempts.tablestore(self._keys, "GetRow", message).status == 200
        return self._reads_in_the_console()

    def _reads_in_the_console(self) -> bool:
        try:
            visitor = self._sign_in.visitor(
                Request("GET", "/_tablegate/console/", (), b"", secure=True), self._cookie, "shared"
            )
        except QuotaExceeded:
            return False
        assert visitor is not None and visitor.authorization is not None
        read = Access(Permission.SCAN, Channel.SINGLE, "shared", "people", None)
        return visitor.authorization.judge(read) is Verdict.ALLOWED


@pytest.fixture(scope="module")
def opened() -> Iterator[Attempts]:
    with identified_service() as service:
        yield Attempts(service)


@pytest.fixture
def attempts(opened: Attempts) -> Iterator[Attempts]:
    opened.service.revoke_all()
    yield opened
    opened.service.gateway.quotas.replace({})


def grant_rows(service: IdentifiedService) -> None:
    for grantee in ("entra/alice", "entra/bob"):
        service.grant(grantee, "short", ROWS)


def test_a_denial_of_each_principal_holds_for_each_credential(attempts: Attempts) -> None:
    service = attempts.service
    grant_rows(service)
    alice, other = Origins(attempts, ALICE), Origins(attempts, OTHER)
    everything, nothing = dict.fromkeys(ORIGINS, True), dict.fromkeys(ORIGINS, False)
    for grantee, (form, document) in DENIALS.items():
        grant = service.grant(grantee, form, document)
        assert (alice.reads(), other.reads()) == (nothing, everything), grantee
        service.revoke(grant)
        assert alice.reads() == everything, grantee


def test_a_denial_to_all_counts_for_tokens(attempts: Attempts) -> None:
    """Allowances to `*` are for stored credentials only."""
    service = attempts.service
    grant_rows(service)
    alice, other = Origins(attempts, ALICE), Origins(attempts, OTHER)
    everything, nothing = dict.fromkeys(ORIGINS, True), dict.fromkeys(ORIGINS, False)
    for form, document in (
        ("short", {**ROWS, "deny": True}),
        ("iam", denial("*")),
    ):
        grant = service.grant("*", form, document)
        assert (alice.reads(), other.reads()) == (nothing, nothing), document
        service.revoke(grant)
    service.grant("*", "iam", denial(VARIABLE))  # tables with the name of the caller
    assert (alice.reads(), other.reads()) == (everything, everything)
    service.revoke_tokens()
    service.grant("entra/people", "short", ROWS)
    assert Origins(attempts, Identity("people")).reads() == nothing
    service.revoke_all()
    service.grant("*", "short", ROWS)
    service.grant("entra/alice", "short", {"read": ["orders"]})
    assert Origins(attempts, ALICE).reads() == nothing


def test_an_allowance_of_each_principal_counts_for_each_credential(attempts: Attempts) -> None:
    service = attempts.service
    everything, nothing = dict.fromkeys(ORIGINS, True), dict.fromkeys(ORIGINS, False)
    for grantee in DENIALS:
        grant = service.grant(grantee, "short", ROWS)
        alice = Origins(attempts, ALICE)
        assert alice.reads() == everything, grantee
        service.revoke(grant)
        assert alice.reads() == nothing, grantee


def test_a_quota_of_each_principal_is_shared_by_its_credentials(attempts: Attempts) -> None:
    service = attempts.service
    grant_rows(service)
    alice, other = Origins(attempts, ALICE), Origins(attempts, OTHER)
    for owner in QUOTAS:
        for first in ORIGINS:
            service.gateway.quotas.replace({})
            service.quota(owner, requests=ONE_REQUEST)
            assert alice.reads_by(first), (owner, first)
            assert alice.reads() == dict.fromkeys(ORIGINS, False), (owner, first)
            assert other.reads() == dict.fromkeys(ORIGINS, True), (owner, first)


def test_a_key_of_another_identity_has_no_principals_of_this_one(attempts: Attempts) -> None:
    """The sealed groups and roles of a key are valid for its identity, tenant and account only."""
    service = attempts.service
    service.grant("group/ops", "short", ROWS)
    token = service.issuer.token
    key = key_of(service, token(tid="t", groups=["ops"]))
    object_id, mark, sealed = key["SignedOid"].partition("~")
    assert (object_id, mark) == ("alice", "~") and "ops" not in sealed
    assert get(service, signed(key))[0] == 200
    for changed in (
        "alice",
        f"bob~{sealed}",
        f"alice~{sealed[:-4]}AAAA",
        "alice~",
        f"alice~{sealed}~{sealed}",
    ):
        assert get(service, signed(key, skoid=changed))[0] == 403, changed
    # An identity whose id has the form of sealed principals gets a key of its own.
    service.grant(f"entra/{key['SignedOid']}", "short", {"query": ["people"]})
    imitation = key_of(service, token(tid="t", oid=key["SignedOid"]))
    assert get(service, signed(imitation))[0] == 403
    assert get(service, signed(imitation), path="/people()")[0] == 403  # a Scan


def test_a_token_with_too_many_groups_gets_no_key(attempts: Attempts) -> None:
    service = attempts.service
    service.grant("entra/alice", "short", ROWS)
    token = service.issuer.token(groups=["g" * 100 + str(number) for number in range(60)])
    reply = service.send("POST", KEY_PATH, key_info(), token)
    assert code_of(reply) == (400, "InvalidInput")
    assert b"groups and roles" in reply.body


def test_a_role_or_an_identity_in_one_account_has_no_quota(attempts: Attempts) -> None:
    """Nothing would count it."""
    with pytest.raises(BadRequest, match="entra/x@azure/team: a quota counts in all accounts"):
        attempts.service.quota("entra/x@azure/team", requests=1)
    with pytest.raises(BadRequest, match="role/clerk: a role has no quota"):
        attempts.service.quota("role/clerk", requests=1)


def test_a_denial_to_all_is_no_membership_where_tenants_are_kept_apart() -> None:
    """The keys of an identity are valid only in accounts that a grant to it names. A denial to all counts in each account."""
    with identified_service(namespaces="separate") as service:
        attempts, item = Attempts(service), dynamodb_requests("people")["GetItem"][1]
        service.grant("*", "short", {"read": ["people"], "deny": True})
        keys = attempts.keys_of(ALICE, account="111122223333")
        assert b"UnrecognizedClientException" in attempts.dynamodb(keys, "GetItem", item).body
        service.grant("entra/alice@aws/111122223333", "all")
        assert b"AccessDeniedException" in attempts.dynamodb(keys, "GetItem", item).body
        assert attempts.dynamodb(keys, "ListTables", {}).status == 200
