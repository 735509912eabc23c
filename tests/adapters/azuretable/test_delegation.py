"""User delegation: keys, signatures by them with each field, their revocation, and attempts to do more than is allowed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree

import pytest

from tablegate.gateway.observability.audit import AuditScope, AuditTrail, KeyForm
from tests.adapters.azuretable.client import code_of
from tests.adapters.azuretable.identified import ACCOUNT, KEY, VERSION, IdentifiedService, identified_service
from tests.support.audit_lines import Gathering
from tests.support.tables import each_row

ROW = "/people(PartitionKey='p',RowKey='r')"
KEY_PATH = "/?restype=service&comp=userdelegationkey"
FAILED = (403, "AuthenticationFailed")


@pytest.fixture(scope="module")
def opened() -> Iterator[IdentifiedService]:
    with identified_service() as made:
        yield made


@pytest.fixture
def service(opened: IdentifiedService) -> IdentifiedService:
    opened.revoke_all()
    return opened


def moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def key_info(start: str | None = None, expiry: str | None = None, more: str = "") -> bytes:
    times = f"<Start>{start or moment(-60)}</Start><Expiry>{expiry or moment(3600)}</Expiry>"
    return f"<KeyInfo>{times}{more}</KeyInfo>".encode()


def key_of(
    service: IdentifiedService, token: str | None = None, more: str = "", **times: str
) -> dict[str, str]:
    """The members of a user delegation key."""
    reply = service.send(
        "POST", KEY_PATH, key_info(**times, more=more), token or service.issuer.token(tid="t")
    )
    assert reply.status == 200, reply
    return {child.tag: child.text or "" for child in ElementTree.fromstring(reply.body)}


def signed(key: Mapping[str, str], account: str = ACCOUNT, **changed: str) -> str:
    """The query of a signature for reading the table `people`, computed from the published order of fields."""
    given = {
        "sp": "r", "se": key["SignedExpiry"], "skoid": key["SignedOid"], "sktid": key["SignedTid"],
        "skt": key["SignedStart"], "ske": key["SignedExpiry"], "sks": key["SignedService"],
        "skv": key["SignedVersion"], "sv": VERSION, "tn": "people", **changed,
    }  # fmt: skip
    given = {name: text for name, text in given.items() if text}
    resource = f"/table/{account}/{given['tn'].lower()}"
    names = (
        "sp", "st", "se", "/", "skoid", "sktid", "skt", "ske", "sks", "skv", "skdutid", "sduoid", "sip", "spr", "sv",
        "spk", "srk", "epk", "erk",
    )  # fmt: skip
    text = "\n".join(resource if name == "/" else given.get(name, "") for name in names)
    digest = hmac.new(base64.b64decode(key["Value"]), text.encode(), hashlib.sha256).digest()
    return urlencode({**given, "sig": base64.b64encode(digest).decode()})


def get(service: IdentifiedService, query: str, token: str | None = None, path: str = ROW) -> tuple[int, str]:
    reply = service.send("GET", f"{path}?{query}", token=token)
    return (reply.status, "") if reply.status < 400 else code_of(reply)


def test_an_issued_key_signs_requests(service: IdentifiedService) -> None:
    service.grant("entra/alice", "short", {"read": ["people"], "query": ["people"], "scan": ["people"]})
    key = key_of(service)
    assert {**key, "Value": ""} == {
        "SignedOid": "alice", "SignedTid": "t", "SignedStart": key["SignedStart"],
        "SignedExpiry": key["SignedExpiry"], "SignedService": "t", "SignedVersion": VERSION, "Value": "",
    }  # fmt: skip
    assert len(base64.b64decode(key["Value"])) == 32
    assert get(service, signed(key))[0] == 200
    assert get(service, signed(key), path="/people()")[0] == 200
    assert get(service, signed(key, spr="https", sip="127.0.0.1"))[0] == 200
    assert get(service, signed(key, spk="p", srk="r", epk="p", erk="r"))[0] == 200
    assert get(service, signed(key, spk="q", epk="r"))[0] == 404
    assert get(service, signed(key, sip="10.0.0.1"))[1] == "AuthorizationSourceIPMismatch"


def test_the_issue_of_a_key_is_in_the_audit_without_settings(service: IdentifiedService) -> None:
    """A key signs for days without a token, so its issue is recorded as that of temporary keys of AWS is."""
    sink = Gathering()
    trail = AuditTrail(sink, KeyForm(True, ""), AuditScope(writes=False, requests=False))
    trail.start()
    for grants in (False, True):
        if grants:
            service.grant("entra/alice", "short", {"read": ["people"]})
        reply = service.send("POST", KEY_PATH, key_info(), service.issuer.token(tid="t"))
        assert (reply.status == 200) is grants
        trail.record_request(service.last, reply, service.dialect, service.dialect.operation(service.last))
    trail.close()
    assert [(line["event"], line["who"], line["operation"], line["result"]) for line in sink.lines] == [
        ("refusal", "entra/alice", "POST Service", "AuthorizationPermissionMismatch"),
        ("sign-in", "entra/alice", "POST Service", 200),
    ]


def test_with_separate_tenants_a_signature_counts_in_the_account_of_the_grants() -> None:
    """Only grants of this account count, when the key is issued and when it is used."""
    with identified_service(namespaces="separate") as apart:
        token = apart.issuer.token(aud=f"https://{ACCOUNT}.table.core.windows.net", tid="t")
        for grantee in ("entra/alice", "entra/alice@azure/otherteam"):
            apart.grant(grantee, "all")
        assert code_of(apart.send("POST", KEY_PATH, key_info(), token))[0] == 403
        grant = apart.grant(f"entra/alice@azure/{ACCOUNT}", "short", {"read": ["people"]})
        signature = signed(key_of(apart, token))
        assert get(apart, signature)[0] == 200
        apart.revoke(grant)
        assert get(apart, signature) == (403, "AuthorizationPermissionMismatch")


def test_only_an_identity_gets_a_key(service: IdentifiedService) -> None:
    assert code_of(service.send("POST", KEY_PATH, key_info(), key=KEY)) == (403, "AuthorizationFailure")
    refused = service.send("POST", KEY_PATH, key_info(), service.issuer.token())
    assert code_of(refused) == (403, "AuthorizationPermissionMismatch")  # without any grant
    service.grant("entra/alice", "short", {"read": ["people"]})
    assert service.send("POST", KEY_PATH, key_info(), service.issuer.token()).status == 200
    old = {"x-ms-version": "2025-01-05"}
    assert code_of(service.send("POST", KEY_PATH, key_info(), service.issuer.token(), old))[0] == 400
    path = f"{KEY_PATH}&{signed(key_of(service))}"
    assert service.send("POST", path, key_info()).status == 403


@pytest.mark.parametrize(("start", "expiry"), [(0, "soon"), (0, -1), (0, 8 * 24 * 3600), (100, 50)])
def test_times_that_are_refused(service: IdentifiedService, start: int, expiry: int | str) -> None:
    """Times are in seconds from now."""
    service.grant("entra/alice", "all")
    body = key_info(moment(start), moment(expiry) if isinstance(expiry, int) else expiry)
    reply = service.send("POST", KEY_PATH, body, service.issuer.token())
    assert code_of(reply) == (400, "InvalidXmlDocument")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<KeyInfo/>",
        b"<Other><Expiry>2099-01-01T00:00:00Z</Expiry></Other>",
        b'<!DOCTYPE a [<!ENTITY b "c">]><KeyInfo><Expiry>&b;</Expiry></KeyInfo>',
    ],
)
def test_documents_that_are_refused(service: IdentifiedService, body: bytes) -> None:
    service.grant("entra/alice", "all")
    reply = service.send("POST", KEY_PATH, body, service.issuer.token())
    assert code_of(reply) == (400, "InvalidXmlDocument")


def test_a_signature_ends_with_the_grant(service: IdentifiedService) -> None:
    grant = service.grant("entra/alice", "short", {"read": ["people"]})
    query = signed(key_of(service))
    assert get(service, query)[0] == 200
    service.revoke(grant)
    assert get(service, query) == (403, "AuthorizationPermissionMismatch")


def test_groups_and_roles_of_the_token_count_later(service: IdentifiedService) -> None:
    """Each credential of a token: tests/across_dialects/test_principals_of_derived_credentials.py."""
    grant = service.grant("group/ops", "all")
    token = service.issuer.token(groups=["ops"])
    query = signed(key_of(service, token))
    assert get(service, query)[0] == 200
    service.revoke(grant)
    assert get(service, query) == (403, "AuthorizationPermissionMismatch")
    token = service.issuer.token(roles=["Storage Table Data Contributor"])
    assert get(service, signed(key_of(service, token)))[0] == 200


def test_another_server_key_ends_all_keys(service: IdentifiedService) -> None:
    service.grant("entra/alice", "all")
    query = signed(key_of(service))
    with identified_service(secret_key="another key of the server") as other:
        other.grant("entra/alice", "all")
        assert get(other, query) == FAILED


@each_row(
    "changed",
    [
        {"skoid": "bob"}, {"sktid": "u"}, {"skt": -120}, {"ske": 7200}, {"sks": "b"},
        {"skv": "2025-07-05"}, {"sktid": ""}, {"sks": ""}, {"skv": "2020-02-10"}, {"sv": "2020-02-10"}, {"sv": "x"},
        {"se": ""}, {"se": -1}, {"st": 60}, {"sp": ""}, {"sp": "rx"}, {"si": "policy"},
        {"ske": 30 * 24 * 3600}, {"skdutid": "t"}, {"srk": "r"}, {"spr": "ftp"},
    ],
)  # fmt: skip
def test_signatures_with_a_wrong_field(service: IdentifiedService, changed: dict[str, str | int]) -> None:
    """Times are in seconds from now."""
    fields = {name: moment(value) if isinstance(value, int) else value for name, value in changed.items()}
    service.grant("entra/alice", "all")
    service.grant("entra/bob", "all")
    assert get(service, signed(key_of(service), **fields))[0] == 403


def test_a_field_changed_after_signing(service: IdentifiedService) -> None:
    service.grant("entra/alice", "all")
    query = signed(key_of(service))
    for old, new in (
        ("sp=r", "sp=raud"),
        ("tn=people", "tn=orders"),
        ("sv=", "epk=z&sv="),
        ("sig=", "sig=A"),
    ):
        assert get(service, query.replace(old, new), path="/people()") == FAILED
    assert get(service, query, token=service.issuer.token()) == FAILED  # a token that nothing asks for


def test_a_signature_for_one_user_needs_the_token_of_that_user(service: IdentifiedService) -> None:
    service.grant("entra/alice", "short", {"read": ["people"]})
    query = signed(key_of(service), sduoid="bob")
    token = service.issuer.token
    assert get(service, query, token(oid="bob", tid="t"))[0] == 200
    assert get(service, query)[0] == 401
    assert get(service, query, token(oid="bob", tid="u")) == FAILED
    assert get(service, query, token(oid="alice", tid="t")) == FAILED
    assert get(service, query, token(oid="bob", tid="t", exp=1))[0] == 401
    abroad = key_of(service, more="<DelegatedUserTid>u</DelegatedUserTid>")
    query = signed(abroad, sduoid="bob", skdutid="u")
    assert get(service, query, token(oid="bob", tid="u"))[0] == 200
    assert get(service, query, token(oid="bob", tid="t")) == FAILED
    assert get(service, signed(abroad, skdutid="u")) == FAILED


# Attempts to do more than signature and grants allow together

REQUESTS: Mapping[str, tuple[str, str, Any, frozenset[str], frozenset[str]]] = {
    # name: method, path, body, letters that a signature needs, actions that grants need
    "get": ("GET", ROW, b"", frozenset("r"), frozenset({"read"})),
    "query": ("GET", "/people()", b"", frozenset("r"), frozenset({"query", "scan"})),
    "insert": (
        "POST",
        "/people",
        {"PartitionKey": "p", "RowKey": "new"},
        frozenset("a"),
        frozenset({"write"}),
    ),
    "upsert": ("PUT", ROW, {"A": 1}, frozenset("au"), frozenset({"write"})),
    "update": ("MERGE", ROW, {"A": 1}, frozenset("u"), frozenset({"write"})),
    "delete": (
        "DELETE",
        "/people(PartitionKey='p',RowKey='new')",
        b"",
        frozenset("d"),
        frozenset({"delete"}),
    ),
    "other get": ("GET", ROW.replace("people", "orders"), b"", frozenset("x"), frozenset()),
    "acl": ("GET", "/people?comp=acl", b"", frozenset("x"), frozenset()),
    "tables": ("GET", "/Tables", b"", frozenset("x"), frozenset()),
    "drop": ("DELETE", "/Tables('people')", b"", frozenset("x"), frozenset()),
    "properties": ("GET", "/?restype=service&comp=properties", b"", frozenset("x"), frozenset()),
}
GRANTS: tuple[tuple[str, ...], ...] = (
    (),
    ("read",),
    ("query", "scan"),
    ("write",),
    ("delete",),
    ("read", "write"),
)
LETTERS = ("r", "a", "u", "d", "ra", "au", "raud")


def test_no_request_passes_that_signature_or_grants_forbid(service: IdentifiedService) -> None:
    """462 combinations. A request passes exactly if both the signature and the grants of the identity allow it."""
    number = passed = 0
    for actions in GRANTS:
        service.revoke_all()
        key_grant = service.grant("entra/alice", "short", {"read": ["people"]})
        key = key_of(service)
        service.revoke(key_grant)
        if actions:
            service.grant("entra/alice", "short", {action: ["people"] for action in actions})
        for letters, name in itertools.product(LETTERS, REQUESTS):
            method, path, body, needed, wanted = REQUESTS[name]
            headers = {"If-Match": "*"} if name in ("update", "delete") else {}
            mark = "&" if "?" in path else "?"
            reply = service.send(method, f"{path}{mark}{signed(key, sp=letters)}", body, headers=headers)
            is_allowed = needed <= set(letters) and wanted <= set(actions)
            assert (reply.status < 400 or reply.status in (404, 409)) is is_allowed, (
                actions,
                letters,
                name,
                reply,
            )
            if not is_allowed:
                assert reply.status == 403, (actions, letters, name, reply)
                info = service.dialect.request_info(service.last, reply)
                assert info.is_refusal
            number, passed = number + 1, passed + is_allowed
    assert (number, passed > 0) == (462, True)
