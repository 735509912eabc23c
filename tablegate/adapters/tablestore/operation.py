"""The record of an operation: its message type, handler and purpose, and whether it may block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from google.protobuf.message import Message

from tablegate.adapters.tablestore.wire.call_context import Handler
from tablegate.gateway.model.authorization.permissions import Purpose


class Operation(NamedTuple):
    """An operation of the API. The handler returns the message of the reply.

    - `purpose`: the needed permissions.
    - `may_block`: it may take long, so the server runs it on a thread.
    - `tables_of`: returns the tables that a message names in a text, for the audit. None if its members name them.
    """

    request: type[Message]
    handler: Handler
    purpose: Purpose
    may_block: bool = False
    tables_of: Callable[[Any], list[str]] | None = None
