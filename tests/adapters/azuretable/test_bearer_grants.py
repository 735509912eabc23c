"""The rights of the identity of a bearer token: grants to it, to its groups, and Azure's built-in roles."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tablegate.gateway.control.documents import BadRequest
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL
from tests.adapters.azuretable.identified import (
    ACCOUNT,
    KEY,
    OTHER_ACCOUNT,
    IdentifiedService,
    identified_service,
)

READ, WRITE = "Storage Table Data Reader", "Storage Table Data Contributor"
ROW = "/people(PartitionKey='p',RowKey='r')"
OTHER = "/orders(PartitionKey='p',RowKey='r')"
UPSERT = {"A": 1}


@pytest.fixture(scope="module")
def opened() -> Iterator[IdentifiedService]:
    with identified_service() as made:
        yield made


@pytest.fixture
def service(opened: IdentifiedService) -> IdentifiedService:
    opened.revoke_all()
    return opened


def rights(service: IdentifiedService, token: str) -> tuple[int, int, int]:
    """The statuses of a read, a write, and a read of the other table."""
    return (
        service.status(token, "GET", ROW),
        service.status(token, "PUT", ROW, UPSERT),
        service.status(token, "GET", OTHER),
    )


def test_an_identity_without_a_grant_has_no_rights(service: IdentifiedService) -> None:
    token = service.issuer.token(groups=["ops"])
    assert rights(service, token) == (403, 403, 403)
    assert service.status(token, "GET", "/people()") == 403
    assert service.status(token, "GET", "/absent()") == 403


def test_a_grant_to_an_object_is_for_that_object_only(service: IdentifiedService) -> None:
    grant = service.grant("entra/alice", "short", {"read": ["people"]})
    assert rights(service, service.issuer.token()) == (200, 403, 403)
    assert rights(service, service.issuer.token(oid="bob")) == (403, 403, 403)
    assert rights(service, service.issuer.token(oid=None, sub="alice")) == (200, 403, 403)
    service.revoke(grant)
    assert rights(service, service.issuer.token()) == (403, 403, 403)


def test_a_grant_to_a_group_is_for_its_members_only(service: IdentifiedService) -> None:
    service.grant("group/ops", "short", {"read": ["people"], "write": ["people"]})
    assert rights(service, service.issuer.token(groups=["dev", "ops"])) == (200, 204, 403)
    assert rights(service, service.issuer.token(groups=["dev"])) == (403, 403, 403)
    assert rights(service, service.issuer.token(groups="ops")) == (403, 403, 403)
    assert rights(service, service.issuer.token(oid="ops")) == (403, 403, 403)


def test_built_in_roles(service: IdentifiedService) -> None:
    service.grant("entra/alice", "role", READ)
    assert rights(service, service.issuer.token()) == (200, 403, 200)
    service.grant("group/ops", "role", WRITE)
    assert rights(service, service.issuer.token(groups=["ops"])) == (200, 204, 200)
    assert rights(service, service.issuer.token(oid="bob", roles=[READ])) == (200, 403, 200)


def test_a_role_of_grants(service: IdentifiedService) -> None:
    service.grant("role/clerk", "short", {"read": ["orders"]})
    service.grant("entra/alice", "role", "clerk")
    assert rights(service, service.issuer.token()) == (403, 403, 200)


def test_a_denial_to_a_group_counts(service: IdentifiedService) -> None:
    service.grant("entra/alice", "all")
    assert rights(service, service.issuer.token()) == (200, 204, 200)
    service.grant("group/ops", "short", {"read": ["orders"], "deny": True})
    assert rights(service, service.issuer.token(groups=["ops"])) == (200, 204, 403)


def test_a_policy_of_a_group_has_no_variables_of_the_caller(service: IdentifiedService) -> None:
    """The members share one policy. A role of stored credentials can have them, but then it allows identities nothing."""
    statement = {
        "Effect": "Allow",
        "Action": "dynamodb:*",
        "Resource": "arn:aws:dynamodb:*:*:table/${aws:username}*",
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    with pytest.raises(BadRequest, match="no value"):
        service.grant("group/ops", "iam", policy)
    service.grant("entra/people", "iam", policy)
    assert rights(service, service.issuer.token(oid="people")) == (200, 204, 403)
    service.grant("role/owner", "iam", policy)
    service.grant("group/ops", "short", {"read": ["*"]})
    member = service.issuer.token(oid="people", groups=["ops"])
    assert rights(service, member) == (200, 204, 200)
    assert rights(service, service.issuer.token(oid="people", roles=["owner"])) == (403, 403, 403)
    service.grant("entra/orders", "role", "owner")
    assert rights(service, service.issuer.token(oid="orders")) == (403, 403, 200)


def test_grants_to_all_credentials_are_not_for_identities(service: IdentifiedService) -> None:
    service.grant("*", "all")
    assert rights(service, service.issuer.token()) == (403, 403, 403)


def test_a_token_over_http_is_refused(service: IdentifiedService) -> None:
    service.grant("entra/alice", "all")
    assert service.send("GET", ROW, token=service.issuer.token(), secure=False).status == 403


def test_the_audit_names_the_identity(service: IdentifiedService) -> None:
    grant = service.grant("entra/alice", "all")
    reply = service.send("GET", ROW, token=service.issuer.token())
    assert reply.status == 200
    assert service.dialect.request_info(service.last, reply).caller == "entra/alice"
    service.revoke(grant)
    reply = service.send("GET", ROW, token=service.issuer.token())
    info = service.dialect.request_info(service.last, reply)
    assert (info.caller, info.is_refusal) == ("entra/alice", True)
    assert info.error_code == "AuthorizationPermissionMismatch"
    for forged in (service.issuer.token(exp=1), service.issuer.token(aud="https://graph.microsoft.com")):
        reply = service.send("GET", ROW, token=forged)
        assert "WWW-Authenticate" in dict(reply.headers)
        info = service.dialect.request_info(service.last, reply)
        assert (info.is_refusal, info.error_code) == (True, "InvalidAuthenticationInfo")


# Separate tenants

HERE, THERE = (f"https://{account}.table.core.windows.net" for account in (ACCOUNT, OTHER_ACCOUNT))


@pytest.fixture(scope="module")
def two_accounts() -> Iterator[IdentifiedService]:
    """A server whose accounts are kept apart. Both have tables of the same names."""
    with identified_service(namespaces="separate") as made:
        made.store.add(Credential(Scheme.AZURE, OTHER_ACCOUNT, (KEY, KEY)), [ALL])
        made.reload()
        entity = {"PartitionKey": "p", "RowKey": "r"}
        for path, body in (("/Tables", {"TableName": "people"}), ("/people", entity)):
            assert made.send("POST", path, body, key=KEY, account=OTHER_ACCOUNT).status == 201
        yield made


def reads(service: IdentifiedService, **claims: object) -> tuple[int, int]:
    """The statuses of a read in each account, each with a token for this account."""
    here = service.send("GET", ROW, token=service.issuer.token(aud=HERE, **claims))
    there = service.send("GET", ROW, token=service.issuer.token(aud=THERE, **claims), account=OTHER_ACCOUNT)
    return here.status, there.status


@pytest.mark.parametrize(
    ("grantee", "statuses"),
    [
        ("entra/alice", (403, 403)),
        ("group/ops", (403, 403)),
        ("role/clerk", (403, 403)),
        (f"entra/alice@azure/{ACCOUNT}", (200, 403)),
        (f"group/ops@azure/{OTHER_ACCOUNT}", (403, 200)),
        (f"role/clerk@azure/{ACCOUNT}", (200, 403)),
        ("group/ops@azure/*", (200, 200)),
        (f"entra/alice@aws/{ACCOUNT}", (403, 403)),
        ("entra/alice@tablestore/*", (403, 403)),
        (f"entra/bob@azure/{ACCOUNT}", (403, 403)),
    ],
)
def test_with_separate_tenants_a_grant_counts_in_the_account_that_it_names(
    two_accounts: IdentifiedService, grantee: str, statuses: tuple[int, int]
) -> None:
    two_accounts.revoke_tokens()
    two_accounts.grant(grantee, "short", {"read": ["people"]})
    assert reads(two_accounts, groups=["ops"], roles=["clerk"]) == statuses


def test_denials_and_roles_in_one_account(two_accounts: IdentifiedService) -> None:
    two_accounts.revoke_tokens()
    two_accounts.grant("entra/alice@azure/*", "role", READ)
    two_accounts.grant(f"group/ops@azure/{ACCOUNT}", "short", {"read": ["people"], "deny": True})
    assert reads(two_accounts) == (200, 200)
    assert reads(two_accounts, groups=["ops"]) == (403, 200)


def test_a_grant_that_names_an_account_counts_only_where_tenants_are_kept_apart(
    service: IdentifiedService,
) -> None:
    service.grant(f"entra/alice@azure/{ACCOUNT}", "all")
    assert rights(service, service.issuer.token()) == (403, 403, 403)


def test_an_identity_with_a_grant_in_no_account_is_in_the_log(
    two_accounts: IdentifiedService, caplog: pytest.LogCaptureFixture
) -> None:
    two_accounts.revoke_tokens()
    two_accounts.grant("entra/alice@azure/*", "all")
    assert not caplog.records
    two_accounts.grant("group/ops", "all")
    assert [record.args for record in caplog.records] == [("group/ops", "group/ops")]
