"""Credentials in URLs and headers, in each spelling, are masked. Other texts stay as they are."""

from __future__ import annotations

import itertools
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablegate.gateway.configuration.secrets import is_secret_name, masked, masked_target, masked_values

SECRET = "c2VjcmV0/+c2ln=="
NAMES = (
    "sig", "X-Amz-Signature", "X-Amz-Security-Token", "X-Amz-Credential", "Signature", "SecurityToken", "code", "state",
    "nonce", "id_token", "access_token", "refresh_token", "client_secret", "code_verifier", "client_assertion",
    "WebIdentityToken", "SAMLAssertion", "token", "password", "api_key", "key", "AccountKey", "SharedAccessSignature",
)  # fmt: skip
"""Names of credentials in the URLs of AWS, Azure, Alibaba Cloud, OAuth 2.0, OpenID Connect and others."""
HEADERS = (
    "authorization", "proxy-authorization", "cookie", "set-cookie", "x-amz-security-token", "x-ots-signature",
    "x-ots-signaturev4", "x-ots-ststoken", "x-api-key",
)  # fmt: skip
PLAIN_NAMES = (
    "sv", "se", "sp", "st", "tn", "skoid", "comp", "restype", "timeout", "$filter", "NextPartitionKey", "NextRowKey",
    "AWSAccessKeyId", "client_id", "code_challenge", "redirect_uri", "namespace", "name", "statement", "x-ots-accesskeyid",
    "x-amz-target", "x-amz-date", "content-type", "if-match", "x-ms-continuation-nextpartitionkey",
)  # fmt: skip


def spelled(name: str) -> list[str]:
    """Return the spellings of a name that a server or a proxy could read as this name."""
    encoded = "".join(f"%{ord(letter):02x}" for letter in name)
    return [name, name.upper(), f"%{ord(name[0]):02X}{name[1:]}", encoded, quote(encoded)]


def test_names_of_credentials() -> None:
    assert [name for name in (*NAMES, *HEADERS) if not is_secret_name(name)] == []
    assert [name for name in PLAIN_NAMES if is_secret_name(name)] == []


def test_each_credential_in_each_place_of_a_target_is_masked() -> None:
    value = quote(SECRET)
    nested = quote(quote("https://h/t?sv=1&sig=" + quote(SECRET)))
    wrong = {}
    for name in NAMES:
        for spelling, raw in itertools.product(spelled(name), (SECRET, value, f'"{SECRET}"', f"a {SECRET}")):
            for target in (
                f"/t?{spelling}={raw}",
                f"/t?sv=1&{spelling}={raw}&se=2",
                f"http://h/t?{spelling}={raw}",
                f"/t?a=1;{spelling}={raw}",
                f"/t?a=1%26{spelling}={raw}",
                f"/t?next={quote(f'https://h/t?sv=1&{spelling}={raw}&x=1', safe='')}&x=1",
                f"/t{quote(f'?{spelling}={raw}', safe='')}",
            ):
                shown = masked_target(target)
                if any(secret in shown for secret in (SECRET, value, quote(value), "c2VjcmV0")):
                    wrong[target] = shown
    assert wrong == {}
    assert "c2VjcmV0" not in masked_target(f"/t?next={nested}")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/t?sv=1&sig=abc%2Bd&se=2", "/t?sv=1&sig=***&se=2"),
        ("/return?code=abc&state=def", "/return?code=***&state=***"),
        ("/t?sig=", "/t?sig=***"),
        ("GET http://h/t?sig=abc HTTP/1.1", "GET http://h/t?sig=*** HTTP/1.1"),
        ("Max retries exceeded with url: /t?sig=abc (Caused by x)", "Max retries exceeded with url: /t?sig=*** (Caused by x)"),
        ("https://user:pass@h/t", "https://***@h/t"),
        ("https://ghp_abc@h/t", "https://***@h/t"),
        ("postgresql+psycopg://u:p@ss@h,i:5/db?sslpassword=x", "postgresql+psycopg://u:***@h,i:5/db?sslpassword=***"),
        ("postgresql://u@h/db", "postgresql://u@h/db"),
        ("host=h password='a b' dbname=d", "host=h password=*** dbname=d"),
        ("AccountName=a;AccountKey=abc==;EndpointSuffix=x", "AccountName=a;AccountKey=***"),
        ("Authorization: Bearer abcdefghij", "Authorization: ***"),
        ("sent Bearer abcdefghij", "sent Bearer ***"),
        ("('authorization', 'SharedKey acc:c2lnbmF0dXJl')", "('authorization', '***')"),
        ("((b'x-api-key', b'abc'), ('a', 'b'))", "((b'x-api-key', b'***'), ('a', 'b'))"),
        ('{"X-Amz-Security-Token": "a=b", "Code": "Denied"}', '{"X-Amz-Security-Token": "***", "Code": "Denied"}'),
        ("cookie: a=b; c=d\nhost: h", "cookie: ***\nhost: h"),
        ("AWS4-HMAC-SHA256 Credential=AK/1/2, Signature=abc", "AWS4-HMAC-SHA256 Credential=***, Signature=***"),
        ("the token eyJhbGciOiJI.eyJpc3M.c2ln is bad", "the token *** is bad"),
        ("nothing?a=1&b=2 to hide, key = value", "nothing?a=1&b=2 to hide, key = value"),
        ("%3F%3F%3F", "%3F%3F%3F"),
    ],
)  # fmt: skip
def test_texts(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_a_document_keeps_its_form() -> None:
    document = {"a": ["/t?sig=x", 1, None, {"b": ("x", "https://u:p@h")}], "sig": "kept"}
    assert masked_values(document) == {
        "a": ["/t?sig=***", 1, None, {"b": ["x", "https://***@h"]}],
        "sig": "kept",
    }


@given(st.text(alphabet="?&;#=%32356abDF/sigcode:@ 'e"))
def test_any_text_can_be_masked_twice(text: str) -> None:
    assert masked(masked(text)) == masked(text)
    assert masked_target(masked_target(text)) == masked_target(text)


def test_the_work_is_linear() -> None:
    """Targets have at most 64 KB. Quadratic work on them would take minutes."""
    pieces = (
        "?", "%3F", "?a", "%3Fa%26", "?a=&", "?sig=%3Fsig%3D", "%25", "25", "://", "http://a:", "://a:", "eyJ.", "eyJ-", "eyJ",
        "Basic ", "Bearer  ", "Signature=", "password=", "password='", "'token',", "'token','", "'a':", "cookie:", "cookie: ",
        "x-ots-signature", "signature", "sharedkey", "@",
    )  # fmt: skip
    for piece in pieces:
        masked(piece * (64_000 // len(piece)))
