"""Signatures of requests and replies. Vectors: docs/protocols/table-store.md section 1.2 and 1.3."""

from __future__ import annotations

import dataclasses

import pytest

from tablegate.adapters.tablestore.wire import auth, limits
from tablegate.adapters.tablestore.wire.auth import Caller
from tablegate.adapters.tablestore.wire.errors import ServiceError
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.http.messages import Request
from tablegate.gateway.model.errors import NotAuthenticated
from tablegate.gateway.security.credentials import ANY_PLACE, Credential, Credentials, Scheme
from tests.adapters.tablestore.client import Refused, TableStoreService, signed

NOW_MS = 1_704_164_645_000  # 2024-01-02T03:04:05Z
HEADERS = {
    "x-ots-date": "2024-01-02T03:04:05.000Z",
    "x-ots-apiversion": "2015-12-31",
    "x-ots-accesskeyid": "ak",
    "x-ots-instancename": "inst",
    "x-ots-contentmd5": "1B2M2Y8AsgTpgAmY7PhCfg==",
}
V2 = {**HEADERS, "x-ots-signature": "eQciA6Z3eIwK6GdxaOO/clZVrcE="}
V4 = {
    **HEADERS,
    "x-ots-signdate": "20240102",
    "x-ots-signregion": "cn-hangzhou",
    "x-ots-signaturev4": "0PpP60+zceRL7IfW2PtmIpOi5ubcgqjktVGJHkwaXd8=",
}
SIGNING_KEY = b"ZTQ77z9vqEGlB283FbL2EbMyNBdBoFGY2acYbBbuevA="
REPLY_HEADERS = (
    ("x-ots-requestid", "0005f000-0000-0000-0000-000000000001"),
    ("x-ots-contentmd5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
    ("x-ots-contenttype", "protocol buffer"),
    ("x-ots-date", "2024-01-02T03:04:05.000Z"),
)

STRICT = Settings(auth="strict")


def credentials(**changes: object) -> Credentials:
    item = Credential(Scheme.TABLESTORE, "ak", ("sk",))
    return Credentials(STRICT, [dataclasses.replace(item, **changes)])  # type: ignore[arg-type]


def verified(headers: dict[str, str], known: Credentials | None = None, now_ms: int = NOW_MS) -> Caller:
    request = Request("POST", "/ListTable", tuple(headers.items()), b"")
    return auth.verify(request, "ListTable", known or credentials(), now_ms)


def test_requests_and_replies_are_signed_by_v2() -> None:
    caller = verified(V2)
    assert caller == Caller("ak", "inst", "shared", b"sk")
    assert auth.reply_signature(caller, "ListTable", REPLY_HEADERS) == "OTS ak:3vuJKKxZR3LU0Ns1bvIacEonshc="


def test_requests_and_replies_are_signed_by_v4() -> None:
    caller = verified(V4)
    assert caller.signing_key == SIGNING_KEY
    assert auth.reply_signature(caller, "ListTable", REPLY_HEADERS) == "OTS ak:NszYAL4TuuWSDe8kBVsx//9it2k="


def test_a_caller_is_shown_without_its_key() -> None:
    assert repr(verified(V2)) == "Caller('ak', 'inst', 'shared')"


def test_blanks_around_values_are_not_signed() -> None:
    verified({**V2, "x-ots-instancename": "  inst "})


@pytest.mark.parametrize("name", [name for name in V2 if name != "x-ots-signature"])
def test_a_header_that_is_changed_breaks_the_signature_or_is_refused_before(name: str) -> None:
    other = {
        "x-ots-date": "2024-01-02T03:04:06.000Z",
        "x-ots-contentmd5": "XUFAKrxLKna5cZ2REBfFkg==",
        "x-ots-accesskeyid": "ak2",
    }
    with pytest.raises(NotAuthenticated):
        verified({**V2, name: other.get(name, "other")})


def test_headers_that_are_added_are_signed_too() -> None:
    with pytest.raises(NotAuthenticated):
        verified({**V2, "x-ots-sdk-traceid": "abc"})


@pytest.mark.parametrize("name", V2)
def test_a_missing_header_is_named(name: str) -> None:
    with pytest.raises(ServiceError) as told:
        verified({other: value for other, value in V2.items() if other != name})
    assert (told.value.status, told.value.message) == (400, f"Missing header: '{name}'.")


@pytest.mark.parametrize(
    "date", ["yesterday", "2024-01-02", "2024-13-02T03:04:05.000Z", "2024-01-02T03:04:05.000"]
)
def test_an_invalid_date_is_named(date: str) -> None:
    with pytest.raises(ServiceError) as told:
        verified({**V2, "x-ots-date": date})
    assert told.value.message == f"Invalid date format: {date}."


def test_clock_skew_of_15_minutes_on_both_sides() -> None:
    for skew_ms in (-limits.CLOCK_SKEW_MS, limits.CLOCK_SKEW_MS):
        verified(V2, now_ms=NOW_MS + skew_ms)
    for skew_ms in (-limits.CLOCK_SKEW_MS - 1, limits.CLOCK_SKEW_MS + 1):
        with pytest.raises(ServiceError) as told:
            verified(V2, now_ms=NOW_MS + skew_ms)
        assert (told.value.status, told.value.code) == (403, "OTSAuthFailed")
        assert told.value.message == "Mismatch between system time and x-ots-date: 2024-01-02T03:04:05.000Z."


def test_a_key_of_one_instance_is_no_key_of_another() -> None:
    verified(V2, credentials(place="inst"))
    with pytest.raises(NotAuthenticated) as told:
        verified(V2, credentials(place="elsewhere"))
    assert told.value.rule == "instance"


def test_namespaces_by_instance_if_they_are_separate() -> None:
    separate = Settings(auth="strict", namespaces="separate")
    bound = Credential(Scheme.TABLESTORE, "ak", ("sk",), "inst")
    assert verified(V2, Credentials(separate, [bound])).namespace == "tablestore/inst"
    of_all = dataclasses.replace(bound, place=ANY_PLACE)
    assert verified(V2, Credentials(separate, [of_all])).namespace == "tablestore/inst"


def test_with_separate_tenants_a_key_needs_an_instance() -> None:
    separate = Settings(auth="strict", namespaces="separate")
    with pytest.raises(NotAuthenticated) as told:
        verified(V2, Credentials(separate, [Credential(Scheme.TABLESTORE, "ak", ("sk",))]))
    assert told.value.rule == "instance"


def test_a_temporary_key_needs_its_token(service: TableStoreService) -> None:
    known = credentials(session_token="tok", access_id="tablegate", secrets=("tablegate",))
    gateway = dataclasses.replace(service.gateway, credentials=known)
    temporary = service.on(gateway)
    assert temporary.post("ListTable", b"", x_ots_ststoken="tok").status == 200
    assert temporary.post("ListTable", b"", x_ots_ststoken="other").status == 403
    assert temporary.post("ListTable", b"").status == 403


def error_of(service: TableStoreService) -> Refused:
    told = messages.Error.FromString(service.last.body)
    return Refused(service.last.status, told.code, told.message)


def test_replies_carry_five_headers_and_a_signature_that_holds(service: TableStoreService) -> None:
    reply = service.post("ListTable", b"")
    headers = dict(reply.headers)
    assert set(headers) == {
        "x-ots-contentmd5",
        "x-ots-contenttype",
        "x-ots-date",
        "x-ots-requestid",
        "Authorization",
    }
    assert headers["x-ots-date"] == "2023-11-14T22:13:20.123000Z"
    caller = Caller("tablegate", "inst", "shared", b"tablegate")
    own = [(name, value) for name, value in headers.items() if name.startswith("x-ots-")]
    assert headers["Authorization"] == auth.reply_signature(caller, "ListTable", own)


def test_errors_are_signed_too(service: TableStoreService) -> None:
    reply = service.post("Nonsense", b"")
    headers = dict(reply.headers)
    caller = Caller("tablegate", "inst", "shared", b"tablegate")
    own = [(name, value) for name, value in headers.items() if name.startswith("x-ots-")]
    assert headers["Authorization"] == auth.reply_signature(caller, "Nonsense", own)


def test_without_a_known_key_nothing_can_be_signed(service: TableStoreService) -> None:
    service.post("ListTable", b"", x_ots_accesskeyid="nobody")
    assert "Authorization" not in dict(service.last.headers)
    told = error_of(service)
    assert (told.status, told.code, told.message) == (
        403,
        "OTSAuthFailed",
        "The AccessKeyID does not exist.",
    )


def test_a_wrong_secret_and_a_wrong_digest_are_refused(service: TableStoreService) -> None:
    service.post("ListTable", b"", secret="wrong")
    assert error_of(service).message == "Signature mismatch."
    service.post("ListTable", b"", x_ots_contentmd5="XUFAKrxLKna5cZ2REBfFkg==")
    assert (
        error_of(service).message
        == "Mismatch between MD5 value of request body and x-ots-contentmd5 in header."
    )


def test_only_post_is_supported(service: TableStoreService) -> None:
    reply = service.handle(Request("GET", "/ListTable", signed("ListTable", b"", service.clock.ms), b""))
    assert reply.status == 405
    assert error_of(service).message == "Only POST method for requests is supported."


def test_a_path_before_the_operation_is_not_signed(service: TableStoreService) -> None:
    """The Python client prepends any path of its endpoint, and signs only the operation."""
    headers = signed("ListTable", b"", service.clock.ms)
    assert service.handle(Request("POST", "/prefix/more/ListTable", headers, b"")).status == 200
