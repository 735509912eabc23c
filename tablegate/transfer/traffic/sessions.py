"""The common core of replay and shadow: sending an exchange's request to a second service and comparing the replies.

A session keeps the state that later requests need: tokens and the progress of multi-page scans.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from tablegate.gateway.http.messages import Reply, Request
from tablegate.transfer.traffic.comparing import (
    ABSENT,
    BODY,
    Divergence,
    ParsedReply,
    ReplyComparison,
    Tokens,
)
from tablegate.transfer.traffic.dialects.detecting import DIALECTS
from tablegate.transfer.traffic.dialects.dialect import ProxiedDialect, UnknownToken, plain
from tablegate.transfer.traffic.reports import DivergenceReport, SkipReason
from tablegate.transfer.traffic.services import UNSIGNED, NoReply, Service, Signer
from tablegate.transfer.traffic.traces import RecordedRequest

_SCANS_MAX = 1_000
_RETRY_DELAY_SECONDS = 0.1
AUTHENTICATION_CODES = frozenset(
    {
        "IncompleteSignatureException", "InvalidSignatureException", "MissingAuthenticationTokenException",
        "UnrecognizedClientException", "ExpiredTokenException", "AccessDeniedException", "AuthenticationFailed",
        "AuthorizationFailure", "AuthorizationPermissionMismatch", "AuthorizationProtocolMismatch",
        "AuthorizationResourceTypeMismatch", "AuthorizationServiceMismatch", "AuthorizationSourceIPMismatch",
        "InvalidAuthenticationInfo", "NoAuthenticationInformation", "OTSAuthFailed", "OTSNoPermissionAccess",
    }
)  # fmt: skip
"""Error codes about the signature or the identity of the caller."""


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request as it was sent, with its reply or the reason why there is none."""

    request: Request
    reply: Reply | None = None
    why: SkipReason | None = None
    failure: str = ""


@dataclass(slots=True)
class _Scan:
    """The progress of a Scan of several pages. Sums of item hashes do not depend on order or page boundaries."""

    counts: list[int] = field(default_factory=lambda: [0, 0])
    sums: list[int] = field(default_factory=lambda: [0, 0])


class ReplaySession:
    """The replay of recorded requests against one service.

    `span` is the time of the recording in seconds since 1970. `patience_seconds` limits the retries of a request
    that succeeded in the recording but gets a transient error now.
    """

    def __init__(
        self, service: Service, signer: Signer, span: tuple[float, float], patience_seconds: float
    ) -> None:
        self._patience_seconds = patience_seconds
        self._service = service
        self._signer = signer
        self._span = span
        self._began = time.time()
        self._tokens = Tokens()
        self._scans: OrderedDict[str, _Scan] = OrderedDict()
        self.report = DivergenceReport()

    async def send(self, metadata: RecordedRequest, request: Request, is_done: bool) -> SentRequest:
        """Send a recorded request with a new signature. `is_done`: the recorded one succeeded."""
        dialect = DIALECTS[metadata.dialect]
        try:
            live = dialect.with_live_tokens(request, self._tokens, is_done)
        except UnknownToken as error:
            return SentRequest(request, None, SkipReason.UNKNOWN_TOKEN, str(error))
        except RecursionError:  # document with thousands of nested levels
            live = request
        account = "" if metadata.signed == UNSIGNED else self._signer.account
        live = dialect.moved(live, self._service.address.origin, account)
        until = time.monotonic() + self._patience_seconds
        while True:
            signed = self._sign(metadata, live)
            try:
                reply = plain(await self._service.send(signed))
            except NoReply as error:
                return SentRequest(signed, None, SkipReason.NO_LIVE_ANSWER, str(error))
            if not is_done or not self._is_passing(dialect, signed, reply):
                return SentRequest(signed, reply)
            if time.monotonic() > until:
                return SentRequest(signed, reply, SkipReason.NOT_READY)
            self.report.repeated += 1
            await asyncio.sleep(_RETRY_DELAY_SECONDS)

    @staticmethod
    def _is_passing(dialect: ProxiedDialect, request: Request, reply: Reply) -> bool:
        """True if a retry may give another reply and cannot apply a write twice."""
        if reply.status >= 400:
            return dialect.answer(request, reply).code in dialect.passing_codes
        return dialect.is_under_way(reply) and not dialect.is_write(request)

    def _sign(self, metadata: RecordedRequest, request: Request) -> Request:
        if metadata.signed == UNSIGNED:
            return self._signer.unsigned(request)
        return self._signer.signed(metadata.dialect, request, metadata.region)

    def compare(
        self,
        metadata: RecordedRequest,
        request: Request,
        recorded: Reply,
        sent_request: SentRequest,
        is_raced: bool,
    ) -> None:
        """Compare the replies of one exchange and count the result."""
        if sent_request.reply is None or sent_request.why is not None:
            self.report.skip(sent_request.why or SkipReason.NO_LIVE_ANSWER)
            return
        dialect = DIALECTS[metadata.dialect]
        answers = (
            dialect.answer(request, plain(recorded)),
            dialect.answer(sent_request.request, sent_request.reply),
        )
        if answers[1].code in AUTHENTICATION_CODES and answers[0].code not in AUTHENTICATION_CODES:
            self.report.skip(SkipReason.REFUSED_NOW)
            return
        comparison = ReplyComparison(
            metadata.dialect,
            metadata.operation,
            self._tokens,
            (dialect.base(request), dialect.base(sent_request.request)),
            (self._span, (self._began, time.time())),
        )
        try:
            divergences = self._of_scan(request, comparison, *answers)
            if divergences is None:
                divergences = comparison.divergences(*answers)
        except RecursionError:
            is_same = plain(recorded).body == sent_request.reply.body
            divergences = (
                []
                if is_same
                else [Divergence(BODY, "body", "(too deep to compare)", "(too deep to compare)")]
            )
        self.report.add(metadata.number, (metadata.dialect, metadata.operation), divergences, is_raced)
        for rule, count in comparison.used.items():
            self.report.rules[metadata.dialect, rule] += count

    # Scans of several pages

    def _of_scan(
        self, request: Request, comparison: ReplyComparison, recorded: ParsedReply, live: ParsedReply
    ) -> list[Divergence] | None:
        """Return the divergences of a Scan page, or None if both pages can be compared directly.

        Neither the order of items nor the page boundaries are specified. So once both services have sent their last
        page, the items of all pages must be equal.
        """
        bodies = (recorded.body, live.body)
        if comparison.operation != "Scan" or not all(_is_page(body) for body in bodies):
            return None
        key = _key_of_scan(request)
        scan = self._scans.pop(key[1], None)
        lasts = [body.get("LastEvaluatedKey", ABSENT) for body in bodies]
        are_alike = lasts[0] == lasts[1] and len(bodies[0]["Items"]) == len(bodies[1]["Items"])
        if scan is None and (are_alike or lasts[0] is lasts[1]):
            return None
        scan = scan or _Scan()
        for side, body in enumerate(bodies):
            for item in body["Items"]:
                scan.counts[side] += 1
                scan.sums[side] += _hash(item)
        comparison.used["scan-order"] += 1
        if lasts[0] is ABSENT or lasts[1] is ABSENT:
            if lasts[0] is not lasts[1]:
                texts = [f"{count} items so far" for count in scan.counts]
                return [Divergence(BODY, "body/LastEvaluatedKey", *texts)]
            if scan.counts == [scan.counts[0]] * 2 and scan.sums[0] == scan.sums[1]:
                return []
            texts = [f"{count} items on all pages" for count in scan.counts]
            return [Divergence(BODY, "body/Items", *texts)]
        self._tokens.learn("scan-position", "", _text(lasts[0]), _text(lasts[1]))
        self._scans[f"{key[0]}{_text(lasts[0])}"] = scan
        if len(self._scans) > _SCANS_MAX:
            self._scans.popitem(last=False)
        return []


def _is_page(body: Any) -> bool:
    return isinstance(body, dict) and isinstance(body.get("Items"), list)


def _key_of_scan(request: Request) -> tuple[str, str]:
    """Return (the scan without its start key, the scan with its start key)."""
    try:
        document = json.loads(request.body)
    except ValueError:
        return "", ""
    start = document.pop("ExclusiveStartKey", None)
    return _text(document), f"{_text(document)}{_text(start)}"


def _text(tree: Any) -> str:
    return json.dumps(tree, sort_keys=True)


def _hash(item: Any) -> int:
    return int.from_bytes(hashlib.blake2b(_text(_with_ordered_sets(item)).encode(), digest_size=16).digest())


def _with_ordered_sets(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {
            name: sorted(value)
            if name in ("SS", "NS", "BS")
            and isinstance(value, list)
            and all(isinstance(element, str) for element in value)
            else _with_ordered_sets(value)
            for name, value in tree.items()
        }
    if isinstance(tree, list):
        return [_with_ordered_sets(element) for element in tree]
    return tree
