"""The record of an operation: its name, handler, input, rule and purpose, and whether it may block.

validation/ has the inputs (members, their constraints and their order of checks), the two validators that check them, and
the rules about several members.

Sources: members and constraints from botocore 1.44.5 service-2.json. The order and the enum lists are from
dynalite (captured from the service). The service still checks members in this order (paritysuite, September
2026).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Any

import orjson

from tablegate.adapters.dynamodb.call import Handler, is_one_command
from tablegate.adapters.dynamodb.validation import fast_validator, shortening
from tablegate.adapters.dynamodb.validation.fast_validator import Checker, Rule
from tablegate.adapters.dynamodb.validation.shapes import Request
from tablegate.adapters.dynamodb.wire import limits
from tablegate.adapters.dynamodb.wire.errors import ITEM_WRITES, RuleContext, ServiceError, serialization
from tablegate.gateway.dialects.dialect import LONG_BYTES
from tablegate.gateway.model import fast_paths
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

RefusalOfBody = Callable[[Any, bytes, ServiceError], ServiceError]


@dataclass(frozen=True)
class Operation:
    """One operation of the API.

    - `requests`: the inputs of all operations of a module, by name. `request` is that of this operation.
    - `purpose`: the permissions that a caller needs.
    - `member_permissions`: permissions that members of the request need besides.
    - `rule`: the rule about several members of the input, or None.
    - `refusal_of_body`: returns the error for a rejected request: (parsed body, body, error). None if the errors
      of the operation do not depend on the text of the body.
    - `may_block`: it may wait for something other than the database, so the server runs it on a thread.
    - `long_from_bytes`: length of the body from which a request can take long.
    - `billed_bytes`: bytes of members that no valid request exceeds. None if there is no such bound.
    """

    name: str
    handler: Handler
    requests: InitVar[Mapping[str, Request]]
    purpose: Purpose
    member_permissions: Mapping[str, Permission] = field(default_factory=dict)
    rule: Rule | None = None
    refusal_of_body: RefusalOfBody | None = None
    may_block: bool = False
    long_from_bytes: int = LONG_BYTES
    billed_bytes: int | None = shortening.OTHER_BYTES
    request: Request = field(init=False)

    def __post_init__(self, requests: Mapping[str, Request]) -> None:
        object.__setattr__(self, "request", requests[self.name])

    @cached_property
    def is_one_command(self) -> bool:
        """See call_context.is_one_command."""
        return is_one_command(self.purpose)

    @cached_property
    def check(self) -> Checker:
        """The checks of the input: called with a body, it returns the cleaned input.

        The input has known members only, of the right JSON types, without nulls, and attribute values in canonical form.
        The body is decoded JSON and is changed in place. Items of puts become `values.ParsedItem`.

        Raises ServiceError: SerializationException for JSON types, then ValidationException for member constraints and
        for rules that need no table, in the service's order.
        """
        return self._checker(is_deep=False)

    @cached_property
    def _check_deep(self) -> Checker:
        return self._checker(is_deep=True)

    def _checker(self, is_deep: bool) -> Checker:
        contexts = (RuleContext(self.name, is_deep, good=False), RuleContext(self.name, is_deep, good=True))
        fast = fast_paths.choose(
            fast_validator.fast_check(fast_validator.strict(self.request)),
            fast_validator.leave_to_full_validator,
        )
        return Checker(self.request, fast, self.rule, contexts)

    def purpose_of(self, body: Any) -> Purpose:
        """Return the purpose of a request."""
        if not self.member_permissions or not isinstance(body, dict):
            return self.purpose
        needed = (permission for name, permission in self.member_permissions.items() if body.get(name))
        return self.purpose._replace(also=tuple(needed))

    def parse(self, text: bytes) -> Any:
        """Parse the JSON of a large request.

        Maps and lists that are longer than allowed may be shortened. Raises ValueError.
        """
        return shortening.parse_shortened(text, shortening.member_limits(self.request.shape))

    def shorten(self, body: Any) -> None:
        """Drop excess members in place: for large bodies, before `check`."""
        shortening.shorten(self.request.shape, body)

    def refusal_of_dense(self, text: bytes) -> ServiceError | None:
        """Return the error for a request that certainly exceeds the operation's limits, so that it need not be parsed.
        None otherwise.
        """
        if not shortening.exceeds_limits(text, self.name, self.billed_bytes):
            return None
        if self.name in ("PutItem", "BatchWriteItem"):
            return RuleContext(self.name).refused("item-size")
        return serialization()

    def error_for_body(self, text: bytes, refusal: ServiceError) -> ServiceError:
        """Return the error for a request that `check` rejected, depending on the text of its body.

        Writes of one item with very deeply nested bodies get the texts of an older validation (`ErrorTexts.is_deep`). The
        depth of large bodies is not measured.
        """
        if self.refusal_of_body is not None:
            return self.refusal_of_body(self.parse(text), text, refusal)
        if self.name in ITEM_WRITES and len(text) <= limits.LARGE_REQUEST_BYTES:
            if text.count(b"{") + text.count(b"[") <= limits.JSON_LEVELS:
                return refusal
            body = orjson.loads(text)
            if _is_deep(body):
                try:
                    self._check_deep(body)
                except ServiceError as older:
                    return older
        return refusal


def _is_deep(body: Any) -> bool:
    """True if objects and lists are nested deeper than the newer validation reads."""
    level = [body]
    for _ in range(limits.JSON_LEVELS + 1):
        level = [node for node in level if isinstance(node, dict | list)]
        level = [part for node in level for part in (node.values() if isinstance(node, dict) else node)]
    return bool(level)


def by_name(*operations: Operation) -> dict[str, Operation]:
    """Return name -> operation."""
    return {operation.name: operation for operation in operations}
