"""SigV4 as the service checks it: botocore signs, verify() checks, and each test breaks one part."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from botocore.auth import SigV4Auth

from tablegate.adapters.dynamodb.wire.auth import verify
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.http.messages import Request
from tablegate.gateway.security.credentials import Credential, Credentials, Scheme
from tests.adapters.dynamodb.client import STORED, sign

PLAIN = Request(
    "POST",
    "/",
    (
        ("host", "localhost:8000"),
        ("content-type", "application/x-amz-json-1.0"),
        ("x-amz-target", "DynamoDB_20120810.ListTables"),
        ("meerkat", "Hello world"),
    ),
    b"{}",
)
# botocore takes a presigned request's body for form fields, so there is none.
BARE = Request("POST", "/", PLAIN.headers[:3], b"")
MINUTE_MS = 60_000


def credentials(*stored: Credential, **settings: str) -> Credentials:
    return Credentials(Settings(**{"auth": "strict", **settings}), stored or (STORED,))


def signed_at(request: Request) -> int:
    text = request.header("x-amz-date") or request.query.partition("X-Amz-Date=")[2][:16]
    return int(datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp() * 1000)


def refused(request: Request, now_ms: int | None = None, known: Credentials | None = None) -> tuple[str, str]:
    with pytest.raises(ServiceError) as caught:
        verify(request, known or credentials(), signed_at(request) if now_ms is None else now_ms)
    assert caught.value.status == 400
    return caught.value.code, str(caught.value.message)


def with_header(request: Request, name: str, change: str | None) -> Request:
    """The request with a header changed, added or (None) taken away."""
    headers = [(known, value) for known, value in request.headers if known != name]
    return replace(request, headers=tuple(headers if change is None else [*headers, (name, change)]))


def test_a_signed_request_has_key_account_region_and_namespace():
    request = sign(PLAIN)
    caller = verify(request, credentials(), signed_at(request))
    assert (caller.access_id, caller.account, caller.region) == (
        "AKIDEXAMPLE",
        "000000000000",
        "eu-central-1",
    )
    assert caller.namespace == "shared"


def test_separate_namespaces_are_account_and_region():
    request = sign(PLAIN)
    known = credentials(replace(STORED, place="210987654321"), namespaces="separate")
    caller = verify(request, known, signed_at(request))
    assert caller.account == "210987654321"
    assert caller.namespace == "aws/210987654321/eu-central-1"


def test_a_key_id_of_twelve_digits_is_its_own_account():
    mine = replace(STORED, access_id="111122223333")
    request = sign(PLAIN, mine)
    assert verify(request, credentials(mine), signed_at(request)).account == "111122223333"


def test_with_auth_dev_the_account_of_made_up_keys_is_a_setting():
    request = sign(PLAIN)
    for auth, account in (("dev", "123456789012"), ("strict", "000000000000")):
        known = credentials(auth=auth, aws_account="123456789012")
        assert verify(request, known, signed_at(request)).account == account
    with pytest.raises(BadSetting, match="not an account number of 12 digits"):
        load({"aws_account": "1234"}, {})


def test_a_presigned_request_is_as_good_as_one_with_a_header():
    request = sign(BARE, query=True)
    assert "X-Amz-Signature" in request.query
    assert request.header("authorization") == ""
    assert verify(request, credentials(), signed_at(request)).access_id == "AKIDEXAMPLE"


def test_a_presigned_request_expires_as_stated():
    request = sign(BARE, query=True)
    assert "X-Amz-Expires=3600" in request.query
    verify(request, credentials(), signed_at(request) + 60 * MINUTE_MS)
    code, text = refused(request, signed_at(request) + 60 * MINUTE_MS + 1)
    assert (code, text[:18]) == ("InvalidSignatureException", "Signature expired:")


@pytest.mark.parametrize("expires", ["604801", "-1", "soon", "9" * 400])
def test_a_presigned_request_cannot_live_longer_than_a_week(expires):
    request = sign(BARE, query=True)
    target = request.target.replace("X-Amz-Expires=3600", f"X-Amz-Expires={expires}")
    assert refused(replace(request, target=target))[0] == "IncompleteSignatureException"


# Harmless changes of a request by proxies (test/alternator/test_authorization.py).


@pytest.mark.parametrize("separator", [",", ", ", " ", ",   ", "\t,"])
def test_commas_blanks_or_both_separate_the_parts_of_the_authorization(separator):
    request = sign(PLAIN)
    changed = request.header("authorization").replace(", ", separator)
    verify(with_header(request, "authorization", changed), credentials(), signed_at(request))


def test_the_parts_may_come_in_any_order():
    request = sign(PLAIN)
    algorithm, *parts = request.header("authorization").replace(",", "").split()
    changed = f"{algorithm} {', '.join(reversed(parts))}"
    verify(with_header(request, "authorization", changed), credentials(), signed_at(request))


@pytest.mark.parametrize("value", ["  Hello world", "Hello world  ", "Hello    world", "Hello \t world"])
def test_blanks_in_header_values_are_folded(value):
    request = with_header(sign(PLAIN), "meerkat", value)
    verify(request, credentials(), signed_at(request))


def test_headers_may_come_in_another_order_and_unsigned_ones_be_added():
    request = sign(PLAIN)
    moved = replace(request, headers=(*reversed(request.headers), ("via", "1.1 proxy")))
    verify(moved, credentials(), signed_at(request))


def test_a_header_may_be_split_in_several():
    request = sign(with_header(PLAIN, "accept-encoding", "gzip,identity"))
    split = with_header(request, "accept-encoding", None)
    split = replace(
        split, headers=(*split.headers, ("accept-encoding", "gzip"), ("accept-encoding", "identity"))
    )
    verify(split, credentials(), signed_at(request))


@pytest.mark.parametrize(
    "target", ["/?b=2&a=1", "/?a=%C3%A9&a=b%20c", "/?flag", "/?a=1%2F2&a=", "/some/../path/", "/x%20y"]
)
def test_odd_targets_are_canonical_the_same_way_on_both_sides(target):
    request = sign(replace(PLAIN, target=target))
    verify(request, credentials(), signed_at(request))


@pytest.mark.parametrize("body", [b"", b"\x00\xff", b"x" * 100_000])
def test_any_body_is_covered(body):
    request = sign(replace(PLAIN, body=body))
    verify(request, credentials(), signed_at(request))


def test_a_header_value_beyond_ascii_is_covered_as_it_was_sent():
    request = sign(with_header(PLAIN, "meerkat", "zażółć"))
    sent = with_header(request, "meerkat", "zażółć".encode().decode("latin-1"))
    verify(sent, credentials(), signed_at(request))


# Refusals, in the service's order and words.


@pytest.mark.parametrize("authorization", [None, "AWS4", "X", "Basic dXNlcjpwdw==", "SharedKey a:b"])
def test_without_a_signature_of_version_4_a_token_is_missing(authorization):
    request = with_header(PLAIN, "authorization", authorization)
    assert refused(request, 0) == (
        "MissingAuthenticationTokenException",
        "Request is missing Authentication Token",
    )


@pytest.mark.parametrize(
    ("authorization", "missing"),
    [
        ("AWS4-", "Credential Signature SignedHeaders Date"),
        ("AWS4- Signature=b Credential=a", "SignedHeaders Date"),
        ("AWS4-HMAC-SHA256 Signature=b,Credential=a", "SignedHeaders Date"),
        ("AWS4-HMAC-SHA256 Credential=,SignedHeaders=host,Signature=1", "Credential Date"),
    ],
)
def test_every_missing_part_is_named(authorization, missing):
    code, text = refused(with_header(PLAIN, "authorization", authorization), 0)
    sentences = {
        "Date": "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. ",
    }
    expected = "".join(
        sentences.get(name, f"Authorization header requires '{name}' parameter. ") for name in missing.split()
    )
    assert (code, text) == ("IncompleteSignatureException", f"{expected}Authorization={authorization}")


def test_a_part_without_an_equal_sign_is_named():
    header = "AWS4-HMAC-SHA256 Signature=b, Credential, SignedHeaders"
    code, text = refused(with_header(PLAIN, "authorization", header), 0)
    assert code == "IncompleteSignatureException"
    assert text == (
        f"'Credential' not a valid key=value pair (missing equal-sign) in Authorization header: '{header}'."
    )


def test_a_query_with_the_algorithm_needs_the_other_four():
    code, text = refused(replace(PLAIN, target="/?X-Amz-Algorithm=a&X-Amz-Credential=b&X-Amz-Date=d"), 0)
    assert code == "IncompleteSignatureException"
    assert text == (
        "AWS query-string parameters must include 'X-Amz-Signature'. "
        "AWS query-string parameters must include 'X-Amz-SignedHeaders'. Re-examine the query-string parameters."
    )


def test_header_and_query_together_are_one_too_many():
    request = replace(with_header(PLAIN, "authorization", "X"), target="/?X-Amz-Algorithm")
    assert refused(request, 0)[1].startswith("Found both 'X-Amz-Algorithm' as a query-string param")


def test_a_signature_is_good_for_fifteen_minutes_either_way():
    request = sign(PLAIN)
    at_ms = signed_at(request)
    verify(request, credentials(), at_ms + 15 * MINUTE_MS)
    verify(request, credentials(), at_ms - 15 * MINUTE_MS)
    code, text = refused(request, at_ms + 15 * MINUTE_MS + 1)
    assert code == "InvalidSignatureException"
    assert text.startswith(f"Signature expired: {request.header('x-amz-date')} is now earlier than ")
    assert text.endswith(" - 15 min.)")
    code, text = refused(request, at_ms - 15 * MINUTE_MS - 1)
    assert code == "InvalidSignatureException"
    assert text.startswith(f"Signature not yet current: {request.header('x-amz-date')} is still later than ")


def test_the_age_is_looked_at_before_the_scope():
    # test_authorization.py test_expired_signature: everything else is wrong there too.
    header = (
        "AWS4-HMAC-SHA256 Credential=cassandra/2/3/4/aws4_request SignedHeaders=x-amz-date;host Signature=123"
    )
    request = with_header(with_header(PLAIN, "authorization", header), "x-amz-date", "20170101T010101Z")
    assert refused(request, 1_800_000_000_000)[1].startswith("Signature expired")


@pytest.mark.parametrize("date", ["201", "yesterday", "20171301T010101Z", "99999999T999999Z"])
def test_a_date_of_no_known_form_is_incomplete(date):
    request = with_header(sign(PLAIN), "x-amz-date", date)
    code, text = refused(request, 0)
    assert code == "IncompleteSignatureException"
    assert text.startswith(f"Date must be in ISO-8601 'basic format'. Got '{date}'.")


def signed_without(*left_out: str) -> Request:
    """A request with a good signature that does not cover some of its headers."""

    class Sparse(SigV4Auth):
        def headers_to_sign(self, request):
            headers = super().headers_to_sign(request)
            for name in left_out:
                del headers[name]
            return headers

    return sign(PLAIN, signer=Sparse)


@pytest.mark.parametrize(
    ("name", "shown"),
    [("host", "Host' or ':authority"), ("x-amz-date", "X-Amz-Date"), ("x-amz-target", "X-Amz-Target")],
)
def test_host_and_amz_headers_must_be_signed(name, shown):
    """IAM user guide, "Create a signed AWS API request": host and all x-amz-* headers.

    The text for host is the service's current one (aws-sdk-js-v3, soto and others show it in issues).
    """
    code, text = refused(signed_without(name))
    assert (code, text) == (
        "InvalidSignatureException",
        f"'{shown}' must be a 'SignedHeader' in the AWS Authorization.",
    )


def test_other_headers_need_not_be_signed():
    request = signed_without("meerkat", "content-type")
    verify(request, credentials(), signed_at(request))


def test_a_get_that_was_seen_is_no_delete():
    """A signed target, as all SDKs send it, cannot be changed. An unsigned target is refused, whatever its value."""
    delete = "DynamoDB_20120810.DeleteItem"
    assert refused(with_header(sign(PLAIN), "x-amz-target", delete))[0] == "InvalidSignatureException"
    assert refused(with_header(signed_without("x-amz-target"), "x-amz-target", delete))[1].startswith(
        "'X-Amz-Target'"
    )


def test_a_presigned_request_must_cover_its_target_too():
    request = sign(replace(BARE, headers=BARE.headers[:2]), query=True)
    verify(request, credentials(), signed_at(request))
    aimed = with_header(request, "x-amz-target", "DynamoDB_20120810.DeleteItem")
    assert refused(aimed)[1] == "'X-Amz-Target' must be a 'SignedHeader' in the AWS Authorization."


def test_another_algorithm_is_not_known():
    request = sign(PLAIN)
    header = request.header("authorization").replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256")
    code, text = refused(with_header(request, "authorization", header))
    assert code == "IncompleteSignatureException"
    assert text.startswith("Unsupported AWS 'algorithm': 'AWS4-ECDSA-P256-SHA256'")


@pytest.mark.parametrize(
    ("part", "wrong", "text"),
    [
        ("/dynamodb/", "/s3/", "Credential should be scoped to correct service: 'dynamodb'."),
        (
            "/aws4_request",
            "/e",
            "Credential should be scoped with a valid terminator: 'aws4_request', not 'e'.",
        ),
        ("/eu-central-1/", "/eu central/", "Credential should be scoped to a valid region, not 'eu'."),
        ("AKIDEXAMPLE/", "AKIDEXAMPLE/x/", "Credential must have exactly 5 slash-delimited elements"),
    ],
)
def test_each_part_of_the_scope_must_be_right(part, wrong, text):
    request = sign(PLAIN)
    header = request.header("authorization").replace(part, wrong)
    if " " in wrong:
        header, text = request.header("authorization").replace(part, "/*/"), text.replace("'eu'", "'*'")
    assert text in refused(with_header(request, "authorization", header))[1]


def test_the_day_of_the_scope_must_be_that_of_the_date():
    request = sign(PLAIN)
    day = request.header("x-amz-date")[:8]
    header = request.header("authorization").replace(f"/{day}/", "/20200101/")
    text = refused(with_header(request, "authorization", header))[1]
    assert text.startswith("Date in Credential scope does not match YYYYMMDD")


def test_an_unknown_key_is_an_unrecognised_client():
    request = sign(PLAIN, replace(STORED, access_id="whatever"))
    assert refused(request) == (
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
    )


def test_a_wrong_secret_gets_the_expected_canonical_request():
    code, text = refused(sign(PLAIN, replace(STORED, secrets=("guessed",))))
    assert code == "InvalidSignatureException"
    assert text.startswith("The request signature we calculated does not match the signature you provided.")
    assert "\n'POST\n/\n\ncontent-type:application/x-amz-json-1.0\nhost:localhost:8000\n" in text
    assert STORED.secrets[0] not in text


@pytest.mark.parametrize(
    "spoil",
    [
        lambda request: replace(request, body=b'{"Limit":1}'),
        lambda request: with_header(request, "meerkat", "Hello World"),
        lambda request: with_header(request, "meerkat", None),
        lambda request: replace(request, method="PUT"),
        lambda request: replace(request, target="/?more"),
        lambda request: with_header(request, "authorization", request.header("authorization")[:-1] + "é"),
    ],
)
def test_nothing_that_was_signed_may_change(spoil):
    assert refused(spoil(sign(PLAIN)))[0] == "InvalidSignatureException"


def test_the_payload_hash_is_of_the_body_whatever_its_header_says():
    # UNSIGNED-PAYLOAD belongs to S3. A client that signs it has not signed its body.
    request = sign(PLAIN)
    unsigned = with_header(replace(request, body=b"{ }"), "x-amz-content-sha256", "UNSIGNED-PAYLOAD")
    assert refused(unsigned)[0] == "InvalidSignatureException"
    true = with_header(request, "x-amz-content-sha256", hashlib.sha256(request.body).hexdigest())
    verify(true, credentials(), signed_at(request))


def test_a_key_with_a_session_token_needs_it():
    with_token = replace(STORED, session_token="a-long-token")
    known = credentials(with_token)
    request = sign(PLAIN, token="a-long-token")
    assert verify(request, known, signed_at(request)).access_id == "AKIDEXAMPLE"
    assert refused(sign(PLAIN), known=known)[0] == "UnrecognizedClientException"
    assert refused(sign(PLAIN, token="another"), known=known)[0] == "UnrecognizedClientException"
    assert refused(sign(PLAIN, token="any"), known=credentials())[0] == "UnrecognizedClientException"
    presigned = sign(BARE, query=True, token="a-long-token")
    assert verify(presigned, known, signed_at(presigned)).access_id == "AKIDEXAMPLE"


def test_each_of_several_secrets_is_accepted():
    both = replace(STORED, secrets=("older", STORED.secrets[0]))
    request = sign(PLAIN)
    verify(request, credentials(both), signed_at(request))


# Auth dev.


def dev() -> Credentials:
    return Credentials(Settings(), ())


def test_auth_dev_accepts_any_key_signature_and_date():
    header = "AWS4-HMAC-SHA256 Credential=me/20200101/mars-1/dynamodb/aws4_request, SignedHeaders=host, Signature=x"
    request = with_header(with_header(PLAIN, "authorization", header), "x-amz-date", "20200101T000000Z")
    caller = verify(request, dev(), 1_800_000_000_000)
    assert (caller.access_id, caller.region, caller.account) == ("me", "mars-1", "000000000000")


@pytest.mark.parametrize("credential", ["me", "me/x", "//", "me/20200101/no good/dynamodb/aws4_request"])
def test_in_dev_a_scope_of_no_known_form_is_the_default_region(credential):
    target = f"/?X-Amz-Algorithm=a&X-Amz-Credential={credential}&X-Amz-Signature=b&X-Amz-SignedHeaders=c&X-Amz-Date=d"
    assert verify(replace(PLAIN, target=target), dev(), 0).region == "us-east-1"


def test_in_dev_an_unsigned_request_gets_its_error():
    with pytest.raises(ServiceError) as caught:
        verify(PLAIN, dev(), 0)
    assert caught.value.code == "MissingAuthenticationTokenException"


def test_an_azure_key_is_no_aws_key():
    azure = Credential(Scheme.AZURE, "AKIDEXAMPLE", STORED.secrets)
    assert refused(sign(PLAIN), known=credentials(azure))[0] == "UnrecognizedClientException"
