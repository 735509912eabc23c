"""NextToken of a SELECT: the start of the next page. It is valid for the same statement only."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from tablegate.adapters.dynamodb.operations.start_keys import StartKey
from tablegate.adapters.dynamodb.wire.call_context import CallContext
from tablegate.adapters.dynamodb.wire.errors import ServiceError, validation
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.expressions.ranges import KeyRange
from tablegate.gateway.model.values.keys import Position

# NextToken


class PageStart(NamedTuple):
    """The start of a page: the number of the range, and the last key read in it (None: at its beginning)."""

    number: int = 0
    key: Mapping[str, Any] | None = None


def _digest(call: CallContext) -> str:
    parts = [call.caller.namespace, call.input["Statement"], call.input.get("Parameters")]
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def token_of(call: CallContext, page_start: PageStart) -> str:
    """Return the NextToken for a page that begins there."""
    return base64.urlsafe_b64encode(orjson.dumps([_digest(call), *page_start])).decode()


def page_start_of(call: CallContext) -> PageStart:
    """Return the start of the page in the request's NextToken. Raises ServiceError."""
    token = call.input.get("NextToken")
    if token is None:
        return PageStart()
    try:
        digest, number, key = orjson.loads(base64.b64decode(token.encode(), b"-_", validate=True))
        if not isinstance(digest, str) or type(number) is not int or number < 0:
            raise ValueError
        if not isinstance(key, (dict, type(None))):
            raise ValueError
    except (ValueError, TypeError):
        raise _invalid_token() from None
    if digest != _digest(call):
        raise validation("NextToken does not match request")
    return PageStart(number, key)


def _invalid_token() -> Exception:
    return validation("Invalid NextToken")


def position_of(base: Read, key: Mapping[str, Any]) -> Position:
    """Return the position of the key in a token. Raises ServiceError."""
    try:
        start = StartKey(key, base.table, base.index)
        start.check_count(is_query=True)
        start.check_index()
        start.check_table()
        return start.position
    except (ServiceError, GatewayError, LookupError, TypeError, ValueError, AttributeError):
        raise _invalid_token() from None


def rest_of(base: Read, bounds: KeyRange, key: Mapping[str, Any]) -> KeyRange:
    """Return the part of a range after the key in a token. Raises ServiceError."""
    position = position_of(base, key)
    return bounds.before(position) if base.reverse else bounds.after(position)
