"""Authentication: Shared Key, Shared Key Lite, signatures in the query, bearer tokens. Each refusal has its code."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.security.credentials import DEV_CREDENTIALS, Credentials
from tests.adapters.azuretable.client import ACCOUNT, KEY, OTHER, AzureTableService, code_of, sign
from tests.support.clock import Clock
from tests.support.tables import each_row

FAILED = (403, "AuthenticationFailed")


def with_headers(request: Request, **changed: str) -> Request:
    headers = {**dict(request.headers), **{name.replace("_", "-"): value for name, value in changed.items()}}
    return replace(request, headers=tuple((name, value) for name, value in headers.items() if value))


# Shared Key


def test_shared_key(service: AzureTableService) -> None:
    assert service.send("GET", "/Tables").status == 200


@pytest.mark.parametrize("key", [base64.b64decode(secret) for secret in OTHER.secrets])
@pytest.mark.parametrize("lite", [False, True])
def test_both_keys_of_an_account_count(service: AzureTableService, key: bytes, lite: bool) -> None:
    headers = {"x-ms-date": service.now}
    authorization = sign(key, "GET", "/otheraccount/Tables", headers, "otheraccount", lite)
    request = service.request(
        "GET", "/Tables", headers={"Authorization": authorization}, base="/otheraccount"
    )
    assert service.handle(request).status == 200


def test_the_date_header_counts_where_there_is_no_x_ms_date(service: AzureTableService) -> None:
    headers = {"Date": service.now}
    authorization = sign(KEY, "GET", f"/{ACCOUNT}/Tables", headers)
    request = service.request(
        "GET", "/Tables", headers={**headers, "x-ms-date": "", "Authorization": authorization}
    )
    assert service.handle(request).status == 200


def test_a_signature_covers_method_target_and_headers(service: AzureTableService) -> None:
    service.create()
    good = service.request("POST", "/people", {"PartitionKey": "p", "RowKey": "r"})
    for changed in (
        replace(good, method="PUT"),
        replace(good, target=good.target.replace("people", "peoplf")),
        replace(good, target=good.target + "?comp=acl"),
        with_headers(good, content_type="application/json;odata=nometadata"),
        with_headers(good, content_md5="AAAA"),
        with_headers(good, x_ms_date="Tue, 14 Nov 2023 22:13:21 GMT"),
    ):
        assert code_of(service.handle(changed)) == FAILED
    assert service.handle(with_headers(good, x_ms_client_request_id="x", accept="*/*")).status == 201
    assert service.handle(replace(good, target=good.target + "?timeout=5")).status == 409


def test_a_signature_covers_the_comp_parameter_alone_of_the_query(service: AzureTableService) -> None:
    service.create()
    assert service.send("GET", "/people?comp=acl&timeout=30").status == 200


def test_a_signature_covers_the_path_as_it_was_sent(service: AzureTableService) -> None:
    service.create()
    service.insert("people", "a b", "c")
    for spelling in ("a%20b", "a b", "%61%20b"):
        assert service.send("GET", f"/people(PartitionKey='{spelling}',RowKey='c')").status == 200


@pytest.mark.parametrize(
    ("seconds", "good"), [(0, True), (890, True), (-890, True), (910, False), (-910, False)]
)
def test_a_signature_is_good_for_a_quarter_of_an_hour(
    service: AzureTableService, clock: Clock, seconds: int, good: bool
) -> None:
    request = service.request("GET", "/Tables")
    clock.advance(seconds)
    reply = service.handle(request)
    assert reply.status == 200 if good else code_of(reply) == FAILED


@pytest.mark.parametrize(
    "authorization",
    [
        "SharedKey",
        "SharedKey devstoreaccount1",
        "SharedKey devstoreaccount1:",
        "SharedKey devstoreaccount1:!!!!",
        "SharedKey otheraccount:AAAA",
        "SharedKeyHeavy devstoreaccount1:AAAA",
        "Basic AAAA",
        "sharedkey \xff:\xff",
    ],
)
def test_authorization_that_proves_nothing(service: AzureTableService, authorization: str) -> None:
    assert code_of(service.send("GET", "/Tables", headers={"Authorization": authorization})) == FAILED


@pytest.mark.parametrize("date", ["", "yesterday", "2023-11-14", "Tue, 99 Nov 2023 22:13:20 GMT"])
def test_a_date_that_is_none(service: AzureTableService, date: str) -> None:
    assert code_of(service.send("GET", "/Tables", headers={"x-ms-date": date})) == FAILED


def test_an_unknown_account_is_refused(service: AzureTableService) -> None:
    request = service.request("GET", "/Tables", base="/stranger")
    assert code_of(service.handle(request)) == FAILED


def test_a_request_without_authorization_gets_401(service: AzureTableService) -> None:
    reply = service.handle(with_headers(service.request("GET", "/Tables"), authorization=""))
    assert code_of(reply) == (401, "NoAuthenticationInformation")
    assert dict(reply.headers)["WWW-Authenticate"].startswith("Bearer authorization_uri=https://login")


# Shared access signatures


def service_sas(sign_with: bytes = KEY, **parameters: str) -> str:
    """The query of a service SAS, by the published string to sign."""
    values = {"sv": "2019-02-02", "tn": "people", "sp": "raud", "se": "2030-01-01T00:00:00Z", **parameters}
    if values["sv"] >= "2015-04-05":
        names = ("sp", "st", "se", "", "si", "sip", "spr", "sv", "spk", "srk", "epk", "erk")
    else:
        names = ("sp", "st", "se", "", "si", "sv", "spk", "srk", "epk", "erk")
    prefix = "/table" if values["sv"] >= "2015-04-05" else ""
    resource = f"{prefix}/{ACCOUNT}/{values['tn'].lower()}"
    text = "\n".join(values.get(name, "") if name else resource for name in names)
    return signed(values, text, sign_with)


def account_sas(**parameters: str) -> str:
    """The query of an account SAS, by the published string to sign."""
    values = {
        "sv": "2019-02-02",
        "ss": "t",
        "srt": "sco",
        "sp": "rwdlau",
        "se": "2030-01-01T00:00:00Z",
        **parameters,
    }
    names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"] + ["ses"] * (values["sv"] >= "2020-12-06")
    text = "\n".join([ACCOUNT, *(values.get(name, "") for name in names)]) + "\n"
    return signed(values, text, KEY)


def signed(values: dict[str, str], text: str, key: bytes) -> str:
    values["sig"] = base64.b64encode(hmac.new(key, text.encode(), hashlib.sha256).digest()).decode()
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in values.items())


ENTITY = "/people(PartitionKey='p',RowKey='r')"
OPERATIONS: dict[str, tuple[str, str, Any, dict[str, str]]] = {
    "query": ("GET", "/people()", None, {}),
    "get": ("GET", ENTITY, None, {}),
    "insert": ("POST", "/people", {"PartitionKey": "p", "RowKey": "new"}, {}),
    "update": ("PUT", ENTITY, {"a": 1}, {"If-Match": "*"}),
    "merge": ("MERGE", ENTITY, {"a": 1}, {"If-Match": "*"}),
    "upsert": ("PUT", ENTITY, {"a": 1}, {}),
    "delete": ("DELETE", ENTITY, None, {"If-Match": "*"}),
}


def perform(service: AzureTableService, operation: str, sas: str, **changed: Any) -> Reply:
    method, path, body, headers = OPERATIONS[operation]
    request = service.request(method, f"{path}?{sas}", body, headers)
    return service.handle(replace(request, **changed))


@pytest.fixture
def people(service: AzureTableService) -> AzureTableService:
    service.create()
    service.insert("people", "p", "r")
    return service


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("permissions", ["r", "a", "u", "d", "au", "rd"])
def test_permissions_of_a_service_sas(people: AzureTableService, operation: str, permissions: str) -> None:
    needed = {"query": "r", "get": "r", "insert": "a", "upsert": "au", "delete": "d"}.get(operation, "u")
    reply = perform(people, operation, service_sas(sp=permissions))
    if set(needed) <= set(permissions):
        assert reply.status < 300
    else:
        assert code_of(reply) == (403, "AuthorizationPermissionMismatch")


def test_a_service_sas_is_for_one_table(people: AzureTableService) -> None:
    people.create("animals")
    reply = people.handle(people.request("GET", f"/animals()?{service_sas()}"))
    assert code_of(reply) == (403, "AuthorizationFailure")
    assert people.handle(people.request("GET", f"/PEOPLE()?{service_sas(tn='People')}")).status == 200


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/Tables"), ("DELETE", "/Tables('people')"), ("GET", "/people?comp=acl")]
)
def test_a_service_sas_reaches_entities_only(people: AzureTableService, method: str, path: str) -> None:
    separator = "&" if "?" in path else "?"
    assert people.handle(people.request(method, f"{path}{separator}{service_sas()}")).status == 403


@pytest.mark.parametrize("version", ["2012-02-12", "2014-02-14", "2015-04-05", "2019-02-02", "2021-12-02"])
def test_versions_of_a_service_sas(people: AzureTableService, version: str) -> None:
    assert perform(people, "query", service_sas(sv=version)).status == 200


@each_row(
    "sas",
    [
        service_sas(sign_with=b"other"),
        service_sas().replace("sp=raud", "sp=r"),
        service_sas(se="2023-11-14T22:13:00Z"),
        service_sas(st="2023-11-14T22:14:00Z"),
        service_sas(se=""),
        service_sas(sp=""),
        service_sas(sp="rx"),
        service_sas(se="soon"),
        service_sas(srk="x"),
        service_sas(erk="x"),
        service_sas(sv="nonsense"),
        service_sas(spr="ftp"),
        service_sas(sip="nowhere"),
        account_sas(sv="2014-02-14"),
        service_sas() + "&sig=AAAA",
        "sv=2019-02-02&sig=AAAA",
        "sig=AAAA",
        "sv=2019-02-02&tn=people&sig=%FF%FE".replace("%FF%FE", "%C3%BF"),
    ],
)
def test_tokens_that_prove_nothing(people: AzureTableService, sas: str) -> None:
    assert code_of(perform(people, "query", sas)) == FAILED


@pytest.mark.parametrize(
    "form", ["2023-11-14", "2023-11-14T22:13Z", "2023-11-14T22:13:19Z", "2023-11-14T22:13:19.5Z"]
)
def test_forms_of_time(people: AzureTableService, form: str) -> None:
    assert perform(people, "query", service_sas(st=form)).status == 200


def test_a_sas_can_require_https(people: AzureTableService) -> None:
    sas = service_sas(spr="https")
    assert code_of(perform(people, "query", sas)) == (403, "AuthorizationProtocolMismatch")
    assert perform(people, "query", sas, secure=True).status == 200
    assert perform(people, "query", service_sas(spr="https,http")).status == 200


@pytest.mark.parametrize(
    ("allowed", "client", "good"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1-10.0.0.9", "10.0.0.9", True),
        ("10.0.0.1-10.0.0.9", "10.0.0.10", False),
        ("10.0.0.1", "::1", False),
    ],
)
def test_a_sas_may_name_addresses(people: AzureTableService, allowed: str, client: str, good: bool) -> None:
    reply = perform(people, "query", service_sas(sip=allowed), client=client)
    assert reply.status == 200 if good else code_of(reply) == (403, "AuthorizationSourceIPMismatch")


def test_a_sas_may_be_bounded_by_keys(service: AzureTableService) -> None:
    service.create()
    everybody = [(partition, row) for partition in "abc" for row in "xyz"]
    for partition, row in everybody:
        service.insert("people", partition, row)
    for bounds, inside in [
        ({"spk": "b", "epk": "b"}, [("b", "x"), ("b", "y"), ("b", "z")]),
        ({"spk": "b"}, everybody[3:]),
        ({"epk": "b"}, everybody[:6]),
        ({"spk": "a", "srk": "y", "epk": "b", "erk": "x"}, everybody[1:4]),
        ({"spk": "b", "srk": "y", "epk": "b", "erk": "y"}, [("b", "y")]),
    ]:
        sas = service_sas(**bounds)
        reply = service.handle(service.request("GET", f"/people()?{sas}"))
        found = [(entity["PartitionKey"], entity["RowKey"]) for entity in json.loads(reply.body)["value"]]
        assert found == inside
        for partition, row in everybody:
            path = f"/people(PartitionKey='{partition}',RowKey='{row}')?{sas}"
            status = service.handle(service.request("GET", path)).status
            assert status == (200 if (partition, row) in inside else 404)
            written = service.handle(service.request("MERGE", path, {"a": 1}))
            assert written.status == (204 if (partition, row) in inside else 403)


def set_policy(service: AzureTableService, **parts: str) -> None:
    inner = "".join(f"<{name}>{value}</{name}>" for name, value in parts.items())
    document = (
        f"<SignedIdentifiers><SignedIdentifier><Id>main</Id><AccessPolicy>{inner}</AccessPolicy>"
        "</SignedIdentifier></SignedIdentifiers>"
    )
    headers = {"Content-Type": "application/xml"}
    assert service.send("PUT", "/people?comp=acl", document.encode(), headers).status == 204


def test_a_sas_may_lean_on_a_stored_policy(people: AzureTableService) -> None:
    sas = service_sas(si="main", sp="", se="")
    assert code_of(perform(people, "query", sas)) == FAILED
    set_policy(people, Expiry="2030-01-01T00:00:00Z", Permission="r")
    assert perform(people, "query", sas).status == 200
    assert code_of(perform(people, "delete", sas)) == (403, "AuthorizationPermissionMismatch")
    assert (
        perform(people, "query", service_sas(si="main", sp="r", se="")).status == 403
    )  # in both is in one too many
    set_policy(people, Permission="r")
    assert perform(people, "query", service_sas(si="main", sp="")).status == 200
    assert code_of(perform(people, "query", sas)) == FAILED  # now nobody says when it ends
    set_policy(people, Expiry="2020-01-01T00:00:00Z", Permission="r")
    assert code_of(perform(people, "query", sas)) == FAILED


@pytest.mark.parametrize("version", ["2015-04-05", "2019-02-02", "2020-12-06"])
def test_account_sas(people: AzureTableService, version: str) -> None:
    assert perform(people, "query", account_sas(sv=version)).status == 200


TABLE_OPERATIONS: list[tuple[str, str, str, Any, str, str]] = [
    ("GET", "/Tables", "l", None, "c", ""),
    ("POST", "/Tables", "c", {"TableName": "animals"}, "c", ""),
    ("POST", "/Tables", "w", {"TableName": "animals"}, "c", ""),
    ("DELETE", "/Tables('people')", "d", None, "c", ""),
    ("GET", "/?restype=service&comp=properties", "r", None, "s", ""),
    ("GET", "/people()", "r", None, "o", ""),
    ("POST", "/people", "a", {"PartitionKey": "p", "RowKey": "new"}, "o", ""),
    ("MERGE", ENTITY, "au", {"a": 1}, "o", ""),
]


@pytest.mark.parametrize(("method", "path", "needed", "body", "resource_type", "_"), TABLE_OPERATIONS)
def test_an_account_sas_needs_service_resource_type_and_permission(
    people: AzureTableService, method: str, path: str, needed: str, body: Any, resource_type: str, _: str
) -> None:
    def send(**parameters: str) -> Reply:
        separator = "&" if "?" in path else "?"
        return people.handle(people.request(method, f"{path}{separator}{account_sas(**parameters)}", body))

    others = "".join(sorted(set("sco") - {resource_type}))
    assert code_of(send(srt=others)) == (403, "AuthorizationResourceTypeMismatch")
    lacking = "".join(sorted(set("rwdlau") - set(needed) - ({"w"} if needed == "c" else set())))
    assert code_of(send(sp=lacking)) == (403, "AuthorizationPermissionMismatch")
    assert code_of(send(ss="bq")) == (403, "AuthorizationServiceMismatch")
    assert send(sp=needed, srt=resource_type).status < 300


def test_no_sas_may_touch_access_policies(people: AzureTableService) -> None:
    request = people.request("GET", f"/people?comp=acl&{account_sas()}")
    assert code_of(people.handle(request)) == (403, "AuthorizationFailure")


# Bearer tokens


PRIVATE_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
STRANGER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ISSUER = "https://sts.windows.net/my-tenant/"
NOW = 1_700_000_000
CLAIMS = {"iss": ISSUER, "aud": "https://storage.azure.com", "exp": NOW + 3600, "nbf": NOW - 60}


def jwks() -> dict[str, Any]:
    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(PRIVATE_KEY.public_key()))
    return {"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]}


@pytest.fixture
def with_issuer(service: AzureTableService, tmp_path: Path) -> AzureTableService:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps(jwks()))
    return service.with_settings(jwt_keys_file=path, jwt_issuer=ISSUER)


def token(key: Any = PRIVATE_KEY, algorithm: str = "RS256", kid: str = "one", **changed: Any) -> str:
    claims = {name: value for name, value in {**CLAIMS, **changed}.items() if value is not None}
    return jwt.encode(claims, key, algorithm, {"kid": kid})


def ask(service: AzureTableService, bearer: str, version: str = "2020-12-06") -> Reply:
    headers = {"Authorization": f"Bearer {bearer}", "x-ms-version": version}
    return service.handle(replace(service.request("GET", "/Tables", headers=headers), secure=True))


def test_a_bearer_token_of_the_issuer_is_accepted(with_issuer: AzureTableService) -> None:
    assert ask(with_issuer, token()).status == 200
    assert ask(with_issuer, token(aud="https://storage.azure.com/")).status == 200


OTHER_KEY = ec.generate_private_key(ec.SECP256R1())


@pytest.mark.parametrize("key_ids", [("one", "two"), (None, None)])
def test_a_bearer_token_without_a_key_id_is_tried_with_every_key(
    service: AzureTableService, tmp_path: Path, key_ids: tuple[str | None, str | None]
) -> None:
    """`kid` is optional in tokens (RFC 7515, 4.1.4) and keys (RFC 7517, 4.5). Azurite's own test tokens have none."""
    other = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(OTHER_KEY.public_key()))
    keys: list[dict[str, Any]] = [{**other, "alg": "ES256"}, *jwks()["keys"]]
    for key, key_id in zip(keys, key_ids, strict=True):
        key.pop("kid", None)
        if key_id is not None:
            key["kid"] = key_id
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": keys}))
    known = service.with_settings(jwt_keys_file=path, jwt_issuer=ISSUER)
    assert ask(known, jwt.encode(CLAIMS, PRIVATE_KEY, "RS256")).status == 200
    assert ask(known, jwt.encode(CLAIMS, OTHER_KEY, "ES256")).status == 200
    for wrong in (
        jwt.encode(CLAIMS, STRANGER_KEY, "RS256"),
        jwt.encode({**CLAIMS, "aud": "https://graph.microsoft.com"}, PRIVATE_KEY, "RS256"),
        jwt.encode({**CLAIMS, "exp": NOW - 301}, PRIVATE_KEY, "RS256"),
        token(kid="three"),
    ):
        assert code_of(ask(known, wrong)) == (401, "InvalidAuthenticationInfo")


@pytest.mark.parametrize(
    "bearer",
    [
        token(key=STRANGER_KEY),
        jwt.encode(CLAIMS, STRANGER_KEY, "RS256"),
        token(kid="two"),
        token(key="a secret of thirty-two characters!", algorithm="HS256"),
        token(iss="https://sts.windows.net/other/"),
        token(aud="https://graph.microsoft.com"),
        token(aud=None),
        token(exp=None),
        token(exp=NOW - 301),
        token(nbf=NOW + 301),
        token(exp="soon"),
        token()[:-4] + "AAAA",
        jwt.encode(CLAIMS, None, "none"),
        "",
        "a.b.c",
        "\xff",
    ],
)
def test_bearer_tokens_that_prove_nothing(with_issuer: AzureTableService, bearer: str) -> None:
    reply = ask(with_issuer, bearer)
    assert code_of(reply) == (401, "InvalidAuthenticationInfo")
    assert (
        "/my-tenant/oauth2/authorize resource_id=https://storage.azure.com"
        in dict(reply.headers)["WWW-Authenticate"]
    )


ONE = "https://devstoreaccount1.table.core.windows.net"


@pytest.mark.parametrize(
    ("settings", "good", "bad"),
    [
        ({"auth": "strict"}, "https://storage.azure.com", ONE.replace(ACCOUNT, "otheraccount")),
        ({"auth": "strict"}, ONE, "https://vault.azure.net"),
        ({"auth": "strict", "namespaces": "separate"}, ONE, "https://storage.azure.com"),
        (
            {"auth": "strict", "namespaces": "separate"},
            ONE + "/",
            "https://otheraccount.table.core.windows.net",
        ),
        (
            {"jwt_audience": "https://{account}.example"},
            f"https://{ACCOUNT}.example",
            "https://otheraccount.example",
        ),
        # A single configured audience applies to all tokens, so their roles are for no account.
        (
            {"auth": "strict", "namespaces": "separate", "jwt_audience": "https://storage.azure.com"},
            "https://storage.azure.com",
            ONE,
        ),
    ],
)
def test_with_separate_tenants_a_bearer_token_is_for_one_account(
    with_issuer: AzureTableService, settings: dict[str, str], good: str, bad: str
) -> None:
    """ "Authorize with Microsoft Entra ID": the audience is all storage accounts, or one by its own address."""
    gateway = with_issuer.with_settings(**settings).gateway
    known = Credentials(
        gateway.settings, [next(item for item in DEV_CREDENTIALS if item.access_id == ACCOUNT)]
    )
    strict = with_issuer.on(replace(gateway, credentials=known))
    is_for_all = settings.get("jwt_audience") == "https://storage.azure.com"
    status = ask(strict, token(aud=good, roles=["Storage Table Data Contributor"])).status
    assert status == (403 if is_for_all else 200)
    assert code_of(ask(strict, token(aud=bad)))[1] == "InvalidAuthenticationInfo"


def test_bearer_tokens_need_tls(with_issuer: AzureTableService) -> None:
    """With auth `dev`, clients of this machine are excepted."""

    def status(service: AzureTableService, client: str) -> int:
        headers = {"Authorization": f"Bearer {token()}", "x-ms-version": "2020-12-06"}
        return service.handle(
            replace(service.request("GET", "/Tables", headers=headers), client=client)
        ).status

    assert status(with_issuer, "127.0.0.1") == 200
    assert status(with_issuer, "::1") == 200
    assert status(with_issuer, "10.0.0.1") == 403
    gateway = with_issuer.with_settings(auth="strict").gateway
    known = [item for item in DEV_CREDENTIALS if item.access_id == ACCOUNT]
    strict = with_issuer.on(replace(gateway, credentials=Credentials(gateway.settings, known)))
    assert status(strict, "127.0.0.1") == 403
    assert code_of(strict.last) == FAILED


@pytest.mark.parametrize(
    ("version", "status"), [("2017-07-29", 403), ("2017-11-09", 200), ("2019-02-02", 200)]
)
def test_bearer_tokens_need_a_version_with_support(
    with_issuer: AzureTableService, version: str, status: int
) -> None:
    """2017-11-09 or higher ("Versioning for Azure Storage"). The SDKs for Go and JavaScript name 2019-02-02."""
    assert ask(with_issuer, token(), version=version).status == status


def test_challenges_came_with_a_later_version(with_issuer: AzureTableService) -> None:
    """2019-12-12 ("Authorize with Microsoft Entra ID", Bearer challenge).

    The Python SDK's tests cover both sides of it.
    """
    stranger = token(key=STRANGER_KEY)
    old, new = (
        ask(with_issuer, stranger, version="2019-07-07"),
        ask(with_issuer, stranger, version="2020-12-06"),
    )
    assert code_of(old) == FAILED
    assert "WWW-Authenticate" not in dict(old.headers)
    assert code_of(new) == (401, "InvalidAuthenticationInfo")
    assert b"Please refer to the information in the www-authenticate header." in new.body
    assert "WWW-Authenticate" in dict(new.headers)


def test_no_issuer_is_configured(service: AzureTableService) -> None:
    assert code_of(ask(service, token())) == (401, "InvalidAuthenticationInfo")


def test_a_public_key_is_no_secret(with_issuer: AzureTableService) -> None:
    """The classic confusion: HS256 with the bytes of the published key as the secret."""
    public = jwks()["keys"][0]["n"]
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"one"}').rstrip(b"=")
    body = base64.urlsafe_b64encode(json.dumps(CLAIMS).encode()).rstrip(b"=")
    mac = hmac.new(public.encode(), head + b"." + body, hashlib.sha256).digest()
    forged = (head + b"." + body + b"." + base64.urlsafe_b64encode(mac).rstrip(b"=")).decode()
    assert code_of(ask(with_issuer, forged)) == (401, "InvalidAuthenticationInfo")
