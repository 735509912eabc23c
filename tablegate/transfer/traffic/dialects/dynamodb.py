"""DynamoDB in traffic: JSON in POST requests, with the operation in X-Amz-Target."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from tablegate.adapters.dynamodb.operation_table import OPERATIONS
from tablegate.adapters.dynamodb.request_info import kind_of
from tablegate.adapters.dynamodb.wire import http
from tablegate.adapters.dynamodb.wire.errors import full_type
from tablegate.gateway.http.messages import Reply, Request
from tablegate.gateway.model.request_info import RequestKind
from tablegate.transfer.traffic.comparing import ParsedReply, Tokens, token_text
from tablegate.transfer.traffic.dialects.dialect import (
    READING_METHODS,
    ProxiedDialect,
    UnknownToken,
    headers_of,
)
from tablegate.transfer.traffic.rules import DYNAMODB, ComparisonRule, tokens_sent

_START_KEY = "ExclusiveStartKey"
_HEADERS = frozenset({"content-type"})
_UNDER_WAY = re.compile(
    rb'"(?:TableStatus|IndexStatus)": ?"(?:CREATING|UPDATING|DELETING)"|"Backfilling": ?true'
)


class DynamoDB(ProxiedDialect):
    """The DynamoDB API. Replies contain no address. ARNs are tokens."""

    name = DYNAMODB
    passing_codes = frozenset(
        ("ProvisionedThroughputExceededException", "RequestLimitExceeded", "ServiceUnavailableException",
         "ThrottlingException")
    )  # fmt: skip

    def operation(self, request: Request) -> str:
        return request.header("x-amz-target").partition(".")[2] or f"{request.method} {request.path}"

    def is_write(self, request: Request) -> bool:
        operation = self.operation(request)
        if operation not in OPERATIONS:
            return request.method not in READING_METHODS
        document = _tree(request.body)
        return kind_of(operation, document if isinstance(document, dict) else {}) is not RequestKind.READ

    def base(self, request: Request) -> str:
        return ""

    def moved(self, request: Request, origin: str, account: str) -> Request:
        return request

    def with_live_tokens(self, request: Request, tokens: Tokens, is_done: bool) -> Request:
        rules_by_member = tokens_sent(DYNAMODB, self.operation(request))
        if not any(f'"{member}"'.encode() in request.body for member in rules_by_member):
            return request
        document = _tree(request.body)
        live = _with_live_tokens(document, rules_by_member, tokens, is_done)
        return request if live == document else replace(request, body=json.dumps(live).encode())

    def answer(self, request: Request, reply: Reply) -> ParsedReply:
        body = _tree(reply.body)
        code = ""
        if reply.status >= 400 and isinstance(body, dict):
            code = str(body.pop("__type", "")).rpartition("#")[2]
        return ParsedReply(reply.status, code, headers_of(reply, _HEADERS), body)

    def is_under_way(self, reply: Reply) -> bool:
        return _UNDER_WAY.search(reply.body) is not None

    def refusal(self, request: Request, status: int, text: str) -> Reply:
        code = "RequestEntityTooLarge" if status == 413 else "ServiceUnavailableException"
        body = json.dumps({"__type": full_type(code), "message": text}).encode()
        return http.reply(request, status, body)


def _with_live_tokens(
    tree: Any, rules_by_member: Mapping[str, ComparisonRule], tokens: Tokens, is_done: bool
) -> Any:
    """Return a request's document with live tokens.

    Attributes of items may have the names of token members, but their values are documents. Only a Scan's start key
    is a token that is a document.
    """
    if isinstance(tree, list):
        return [_with_live_tokens(element, rules_by_member, tokens, is_done) for element in tree]
    if not isinstance(tree, dict):
        return tree
    document = {}
    for member, value in tree.items():
        rule = rules_by_member.get(member)
        if rule is not None and (
            isinstance(value, str) or (isinstance(value, dict) and member == _START_KEY)
        ):
            live = tokens.live(rule.name, "", token_text(value))
            if live is None and rule.is_needed and is_done:
                raise UnknownToken(f"{rule.name} in {member}")
            if live is not None:
                value = live if isinstance(value, str) else json.loads(live)
            document[member] = value
        else:
            document[member] = _with_live_tokens(value, rules_by_member, tokens, is_done)
    return document


def _tree(body: bytes) -> Any:
    try:
        return orjson.loads(body) if body else None
    except orjson.JSONDecodeError:
        return body.decode("utf-8", "replace")
