"""Azure Table in traffic: REST and OData, addresses in the path, batches of requests inside a request."""

from __future__ import annotations

import email.parser
import email.policy
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import quote, unquote

import orjson

from tablegate.adapters.azuretable.entities import entity_renderer
from tablegate.adapters.azuretable.entities.entity_renderer import MetadataLevel
from tablegate.adapters.azuretable.request_info import KINDS
from tablegate.adapters.azuretable.wire import addresses, multipart
from tablegate.adapters.azuretable.wire.addresses import Entity, EntitySet, Resource
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.adapters.azuretable.wire.multipart import InnerRequest
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.request_info import RequestKind
from tablegate.transfer.traffic.comparing import SCOPE, ParsedReply, Tokens, entity_scope
from tablegate.transfer.traffic.dialects.dialect import (
    READING_METHODS,
    ProxiedDialect,
    UnknownToken,
    headers_of,
)
from tablegate.transfer.traffic.rules import AZURE_TABLE, tokens_sent

_HEADERS = frozenset(
    {
        "content-type", "dataserviceversion", "etag", "location", "preference-applied", "x-ms-version",
        "x-ms-continuation-nextpartitionkey", "x-ms-continuation-nextrowkey", "x-ms-continuation-nexttablename",
    }
)  # fmt: skip
_CONDITIONS = ("if-match", "if-none-match")
_ANY = "*"
_MAX_PARTS = 1000
_INNER_CONDITION = re.compile(rb"(?im)^(if-match:[ \t]*)([^\r\n]*)")
_INNER_FAILURE = re.compile(rb"(?m)^HTTP/1\.\d [45]\d\d ")
_INNER_URL = re.compile(rb"(?im)^([A-Z]+ )(https?://[^/ ]+)(/[^ ]*)?(?= |\r?$)")


class AzureTable(ProxiedDialect):
    """The Azure Table API. Replies contain the service's address, and in path style the account."""

    name = AZURE_TABLE
    passing_codes = frozenset(("ServerBusy", "TableBeingDeleted"))

    def operation(self, request: Request) -> str:
        resource = _resource_of(request)
        return f"{_method(request)} {type(resource).__name__ if resource is not None else 'unknown'}"

    def is_write(self, request: Request) -> bool:
        if any(inner.head.method == "GET" for inner in _inner(request)):
            return False
        kind = KINDS.get(self.operation(request))
        return request.method not in READING_METHODS if kind is None else kind is not RequestKind.READ

    def base(self, request: Request) -> str:
        return _base(request)

    def moved(self, request: Request, origin: str, account: str) -> Request:
        base = _base(request)
        target = request.target
        account = account or base.strip("/").partition("-")[0]
        # The path of a secondary endpoint begins with the account too.
        own, _, rest = base.strip("/").partition("-")
        new_base = f"/{account}{'-' + rest if rest else ''}" if base else ""
        if base and own != account:
            target = new_base + target[len(base) :]
        scheme_and_host = origin.encode("latin-1", "replace")

        def readdressed(match: re.Match[bytes]) -> bytes:
            path = match[3] or b""
            if base and path.startswith(base.encode()):
                path = new_base.encode() + path[len(base) :]
            return match[1] + scheme_and_host + path

        body = _INNER_URL.sub(readdressed, request.body) if _is_batch(request) else request.body
        return (
            request
            if (target, body) == (request.target, request.body)
            else replace(request, target=target, body=body)
        )

    def with_live_tokens(self, request: Request, tokens: Tokens, is_done: bool) -> Request:
        headers = tuple(
            (
                name,
                self._live_condition(value, _scope_of(request), tokens, is_done)
                if name in _CONDITIONS
                else value,
            )
            for name, value in request.headers
        )
        target = self._live_target(request, tokens, is_done)
        body = self._live_batch(request, tokens, is_done) if _is_batch(request) else request.body
        if (headers, target, body) == (request.headers, request.target, request.body):
            return request
        return replace(request, headers=headers, target=target, body=body)

    def answer(self, request: Request, reply: Reply) -> ParsedReply:
        headers = headers_of(reply, _HEADERS)
        kind = headers.get("content-type", "")
        if kind.lower().startswith("multipart/"):
            headers["content-type"] = kind.partition(";")[0]
            scopes = [_scope_of_inner(request, inner) for inner in _inner(request)]
            return ParsedReply(reply.status, "", headers, _parts(kind, reply.body, scopes))
        body = _tree(kind, reply.body)
        return ParsedReply(reply.status, _code(body, reply), headers, body, _scope_of(request))

    def succeeded(self, reply: Reply) -> bool:
        """True if the request succeeded. The reply to a batch contains the status of each operation."""
        return reply.status < 400 and not (reply.status == 202 and _INNER_FAILURE.search(reply.body))

    def refusal(self, request: Request, status: int, text: str) -> Reply:
        code = "RequestBodyTooLarge" if status == 413 else "ServerBusy"
        body = json.dumps(
            {"odata.error": {"code": code, "message": {"lang": "en-US", "value": text}}}
        ).encode()
        kind = entity_renderer.content_type(MetadataLevel.MINIMAL)
        return Reply(status, [("Content-Type", kind), ("x-ms-error-code", code)], body)

    # Tokens

    @staticmethod
    def _live_condition(value: str, scope: str, tokens: Tokens, is_done: bool) -> str:
        """Return the live ETag for a recorded one.

        An unknown ETag was issued before the trace began. If the recorded request succeeded, `*` matches the live
        entity.
        """
        if value.strip() == _ANY:
            return value
        live = tokens.live("etag", scope, value)
        if live is None:
            return _ANY if is_done else value
        return live

    @staticmethod
    def _live_target(request: Request, tokens: Tokens, is_done: bool) -> str:
        rules_by_option = tokens_sent(AZURE_TABLE, "")
        path, question, query = request.target.partition("?")
        pairs = []
        for pair in query.split("&"):
            name, equals, value = pair.partition("=")
            rule = rules_by_option.get(unquote(name))
            if rule is not None and equals:
                live = tokens.live(rule.name, "", unquote(value))
                if live is None and is_done:
                    raise UnknownToken(f"{rule.name} in {name}")
                pair = pair if live in (None, unquote(value)) else f"{name}={quote(live or '', safe='')}"
            pairs.append(pair)
        return path + question + "&".join(pairs)

    def _live_batch(self, request: Request, tokens: Tokens, is_done: bool) -> bytes:
        inner = [
            inner_request
            for inner_request in _inner(request)
            if "if-match" in dict(inner_request.head.headers)
        ]
        scopes = iter([_scope_of_inner(request, inner_request) for inner_request in inner])

        def live(match: re.Match[bytes]) -> bytes:
            value = match[2].decode("latin-1").strip()
            return match[1] + self._live_condition(value, next(scopes, ""), tokens, is_done).encode("latin-1")

        return _INNER_CONDITION.sub(live, request.body)


# Requests


def _method(request: Request) -> str:
    return (
        request.header("x-http-method") or request.header("x-http-method-override") or request.method
    ).upper()


def _base(request: Request) -> str:
    try:
        return addresses.parse(request.path, request.header("host")).base
    except ServiceError:
        return ""


def _resource_of(request: Request) -> Resource | None:
    """Return the resource of a request. Without an account in the path, the host style is assumed."""
    try:
        return addresses.parse(request.path, request.header("host")).resource
    except ServiceError:
        try:
            return addresses.parse_resource(request.path.lstrip("/"))
        except ServiceError:
            return None


def _is_batch(request: Request) -> bool:
    return request.path.lower().endswith("/$batch")


def _inner(request: Request) -> tuple[InnerRequest, ...]:
    """Return the operations of a batch. Empty if it is no batch or is malformed."""
    if not _is_batch(request):
        return ()
    try:
        return multipart.parse(request.header("content-type"), request.body, _MAX_PARTS).requests
    except ServiceError:
        return ()


def _scope_of(request: Request) -> str:
    return _scope(_resource_of(request), request.body)


def _scope_of_inner(request: Request, inner: InnerRequest) -> str:
    """Return the scope of an operation in a batch."""
    path = re.sub(r"^https?://[^/]+", "", inner.head.target).partition("?")[0]
    base = _base(request)
    path = path[len(base) :] if base and path.startswith(base + "/") else path
    try:
        return _scope(addresses.parse_resource(path.lstrip("/")), inner.body)
    except ServiceError:
        return ""


def _scope(resource: Resource | None, body: bytes) -> str:
    match resource:
        case Entity(table, partition_key, row_key):
            return entity_scope(table, partition_key, row_key)
        case EntitySet(table):
            document = _json(body)
            keys = (
                [document.get(name) for name in ("PartitionKey", "RowKey")]
                if isinstance(document, dict)
                else []
            )
            if keys and all(isinstance(key, str) for key in keys):
                return entity_scope(table, *map(str, keys))
            return table.lower()
        case _:
            return ""


# Answers


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body) if body else None
    except orjson.JSONDecodeError:
        return None


def _tree(kind: str, body: bytes) -> Any:
    if not body:
        return None
    if "json" in kind:
        document = _json(body)
        return body.decode("utf-8", "replace") if document is None else document
    # A document type may define entities that expand without bound.
    if "xml" in kind and b"<!DOCTYPE" not in body:
        try:
            return _of_element(ET.fromstring(body.decode("utf-8-sig")))
        except (ET.ParseError, UnicodeDecodeError):
            pass
    return body.decode("utf-8", "replace")


def _of_element(element: ET.Element) -> Any:
    """Return the text of a leaf, else the members by name. Each member is a list."""
    if not len(element):
        return element.text or ""
    tree: dict[str, Any] = {}
    for child in element:
        name = child.tag.rpartition("}")[2]
        value = _of_element(child)
        tree[name] = [*tree[name], value] if name in tree else [value]
    return tree


def _code(body: Any, reply: Reply) -> str:
    if reply.status < 400:
        return ""
    error = body.get("odata.error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        return str(error.get("code", ""))
    return next((value for name, value in reply.headers if name.lower() == "x-ms-error-code"), "")


def _parts(kind: str, body: bytes, scopes: Iterable[str]) -> Any:
    """Return the replies of a batch in order."""
    head = f"Content-Type: {kind}\r\n\r\n".encode("latin-1", "replace")
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    parts = []
    remaining_scopes = iter(scopes)
    for part in message.walk():
        if part.get_content_type() == "application/http":
            content = part.get_payload(decode=True)
            parts.append(_part(content if isinstance(content, bytes) else b"", next(remaining_scopes, "")))
    return parts


def _part(content: bytes, scope: str) -> dict[str, Any]:
    head, _, body = content.replace(b"\r\n", b"\n").partition(b"\n\n")
    status_line, *lines = head.decode("latin-1").split("\n")
    status = status_line.partition(" ")[2].partition(" ")[0]
    pairs = [line.partition(":") for line in lines]
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    tree = _tree(headers.get("content-type", ""), body.strip())
    shown_headers = {name: value for name, value in headers.items() if name in _HEADERS}
    return {SCOPE: scope, "status": status, "headers": shown_headers, "body": tree}
