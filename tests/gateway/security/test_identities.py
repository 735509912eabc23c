"""Identities of trusted tokens: discovery, keys and their rotation, refused tokens, and issuers that misbehave."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.security import issuer_keys
from tablegate.gateway.security.credentials import Credentials, Scheme, Sessions
from tablegate.gateway.security.identities import BadToken, Identities, Identity
from tests.support.oidc import Issuer, running_issuer
from tests.support.waiting import wait_until

AUDIENCES = ["https://storage.azure.com", "https://account.table.core.windows.net"]


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running_issuer() as made:
        yield made


@pytest.fixture
def identities(issuer: Issuer) -> Identities:
    return Identities(Settings(oidc_issuer=(issuer.url,)))


def verify(identities: Identities, token: str, now_s: float | None = None) -> Identity:
    return identities.verify(token, AUDIENCES, time.time() if now_s is None else now_s)


def is_refused(identities: Identities, token: str) -> bool:
    try:
        verify(identities, token)
    except BadToken:
        return True
    return False


def test_a_token_names_an_identity(issuer: Issuer, identities: Identities) -> None:
    token = issuer.token(
        groups=["ops", 5, "dev"], tid="t", appid="app", scp="user_impersonation", roles=["r"]
    )
    found = verify(identities, token)
    assert found[:5] == ("alice", ("ops", "dev"), ("r",), "t", "app")
    assert found.grantees == ("entra/alice", "group/ops", "group/dev")
    assert found.principals == ("entra/alice", "group/ops", "group/dev", "role/r")
    assert found.caller_in().principals == found.principals
    assert verify(identities, issuer.token(oid=None, sub="sub/1")).object_id == "sub%2F1"
    assert verify(identities, issuer.token(aud=["x", AUDIENCES[1]])).groups == ()


@pytest.mark.parametrize(
    "forge",
    [
        Issuer.unsigned,
        Issuer.signed_with_the_public_key,
        Issuer.signed_with_a_retired_key,
        lambda issuer: issuer.token(exp=time.time() - 301),
        lambda issuer: issuer.token(exp=None),
        lambda issuer: issuer.token(exp=float("nan")),
        lambda issuer: issuer.token(exp="soon"),
        lambda issuer: issuer.token(nbf=time.time() + 301),
        lambda issuer: issuer.token(aud="https://graph.microsoft.com"),
        lambda issuer: issuer.token(aud=None),
        lambda issuer: issuer.token(iss=issuer.url + "/"),
        lambda issuer: issuer.token(iss=None),
        lambda issuer: issuer.token({"kid": "unknown"}),
        lambda issuer: issuer.token(scp="openid profile"),
        lambda issuer: issuer.token()[:-8] + "AAAAAAAA",
        lambda issuer: issuer.token(groups=["g" * 1000] * 20),
        lambda issuer: issuer.token(groups=["g"] * 1001),
        lambda issuer: issuer.token(roles=["r"] * 1001),
        lambda issuer: issuer.token(hasgroups=True),
        lambda issuer: issuer.token(_claim_names={"groups": "src1"}, _claim_sources={"src1": {}}),
        lambda issuer: "",
        lambda issuer: "a.b.c",
    ],
)
def test_tokens_that_prove_nothing(
    issuer: Issuer, identities: Identities, forge: Callable[[Issuer], str]
) -> None:
    token = forge(issuer)
    with pytest.raises(BadToken):
        verify(identities, token)


def test_the_clock_may_differ_by_five_minutes(issuer: Issuer, identities: Identities) -> None:
    verify(identities, issuer.token(exp=time.time() - 290))
    verify(identities, issuer.token(nbf=time.time() + 290))


def test_a_new_key_counts_and_the_old_one_no_longer(
    issuer: Issuer, identities: Identities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_keys, "_SOONEST_S", 0.0)
    old = issuer.token()
    verify(identities, old)
    issuer.rotate()
    wait_until(lambda: not is_refused(identities, issuer.token()))
    with pytest.raises(BadToken):
        verify(identities, old)


def test_unknown_keys_cause_no_fetch_for_each_token(
    issuer: Issuer, identities: Identities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_keys, "_SOONEST_S", 3600.0)  # a busy machine needs longer for the tokens
    for number in range(200):
        assert is_refused(identities, issuer.token({"kid": f"unknown-{number}"}))
    assert len(issuer.paths) == 2  # the discovery and the keys, at the start


def test_a_silent_issuer_delays_no_token(
    issuer: Issuer, identities: Identities, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_keys, "_SOONEST_S", 0.0)
    token = issuer.token()
    issuer.silence.clear()
    assert is_refused(identities, issuer.token({"kid": "unknown"}))
    wait_until(lambda: len(issuer.paths) == 3)  # this fetch has no answer
    assert verify(identities, token).object_id == "alice"


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/.well-known/openid-configuration", {"issuer": "https://other", "jwks_uri": "https://other/keys"}),
        ("/.well-known/openid-configuration", {}),
        ("/.well-known/openid-configuration", ["issuer"]),
        ("/.well-known/openid-configuration", "/keys"),  # a redirect
        ("/keys", {}),
        ("/keys", {"keys": []}),
        ("/keys", {"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "key-0", "alg": "HS256"}]}),
        ("/keys", {"keys": "x" * (2 << 20)}),
    ],
)
def test_issuers_that_misbehave(issuer: Issuer, path: str, answer: Any) -> None:
    issuer.answers[path] = answer
    assert is_refused(Identities(Settings(oidc_issuer=(issuer.url,))), issuer.token())


def test_an_issuer_cannot_name_the_identities_of_another_one(issuer: Issuer) -> None:
    with running_issuer() as other:
        other.rotate()
        both = Identities(Settings(oidc_issuer=(issuer.url, f"partner={other.url}")))
        assert verify(both, issuer.token(oid="partner/alice")).grantee == "entra/partner%2Falice"
        found = verify(both, other.token(groups=["ops"], roles=["Storage Table Data Contributor"]))
        assert found.grantees == ("entra/partner/alice", "group/partner/ops")
        assert found.roles == ("partner/Storage Table Data Contributor",)
        with pytest.raises(BadToken):
            verify(both, other.token(iss=issuer.url))


@pytest.mark.parametrize(
    "entries",
    [
        ("http://example.com",),
        ("ftp://127.0.0.1",),
        ("https://",),
        ("https://user:secret@example.com",),
        ("example.com",),
        ("a b=https://example.com",),
        ("https://one.example", "https://two.example"),
        ("a=https://one.example", "a=https://two.example"),
        ("a=https://one.example", "https://one.example"),
    ],
)
def test_settings_that_are_refused(entries: tuple[str, ...]) -> None:
    with pytest.raises(BadSetting):
        Identities(Settings(oidc_issuer=entries))


def test_there_are_no_sessions_without_a_secret_key() -> None:
    settings = Settings(database="postgresql://localhost/tablegate")
    sessions = Sessions(Identities(settings), Credentials(settings))
    assert sessions.find(Scheme.AWS, "ASIA" + "A" * 16, "AAAA", now_s=0) is None
