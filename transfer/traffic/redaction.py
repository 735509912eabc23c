"""Removal of signatures, keys, tokens and identities from recorded requests and replies.

Only headers that are known to decide the result are kept. Any other may be a secret of a proxy or a framework, such
as Cookie or X-Api-Key. Secrets in a query are removed. The secrets of a request are also removed from its body and
its reply, because error texts of services contain the string to sign. Requests that exchange a token or a password for
keys, and the replies with the keys, are recorded without bodies.
Source: docs/protocols/dynamodb.md, azure-table.md and table-store.md on signatures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import unquote

from tablegate.gateway.http import Headers, Reply, Request

_REQUEST_HEADERS = frozenset(
    {
        "accept", "accept-charset", "access-control-request-headers", "access-control-request-method",
        "content-encoding", "content-type", "dataserviceversion", "host", "if-match", "if-none-match",
        "maxdataserviceversion", "origin", "prefer", "user-agent", "x-amz-api-version", "x-amz-target",
        "x-http-method", "x-http-method-override", "x-ms-client-request-id", "x-ms-version", "x-ots-apiversion",
        "x-ots-instancename", "x-ots-request-compress-size", "x-ots-request-compress-type",
        "x-ots-response-compress-type",
    }
)  # fmt: skip
_ANSWER_HEADERS = frozenset(
    {
        "allow", "cache-control", "content-type", "dataserviceversion", "date", "etag", "location",
        "preference-applied", "retry-after", "server", "x-amz-crc32", "x-amzn-requestid", "x-content-type-options",
        "x-ms-client-request-id", "x-ms-continuation-nextpartitionkey", "x-ms-continuation-nextrowkey",
        "x-ms-continuation-nexttablename", "x-ms-error-code", "x-ms-request-id", "x-ms-version",
        "x-ots-contenttype", "x-ots-date", "x-ots-requestid",
    }
)  # fmt: skip
_SECRET_HEADERS = (
    "authorization", "cookie", "proxy-authorization", "x-amz-security-token",
    "x-ots-signature", "x-ots-signaturev4", "x-ots-ststoken",
)  # fmt: skip
_SECRET_OPTIONS = frozenset({"sig", "x-amz-signature", "x-amz-security-token", "x-amz-credential"})
_AWS_PARTS = re.compile(r"(?:Signature|Credential)=([^,\s]+)")
# Operations inside a batch may have signatures of their own.
_INNER_AUTHORIZATION = re.compile(rb"(?im)(?<=^authorization:)[ \t]*([^\r\n]+)")
_INNER_SIGNATURE = re.compile(rb"(?i)(?<=[?&]sig=)([^&\s]+)")
_LEFT_OUT = "(left out)"
_FORM = "application/x-www-form-urlencoded"
_SHORTEST_SECRET = 8


def without_secrets(request: Request) -> Request:
    """Return the request without secrets."""
    path, question, query = request.target.partition("?")
    pairs = [pair for pair in query.split("&") if pair.partition("=")[0].lower() not in _SECRET_OPTIONS]
    target = path + (question + "&".join(pairs) if pairs != [""] and pairs else "")
    body = request.body
    if _is_batch(request):
        body = _INNER_AUTHORIZATION.sub(b" " + _LEFT_OUT.encode(), body)
        body = _INNER_SIGNATURE.sub(_LEFT_OUT.replace(" ", "%20").encode(), body)
    if is_key_exchange(request):
        body = _LEFT_OUT.encode()
    secrets = secrets_of(request)
    headers = tuple(
        (name, _scrub(value, secrets)) for name, value in _known_headers(request.headers, _REQUEST_HEADERS)
    )
    return replace(request, target=target, headers=headers, body=_scrub_bytes(body, secrets))


def answer_without_secrets(request: Request, reply: Reply, secrets: Iterable[str]) -> Reply:
    """Return the reply to a request without these secrets."""
    headers = [
        (name, _scrub(value, secrets)) for name, value in _known_headers(reply.headers, _ANSWER_HEADERS)
    ]
    body = _LEFT_OUT.encode() if is_key_exchange(request) else _scrub_bytes(reply.body, secrets)
    return Reply(reply.status, headers, body)


def is_key_exchange(request: Request) -> bool:
    """Return True for a request to a token service, for a user delegation key, and for a form of the console."""
    form = request.header("content-type").partition(";")[0].strip().lower() == _FORM
    return form or "comp=userdelegationkey" in unquote(request.query).lower()


def secrets_of(request: Request) -> list[str]:
    """Return all secrets of a request, both as sent and percent-decoded, longest first."""
    secrets: set[str] = set()
    for name in _SECRET_HEADERS:
        for value in request.header_values(name):
            secrets.add(value)
            if name == "authorization":
                secrets.update(_parts_of(value))
    for pair in request.query.split("&"):
        name, _, value = pair.partition("=")
        if name.lower() in _SECRET_OPTIONS:
            secrets |= {value, unquote(value)}
    inner = request.body if _is_batch(request) else b""
    for line in _INNER_AUTHORIZATION.findall(inner):
        secrets.update(_parts_of(line.decode("latin-1")))
    for value in _INNER_SIGNATURE.findall(inner):
        secrets |= {value.decode("latin-1"), unquote(value.decode("latin-1"))}
    return sorted((text for text in secrets if len(text) >= _SHORTEST_SECRET), key=len, reverse=True)


def _is_batch(request: Request) -> bool:
    return request.header("content-type").lower().startswith("multipart/")


def _parts_of(authorization: str) -> Iterable[str]:
    """Return the secret parts of an Authorization header.

    For SigV4 these are signature and credential. For Shared Key and OTS they are the text after the scheme and the
    part of it after the name.
    """
    if parts := _AWS_PARTS.findall(authorization):
        yield from parts
        return
    proof = authorization.partition(" ")[2].strip()
    yield proof
    yield proof.rpartition(":")[2]


def _known_headers(headers: Iterable[tuple[str, str]], names: frozenset[str]) -> Headers:
    return tuple((name.lower(), value) for name, value in headers if name.lower() in names)


def _scrub(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, _LEFT_OUT)
    return text


def _scrub_bytes(body: bytes, secrets: Iterable[str]) -> bytes:
    for secret in secrets:
        raw = secret.encode("latin-1", "replace")
        if raw in body:
            body = body.replace(raw, _LEFT_OUT.encode())
    return body
