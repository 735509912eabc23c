"""The mapping from tokens of the recorded service to those of the live one.

The number of entries is bounded. The oldest are removed first.
"""

from __future__ import annotations

from collections import OrderedDict

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
