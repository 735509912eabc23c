"""The comparison of two replies as trees, and the tokens of the recorded service with those of the live one.

The status is compared first, then the error code, then headers and body. A difference ends the comparison of what
follows. Differences that a rule of rules.py covers are no divergences. Mapped tokens are learned during the
comparison. Their number is bounded, and the oldest are removed first.
"""

from __future__ import annotations

import json
import re
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tablegate.transfer.traffic.rules import ComparisonRule, Treatment, rule_of

_KEPT_MAX = 200_000
_NAMED_MAX = 2_000
_SHORTEST_IN_TEXT = 12


class Tokens:
    """The live token of each recorded token, by kind.

    A scope distinguishes equal tokens of different owners, such as ETags of entities.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, str], str] = OrderedDict()
        self._latest: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._named: OrderedDict[str, str] = OrderedDict()

    def learn(self, kind: str, scope: str, recorded: str, live: str) -> str:
        """Store a pair. Return the live token that the recorded one mapped to before, "" if none."""
        key = (kind, scope, recorded)
        before = self._known.pop(key, "")
        self._known[key] = live
        self._latest.pop((kind, recorded), None)
        self._latest[kind, recorded] = live
        # Error texts contain ARNs and ids.
        if kind.endswith(("-arn", "-id")) and len(recorded) >= _SHORTEST_IN_TEXT and recorded != live:
            self._named[recorded] = live
        for cache, entries_max in (
            (self._known, _KEPT_MAX),
            (self._latest, _KEPT_MAX),
            (self._named, _NAMED_MAX),
        ):
            if len(cache) > entries_max:
                cache.popitem(last=False)
        return before

    def live(self, kind: str, scope: str, recorded: str) -> str | None:
        """Return the live token for a recorded one: that of the scope, else the latest of any scope."""
        token = self._known.get((kind, scope, recorded))
        return token if token is not None else self._latest.get((kind, recorded))

    def in_text(self, text: str) -> str:
        """Return a recorded text in which recorded tokens are replaced by live ones."""
        for recorded, live in reversed(self._named.items()):
            text = text.replace(recorded, live)
        return text


SCOPE = "(of)"
"""The member of a tree that says which entity the rest is of. It is not compared."""
ABSENT = object()

STATUS, CODE, HEADER, BODY, ORDER = "status", "code", "header", "body", "order"
_SHOWN_CHARACTERS = 200
_REQUEST_ID = re.compile(r"RequestId:\s*\S+")
_TIME = re.compile(r"Time:\s*\S+")
_SLACK_SECONDS = 900.0
# Smallest number that counts as microseconds, milliseconds or seconds since 1970, and the divisor to seconds.
_UNITS = ((1e14, 1e6), (1e11, 1e3), (1e8, 1.0))


@dataclass(frozen=True, slots=True)
class Divergence:
    """A difference that no rule explains. `what` is STATUS, CODE, HEADER, BODY or ORDER."""

    what: str
    place: str
    recorded: str
    live: str


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A reply as a tree. `code` is the error code, "" for a success."""

    status: int
    code: str
    headers: Mapping[str, str]
    body: Any
    scope: str = ""


@dataclass(slots=True)
class ReplyComparison:
    """A comparison of the two replies of one exchange.

    `bases` are the path prefixes of the recorded and the live service. `spans` are the times of both runs, in
    seconds since 1970.
    """

    dialect: str
    operation: str
    tokens: Tokens
    bases: tuple[str, str]
    spans: tuple[tuple[float, float], tuple[float, float]]
    used: Counter[str] = field(default_factory=Counter)

    def divergences(self, recorded: ParsedReply, live: ParsedReply) -> list[Divergence]:
        """Return all divergences. Empty if the replies are equivalent."""
        if recorded.status != live.status:
            texts = [f"{answer.status} {answer.code}".strip() for answer in (recorded, live)]
            return [Divergence(STATUS, "status", *texts)]
        if recorded.code != live.code:
            return [Divergence(CODE, "code", recorded.code, live.code)]
        header_divergences = list(
            self._of_node("headers", dict(recorded.headers), dict(live.headers), recorded.scope)
        )
        header_divergences = [
            Divergence(HEADER, divergence.place, divergence.recorded, divergence.live)
            for divergence in header_divergences
        ]
        return [*header_divergences, *self._of_node("body", recorded.body, live.body, recorded.scope)]

    def _of_node(self, path: str, recorded: Any, live: Any, scope: str) -> Iterator[Divergence]:
        rule = self._rule(path, recorded, live)
        if rule is not None:
            divergences = self._by_rule(rule, path, recorded, live, scope)
            if divergences is not None:
                yield from divergences
                return
        match recorded, live:
            case dict(), dict():
                yield from self._of_members(path, recorded, live, scope)
            case list(), list():
                is_unordered = rule is not None and rule.treatment is Treatment.UNORDERED
                yield from self._of_elements(path, recorded, live, scope, rule if is_unordered else None)
            case _:
                if type(recorded) is not type(live) or recorded != live:
                    yield _body_divergence(path, recorded, live)

    def _rule(self, path: str, recorded: Any, live: Any) -> ComparisonRule | None:
        rule = rule_of(self.dialect, self.operation, _pattern_path(path))
        return rule if rule is not None and rule.applies_to(recorded) and rule.applies_to(live) else None

    def _by_rule(
        self, rule: ComparisonRule, path: str, recorded: Any, live: Any, scope: str
    ) -> Sequence[Divergence] | None:
        """Return the divergences by a rule, or None if members must be compared one by one."""
        is_same = recorded == live
        match rule.treatment:
            case Treatment.IGNORED:
                # The presence of the member must be equal.
                is_fine = (recorded is ABSENT) is (live is ABSENT)
            case Treatment.PASSING:
                is_fine = True
            case Treatment.MAPPED if isinstance(recorded, str | dict) and isinstance(live, str | dict):
                before = self.tokens.learn(rule.name, scope, token_text(recorded), token_text(live))
                is_fine = not (rule.is_strict and before and before != token_text(live))
                recorded = recorded if is_fine else before
            case Treatment.TIME if is_same or self._are_times(recorded, live):
                is_fine = True
            case Treatment.TEXT if isinstance(recorded, str) and isinstance(live, str):
                if not is_same and self._normalize(recorded, 0) != self._normalize(live, 1):
                    return None
                is_fine = True
            case _:
                return None
        if not is_fine:
            return [_body_divergence(path, recorded, live)]
        if not is_same:
            self.used[rule.name] += 1
        return []

    def _of_members(self, path: str, recorded: Any, live: Any, scope: str) -> Iterator[Divergence]:
        scope = _scope_within(recorded, scope)
        for name in dict.fromkeys((*recorded, *live)):
            if name != SCOPE:
                mine, theirs = recorded.get(name, ABSENT), live.get(name, ABSENT)
                yield from self._of_node(f"{path}/{_escape(name)}", mine, theirs, scope)

    def _of_elements(
        self, path: str, recorded: list[Any], live: list[Any], scope: str, rule: ComparisonRule | None
    ) -> Iterator[Divergence]:
        if len(recorded) != len(live):
            texts = [f"{len(side)} elements" for side in (recorded, live)]
            yield Divergence(BODY, path, *texts)
            return
        if rule is not None:
            ordered = [
                sorted(side, key=lambda element: self._key(f"{path}[]", element)) for side in (recorded, live)
            ]
            if recorded != live and ordered != [recorded, live]:
                self.used[rule.name] += 1
            recorded, live = ordered
        elif recorded != live and self._is_other_order(path, recorded, live):
            yield Divergence(ORDER, path, _shortened(recorded), _shortened(live))
            return
        for number, (mine, theirs) in enumerate(zip(recorded, live, strict=True)):
            yield from self._of_node(f"{path}[{number}]", mine, theirs, scope)

    def _is_other_order(self, path: str, recorded: list[Any], live: list[Any]) -> bool:
        mine, theirs = ([self._key(f"{path}[]", element) for element in side] for side in (recorded, live))
        return mine != theirs and sorted(mine) == sorted(theirs)

    def _key(self, path: str, node: Any) -> str:
        """Return a node as text, without values that rules cover and without the order of unordered lists."""
        return json.dumps(self._mask(path, node), sort_keys=True, default=repr)

    def _mask(self, path: str, node: Any) -> Any:
        rule = self._rule(path, node, node)
        if rule is not None and rule.treatment is not Treatment.UNORDERED:
            return None
        if isinstance(node, dict):
            return {
                name: self._mask(f"{path}/{_escape(name)}", value)
                for name, value in node.items()
                if name != SCOPE
            }
        if isinstance(node, list):
            masked = [self._mask(f"{path}[]", element) for element in node]
            return sorted(masked, key=lambda element: json.dumps(element, sort_keys=True)) if rule else masked
        return node

    def _normalize(self, text: str, side: int) -> str:
        text = _TIME.sub("Time:", _REQUEST_ID.sub("RequestId:", text))
        if side == 0:
            text = self.tokens.in_text(text)
        # The address that a service behind a proxy reports is not the one that its clients use.
        return re.sub(rf"https?://[^/\s]+(?:{re.escape(self.bases[side])}(?=/|$))?", "(service)", text)

    def _are_times(self, recorded: Any, live: Any) -> bool:
        return all(
            isinstance(value, int | float)
            and begin - _SLACK_SECONDS <= _seconds(value) <= end + _SLACK_SECONDS
            for value, (begin, end) in zip((recorded, live), self.spans, strict=True)
        )


def _body_divergence(path: str, recorded: Any, live: Any) -> Divergence:
    return Divergence(BODY, path, _shortened(recorded), _shortened(live))


def _scope_within(node: Mapping[str, Any], scope: str) -> str:
    """Return the scope for a node's members: the entity's, if the node names one or has its keys."""
    if SCOPE in node:
        return str(node[SCOPE])
    if isinstance(node.get("PartitionKey"), str) and isinstance(node.get("RowKey"), str):
        return entity_scope(scope.partition("\n")[0], node["PartitionKey"], node["RowKey"])
    return scope


def entity_scope(table: str, partition_key: str, row_key: str) -> str:
    return f"{table.lower()}\n{partition_key}\n{row_key}"


def token_text(token: Any) -> str:
    """Return a token as text. A key that serves as a token becomes JSON."""
    return token if isinstance(token, str) else json.dumps(token, sort_keys=True)


def _seconds(value: float) -> float:
    for minimum, divisor in _UNITS:
        if value >= minimum:
            return value / divisor
    return 0.0


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1").replace("[", "~2")


_INDEX = re.compile(r"\[\d*\]")


def _pattern_path(path: str) -> str:
    """Replace the index of each list element by `[]`, as the paths of rules have it."""
    return _INDEX.sub("/[]", path)


def _shortened(value: Any) -> str:
    if value is ABSENT:
        return "(absent)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
