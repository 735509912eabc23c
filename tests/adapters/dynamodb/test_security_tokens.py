"""AssumeRoleWithWebIdentity and GetSessionToken: requests that are refused, and the temporary keys of an identity or a key."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials

from tablegate.adapters.dynamodb import security_tokens
from tablegate.adapters.dynamodb.wire import auth
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.control.documents import BadRequest
from tablegate.gateway.http.messages import Request
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL, WrittenGrant
from tablegate.gateway.security.identities import Identity
from tests.adapters.azuretable.identified import IdentifiedService, identified_service

AUDIENCE = "sts.amazonaws.com"
ROLE = "arn:aws:iam::000000000000:role/people"
FORM = (("content-type", "application/x-www-form-urlencoded; charset=utf-8"),)


@pytest.fixture(scope="module")
def service() -> Iterator[IdentifiedService]:
    with identified_service() as made:
        yield made


def form(service: IdentifiedService, **changed: str | None) -> Request:
    given = {
        "Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": ROLE, "RoleSessionName": "tests",
        "WebIdentityToken": service.issuer.token(aud=AUDIENCE), **changed,
    }  # fmt: skip
    body = urlencode({name: text for name, text in given.items() if text is not None}).encode()
    return Request("POST", "/", FORM, body, secure=True)


def answer(service: IdentifiedService, request: Request) -> tuple[int, dict[str, str]]:
    """The status and the members of the answer's document."""
    assert security_tokens.matches(request)
    reply = security_tokens.answer(request, service.gateway)
    return reply.status, dict(re.findall(r"<(\w+)>([^<]*)</", reply.body.decode()))


def test_keys_of_an_identity(service: IdentifiedService) -> None:
    status, members = answer(service, form(service, DurationSeconds="900"))
    assert status == 200
    assert members["SubjectFromWebIdentityToken"] == "alice"
    assert members["Arn"] == "arn:aws:sts::000000000000:assumed-role/people/tests"
    now_ms = int(time.time() * 1000)
    find = service.gateway.credentials.find_key
    found = find(Scheme.AWS, members["AccessKeyId"], members["SessionToken"], now_ms)
    assert found is not None
    assert (found.secrets, found.access_id) == ((members["SecretAccessKey"],), "entra/alice")
    assert (found.identity.scheme, found.identity.access_id) == ("entra", "alice")
    assert found.policy is not None
    assert find(Scheme.AWS, members["AccessKeyId"], members["SessionToken"], now_ms + 901_000) is None
    assert find(Scheme.AWS, members["AccessKeyId"], members["SessionToken"][:-8] + "AAAAAAA=", now_ms) is None
    assert find(Scheme.AWS, members["AccessKeyId"], "", now_ms) is None
    assert find(Scheme.AWS, "ASIA" + "A" * 16, members["SessionToken"], now_ms) is None
    assert find(Scheme.AWS, "teamdata", members["SessionToken"], now_ms) is None
    with identified_service(secret_key="another key of the server") as other:
        assert (
            other.gateway.credentials.find_key(
                Scheme.AWS, members["AccessKeyId"], members["SessionToken"], now_ms
            )
            is None
        )


def test_the_rights_are_those_of_the_time_of_use(service: IdentifiedService) -> None:
    session = service.gateway.sessions.issue(Identity("alice", ("ops",)), 900, time.time())
    assert session is not None

    def statements() -> int:
        found = service.gateway.credentials.find_key(
            Scheme.AWS, session.access_id, session.token, int(time.time() * 1000)
        )
        return len(found.policy.statements)

    none = statements()
    grant = service.grant("group/ops", "short", {"read": ["people"]})
    assert statements() > none
    service.revoke(grant)
    assert statements() == none


@pytest.mark.parametrize(
    ("claims", "changed", "status", "code"),
    [
        ({"aud": "https://storage.azure.com"}, {}, 400, "InvalidIdentityToken"),
        ({"exp": 1}, {}, 400, "InvalidIdentityToken"),
        ({"oid": None}, {}, 400, "InvalidIdentityToken"),
        ({"iss": "https://other"}, {}, 400, "InvalidIdentityToken"),
        ({"groups": [f"group {n}" for n in range(900)]}, {}, 400, "PackedPolicyTooLarge"),
        ({}, {"WebIdentityToken": "a.b.c"}, 400, "InvalidIdentityToken"),
        ({}, {"WebIdentityToken": None}, 400, "ValidationError"),
        ({}, {"RoleArn": "arn:aws:iam::1:role/x"}, 400, "ValidationError"),
        ({}, {"RoleSessionName": "<b>"}, 400, "ValidationError"),
        ({}, {"DurationSeconds": "899"}, 400, "ValidationError"),
        ({}, {"DurationSeconds": "43201"}, 400, "ValidationError"),
        ({}, {"DurationSeconds": "-1"}, 400, "ValidationError"),
        ({}, {"Action": "GetCallerIdentity"}, 400, "InvalidAction"),
        ({}, {"Action": "<b>"}, 400, "InvalidAction"),
        ({}, {"Action": None}, 400, "InvalidAction"),
        ({}, {"Policy": "x" * 70_000}, 413, "RequestEntityTooLarge"),
    ],
)
def test_requests_that_are_refused(
    service: IdentifiedService, claims: dict[str, Any], changed: dict[str, str | None], status: int, code: str
) -> None:
    token = service.issuer.token(**{"aud": AUDIENCE, **claims})
    request = form(service, **{"WebIdentityToken": token, **changed})
    answered, members = answer(service, request)
    assert (answered, members["Code"]) == (status, code)
    assert request.info is not None
    assert request.info.error_code == code
    assert request.info.is_refusal is (code == "InvalidIdentityToken")


def test_forms_that_are_not_readable(service: IdentifiedService) -> None:
    for body in (b"", b"\xff=\xff", b"&".join([b"a=b"] * 60), b"Action=%FF"):
        assert answer(service, Request("POST", "/", FORM, body, secure=True))[0] == 400


def test_a_member_is_given_once(service: IdentifiedService) -> None:
    request = form(service)
    for more in (b"&RoleSessionName=other", b"&Action=GetSessionToken", b"&WebIdentityToken=a.b.c"):
        status, members = answer(service, replace(request, body=request.body + more))
        assert (status, members["Code"]) == (400, "MalformedInput")


def test_tokens_need_tls(service: IdentifiedService) -> None:
    status, members = answer(service, replace(form(service), secure=False))
    assert (status, members["Code"]) == (403, "AccessDenied")


# GetSessionToken

STORED = Credential(Scheme.AWS, "STORED", ("a secret",), place="123456789012")


@pytest.fixture(scope="module")
def apart() -> Iterator[IdentifiedService]:
    """A server whose accounts are kept apart, with two keys of different accounts."""
    with identified_service(namespaces="separate") as made:
        made.store.add(STORED, [WrittenGrant("short", '{"read": ["people"]}')])
        made.store.add(Credential(Scheme.AWS, "OTHER", ("another",), place="210987654321"), [ALL])
        made.reload()
        yield made


def role_in(account: str) -> str:
    return f"arn:aws:iam::{account}:role/people"


def test_with_separate_accounts_a_grant_names_the_account(apart: IdentifiedService) -> None:
    mine, other = STORED.place, "210987654321"

    def status_and_code(account: str) -> tuple[int, str]:
        status, members = answer(apart, form(apart, RoleArn=role_in(account)))
        return status, members.get("Code", "")

    refused = 403, "AccessDenied"
    for grantee in (
        "entra/alice",
        "entra/bob@aws/*",
        f"entra/alice@azure/{mine}",
        "entra/alice@tablestore/*",
    ):
        apart.grant(grantee, "all")
    assert (status_and_code(mine), status_and_code(other)) == (refused, refused)
    grant = apart.grant(f"entra/alice@aws/{mine}", "short", {"read": ["people"]})
    assert (status_and_code(mine), status_and_code(other)) == ((200, ""), refused)
    members = keys_of(apart, form(apart, RoleArn=role_in(mine)))
    now_ms = int(time.time() * 1000)
    of_session = members["AccessKeyId"], members["SecretAccessKey"], "dynamodb", members["SessionToken"]
    request = signed_form(*of_session)
    caller = auth.verify(request, apart.gateway.credentials, now_ms)
    assert (caller.access_id, caller.namespace) == ("entra/alice", f"aws/{mine}/us-east-1")
    assert request.authorization is not None
    assert request.authorization.identity.arn == f"arn:aws:iam::{mine}:user/entra/alice"
    assert len(request.authorization.policy.statements) == 1
    apart.revoke(grant)
    with pytest.raises(ServiceError, match="security token"):
        auth.verify(request, apart.gateway.credentials, now_ms)
    apart.grant("entra/alice@aws/*", "short", {"read": ["people"]})
    assert (status_and_code(mine), status_and_code(other)) == ((200, ""), (200, ""))
    apart.revoke_tokens()


def test_sessions_of_no_account_end_where_accounts_are_kept_apart(apart: IdentifiedService) -> None:
    """Those that were issued before. Also, where each key has tables of its own, an identity has none."""
    apart.grant("entra/alice@aws/*", "all")
    apart.grant("entra/alice@tablestore/here", "all")
    now_ms = int(time.time() * 1000)

    def found(made: IdentifiedService, account: str, scheme: Scheme, instance: str = "") -> bool:
        session = made.gateway.sessions.issue(Identity("alice"), 900, time.time(), account)
        assert session is not None
        find = made.gateway.credentials.find_key
        return find(scheme, session.access_id, session.token, now_ms, instance) is not None

    assert found(apart, STORED.place, Scheme.AWS)
    assert not found(apart, "", Scheme.AWS)
    assert found(apart, STORED.place, Scheme.TABLESTORE, "here")
    assert not found(apart, STORED.place, Scheme.TABLESTORE, "there")
    assert not found(apart, STORED.place, Scheme.TABLESTORE)
    apart.revoke_tokens()
    with identified_service(namespaces="keys") as of_keys:
        of_keys.grant("entra/alice@aws/*", "all")
        assert not found(of_keys, STORED.place, Scheme.AWS)


@pytest.mark.parametrize("grantee", ["entra/alice@aw/1", "group/ops@/x", "entra/alice@azure/a/b"])
def test_grants_that_name_no_account(service: IdentifiedService, grantee: str) -> None:
    with pytest.raises(BadRequest, match="names no account"):
        service.grant(grantee, "all")


def signed_form(
    access_id: str = STORED.access_id,
    secret: str = STORED.secrets[0],
    service_name: str = "sts",
    token: str = "",
    **members: str,
) -> Request:
    """GetSessionToken, signed by boto3's signer."""
    body = urlencode({"Action": "GetSessionToken", "Version": "2011-06-15", **members})
    request = AWSRequest("POST", "https://host/", {"Host": "host", **dict(FORM)}, body.encode())
    credentials = BotoCredentials(access_id, secret, token or None)
    SigV4Auth(credentials, service_name, "us-east-1").add_auth(request)
    headers = tuple((name.lower(), value) for name, value in request.headers.items())
    return Request("POST", "/", headers, body.encode(), secure=True)


def keys_of(apart: IdentifiedService, request: Request) -> dict[str, str]:
    status, members = answer(apart, request)
    assert status == 200, members
    return members


def test_temporary_keys_of_a_stored_key(apart: IdentifiedService) -> None:
    """They have the account, the rights and the quotas of the key, and end with its secret."""
    members = keys_of(apart, signed_form(DurationSeconds="900"))
    now_ms = int(time.time() * 1000)
    find = apart.gateway.credentials.find_key

    def found(at_ms: int = now_ms) -> Credential | None:
        return find(Scheme.AWS, members["AccessKeyId"], members["SessionToken"], at_ms)

    session = found()
    assert session is not None
    assert (session.access_id, session.place) == (STORED.access_id, STORED.place)
    assert (session.secrets, session.identity) == ((members["SecretAccessKey"],), STORED.identity)
    stored = apart.gateway.credentials.find(Scheme.AWS, STORED.access_id)
    assert stored is not None
    assert session.policy is stored.policy
    keys = members["AccessKeyId"], members["SecretAccessKey"], "dynamodb", members["SessionToken"]
    caller = auth.verify(signed_form(*keys), apart.gateway.credentials, now_ms)
    assert (caller.access_id, caller.namespace) == (STORED.access_id, "aws/123456789012/us-east-1")
    assert found(now_ms + 901_000) is None
    apart.gateway.credentials.replace([replace(STORED, secrets=("rotated",))])
    rotated = found()
    assert rotated is not None
    assert rotated.secrets != session.secrets
    apart.gateway.credentials.replace([])
    assert found() is None
    apart.reload()


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"secret": "wrong"}, "SignatureDoesNotMatch"),
        ({"service_name": "dynamodb"}, "SignatureDoesNotMatch"),
        ({"access_id": "ABSENT"}, "InvalidClientTokenId"),
        ({"access_id": "ASIA" + "A" * 16, "token": "AAAA"}, "InvalidClientTokenId"),
        ({"token": "AAAA"}, "InvalidClientTokenId"),
        ({"SerialNumber": "arn:aws:iam::123456789012:mfa/me", "TokenCode": "123456"}, "AccessDenied"),
        ({"DurationSeconds": "899"}, "ValidationError"),
        ({"DurationSeconds": "129601"}, "ValidationError"),
    ],
)
def test_session_tokens_that_are_refused(
    apart: IdentifiedService, changed: dict[str, str], code: str
) -> None:
    request = signed_form(**changed)
    status, members = answer(apart, request)
    assert (status, members["Code"]) == (400 if code == "ValidationError" else 403, code)
    assert request.info is not None
    assert request.info.is_refusal is (code != "ValidationError")


def test_session_tokens_need_a_stored_key_and_tls(apart: IdentifiedService) -> None:
    assert answer(apart, signed_form(DurationSeconds="129600"))[0] == 200
    unsigned = replace(signed_form(), headers=FORM)
    assert answer(apart, unsigned)[1]["Code"] == "MissingAuthenticationToken"
    changed = signed_form(DurationSeconds="900")
    changed = replace(changed, body=changed.body.replace(b"900", b"901"))
    assert answer(apart, changed)[1]["Code"] == "SignatureDoesNotMatch"
    assert answer(apart, replace(signed_form(), secure=False))[1]["Code"] == "AccessDenied"
    members = keys_of(apart, signed_form())
    of_session = members["AccessKeyId"], members["SecretAccessKey"], "sts", members["SessionToken"]
    status, members = answer(apart, signed_form(*of_session))
    assert (status, members["Code"]) == (403, "AccessDenied")
