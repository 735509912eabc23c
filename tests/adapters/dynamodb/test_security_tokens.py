"""AssumeRoleWithWebIdentity: requests that are refused, and the temporary keys of an identity."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest

from tablegate.adapters.dynamodb import security_tokens
from tablegate.gateway.http import Request
from tablegate.gateway.security.identities import Identity
from tests.adapters.azuretable.auth.identified import IdentifiedService, identified_service

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
    found = find(members["AccessKeyId"], members["SessionToken"], now_ms)
    assert found is not None
    assert (found.secrets, found.identity.access_id) == ((members["SecretAccessKey"],), "alice")
    assert found.policy is not None
    assert find(members["AccessKeyId"], members["SessionToken"], now_ms + 901_000) is None
    assert find(members["AccessKeyId"], members["SessionToken"][:-8] + "AAAAAAA=", now_ms) is None
    assert find(members["AccessKeyId"], "", now_ms) is None
    assert find("ASIA" + "A" * 16, members["SessionToken"], now_ms) is None
    assert find("teamdata", members["SessionToken"], now_ms) is None
    with identified_service(secret_key="another key of the server") as other:
        assert (
            other.gateway.credentials.find_key(members["AccessKeyId"], members["SessionToken"], now_ms)
            is None
        )


def test_the_rights_are_those_of_the_time_of_use(service: IdentifiedService) -> None:
    session = service.gateway.sessions.issue(Identity("alice", ("ops",)), 900, time.time())
    assert session is not None

    def statements() -> int:
        found = service.gateway.credentials.find_key(
            session.access_id, session.token, int(time.time() * 1000)
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
    assert request.facts is not None
    assert request.facts.error_code == code
    assert request.facts.is_refusal is (code == "InvalidIdentityToken")


def test_forms_that_are_not_readable(service: IdentifiedService) -> None:
    for body in (b"", b"\xff=\xff", b"&".join([b"a=b"] * 60), b"Action=%FF"):
        assert answer(service, Request("POST", "/", FORM, body, secure=True))[0] == 400


def test_tokens_need_tls_and_a_shared_namespace(service: IdentifiedService) -> None:
    status, members = answer(service, replace(form(service), secure=False))
    assert (status, members["Code"]) == (403, "AccessDenied")
    with identified_service(namespaces="separate") as apart:
        status, members = answer(apart, form(apart))
        assert (status, members["Code"]) == (403, "AccessDenied")
