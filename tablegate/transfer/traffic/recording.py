"""`tablegate record`: a proxy that records requests and replies, without signatures, keys, tokens and identities.

Only headers that are known to decide the result are kept. Any other may be a secret of a proxy or a framework, such
as Cookie or X-Api-Key. Secrets in a query (gateway/configuration/secrets.py) are removed. The secrets of a request
are also removed from its body and its reply, because error texts of services contain the string to sign. Requests that
exchange a token or a password for keys, and the replies with the keys, are recorded without bodies.
Source: docs/protocols/dynamodb.md, azure-table.md and table-store.md on signatures.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from tablegate.gateway.configuration.secrets import is_secret_name, masked_target, masked_user
from tablegate.gateway.http.messages import Headers, Reply, Request
from tablegate.transfer.errors import TransferError
from tablegate.transfer.traffic.dialects.detecting import refusal
from tablegate.transfer.traffic.dialects.dialect import plain
from tablegate.transfer.traffic.proxies import (
    REFUSED,
    Forwarder,
    Hooks,
    ListenOptions,
    Proxy,
    Say,
    is_refused_signature,
    request_metadata,
)
from tablegate.transfer.traffic.services import Address, NoReply, Service, Signer, SigningKey
from tablegate.transfer.traffic.traces import RecordedRequest, TraceWriter

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
_AWS_PARTS = re.compile(r"(?:Signature|Credential)=([^,\s]+)")
# Operations inside a batch may have signatures of their own, in the head of each: a request line and headers.
_INNER_LINE = re.compile(rb"^[A-Z]+ (\S+) HTTP/1\.1(?=\r?$)", re.MULTILINE)
_INNER_HEADER = re.compile(rb"^([A-Za-z0-9-]+):[ \t]*([^\r\n]+)", re.MULTILINE)
_INNER_OPTION = re.compile(rb"([?&]([^=&?\s]+)=)([^&\s]+)")
# Their values are data, which may hold links that are signed.
_DATA_OPTIONS = frozenset(
    {"$filter", "%24filter", "nextpartitionkey", "nextrowkey", "spk", "srk", "epk", "erk"}
)
_LEFT_OUT = "(left out)"
_FORM = "application/x-www-form-urlencoded"
_SHORTEST_SECRET = 8


def without_secrets(request: Request) -> Request:
    """Return the request without secrets."""
    target, body = _target_without_secrets(request.target), request.body
    if _is_batch(request):
        body = _INNER_LINE.sub(_line_without_secrets, _INNER_HEADER.sub(_header_without_secrets, body))
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
        (name, _scrub(_target_without_secrets(value) if name == "location" else value, secrets))
        for name, value in _known_headers(reply.headers, _ANSWER_HEADERS)
    ]
    body = _LEFT_OUT.encode() if is_key_exchange(request) else _scrub_bytes(reply.body, secrets)
    return Reply(reply.status, headers, body)


def is_key_exchange(request: Request) -> bool:
    """Return True for a request to a token service, for a user delegation key, and for a form of the console.

    Token services of AWS and Alibaba Cloud also accept the members of the form in the query.
    """
    form = request.header("content-type").partition(";")[0].strip().lower() == _FORM
    query = unquote(request.query).lower()
    return form or "comp=userdelegationkey" in query or "&action=" in f"&{query}"


def secrets_of(request: Request) -> list[str]:
    """Return all secrets of a request, both as sent and percent-decoded, longest first."""
    secrets: set[str] = set()
    for name, value in request.headers:
        if is_secret_name(name):
            secrets.add(value)
            if name == "authorization":
                secrets.update(_parts_of(value))
    for pair in request.query.split("&"):
        name, _, value = pair.partition("=")
        if is_secret_name(name):
            secrets |= {value, unquote(value)}
    inner = request.body if _is_batch(request) else b""
    for match in _INNER_HEADER.finditer(inner):
        name, value = match[1].decode("latin-1").lower(), match[2].decode("latin-1")
        if is_secret_name(name):
            secrets.update(_parts_of(value) if name == "authorization" else (value,))
    for line in _INNER_LINE.finditer(inner):
        for option in _INNER_OPTION.finditer(line[1]):
            if is_secret_name(option[2].decode("latin-1")):
                secrets |= {option[3].decode("latin-1"), unquote(option[3].decode("latin-1"))}
    return sorted((text for text in secrets if len(text) >= _SHORTEST_SECRET), key=len, reverse=True)


def _header_without_secrets(match: re.Match[bytes]) -> bytes:
    is_secret = is_secret_name(match[1].decode("latin-1"))
    return match[1] + b": " + _LEFT_OUT.encode() if is_secret else match[0]


def _line_without_secrets(match: re.Match[bytes]) -> bytes:
    return _INNER_OPTION.sub(_option_without_secrets, match[0])


def _option_without_secrets(match: re.Match[bytes]) -> bytes:
    is_secret = is_secret_name(match[2].decode("latin-1"))
    return match[1] + _LEFT_OUT.replace(" ", "%20").encode() if is_secret else match[0]


def _target_without_secrets(target: str) -> str:
    path, question, query = target.partition("?")
    # A path with quotes has keys of an entity, which are data. Others can have a query that was encoded by mistake.
    path = masked_user(path) if "'" in path else masked_target(path)
    pairs = [
        pair if pair.partition("=")[0].lower() in _DATA_OPTIONS else masked_target(f"?{pair}")[1:]
        for pair in query.split("&")
        if not is_secret_name(pair.partition("=")[0])
    ]
    return path + (question + "&".join(pairs) if pairs != [""] and pairs else "")


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


_FLUSH_SECONDS = 0.5
_UPSTREAM_SECONDS = 120.0


class Recorder:
    """A request handler that records each exchange. If the disk is full, recording stops and clients are still served."""

    def __init__(self, service: Service, forwarder: Forwarder, trace: TraceWriter, say: Say) -> None:
        self._service = service
        self._forwarder = forwarder
        self._trace = trace
        self._say = say
        self._next_number = 1
        self._has_warned = False
        self.count = 0
        self.broken = ""
        self.lost = 0

    async def handle(self, request: Request, connection: int) -> Reply:
        """Return the service's reply. If there is none, return status 502 in the dialect's format."""
        number, self._next_number = self._next_number, self._next_number + 1
        metadata = request_metadata(number, connection, time.time(), request)
        forwarded = self._forwarder.forwarded(request)
        self._write(lambda: self._trace.request(metadata, without_secrets(forwarded)))
        try:
            reply = await self._service.send(forwarded)
        except NoReply as error:
            text = str(error)
            self._write(lambda: self._trace.failure(number, text))
            return refusal(request, 502, text)
        self._write(lambda: self._write_answer(metadata, request, forwarded, reply))
        return reply

    def _write_answer(
        self, metadata: RecordedRequest, request: Request, forwarded: Request, reply: Reply
    ) -> None:
        secrets = [*secrets_of(request), *(secrets_of(forwarded) if forwarded is not request else ())]
        self._trace.answer(metadata.number, answer_without_secrets(request, plain(reply), secrets))
        self.count += 1
        if not self._has_warned and is_refused_signature(metadata, forwarded, reply):
            self._has_warned = True
            self._say(REFUSED)

    async def flush_forever(self) -> None:
        """End a frame at intervals, so that little is lost if the process ends."""
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            self._write(self._trace.flush)

    def close(self) -> None:
        self._write(self._trace.close)

    def _write(self, write: Callable[[], None]) -> None:
        """Write to the trace. Errors are reported to the operator and never to the client."""
        if self.broken:
            return
        try:
            write()
        except OSError as error:
            self.broken = error.strerror or str(error)
            self._say(
                f"recording stopped: {self.broken}. Requests are still passed on but no longer recorded"
            )
        except Exception as error:  # a defect
            self.lost += 1
            self._say(f"an event was not recorded: {error!r}")


async def record(
    upstream: Address, listen: ListenOptions, path: Path, with_bodies: bool,
    keys: dict[str, SigningKey] | None, hooks: Hooks,
) -> None:  # fmt: skip
    """Serve until a stop signal. Raises TransferError if the start fails or the trace is incomplete at the end."""
    try:
        trace = TraceWriter(path, upstream.origin, with_bodies)
    except FileExistsError:
        raise TransferError(f"{path} exists already. Name another file or remove it") from None
    except OSError as error:
        raise TransferError(f"{path}: {error.strerror}") from None
    service = Service(upstream, _UPSTREAM_SECONDS)
    signer = None if keys is None else Signer(keys, upstream.host)
    recorder = Recorder(service, Forwarder(upstream, signer), trace, hooks.say)
    proxy = Proxy(recorder.handle, refusal, listen)
    flushing = asyncio.create_task(recorder.flush_forever())
    try:
        hooks.announce(await proxy.listen())
        await hooks.until()
    finally:
        flushing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await flushing
        await proxy.close()
        await service.close()
        recorder.close()
    if recorder.broken:
        raise TransferError(f"{path} is incomplete: {recorder.broken}")
    if recorder.lost:
        raise TransferError(f"{path} is incomplete: {recorder.lost} events are missing")
    hooks.say(f"{recorder.count} exchanges in {path}")
