"""Which token of the live service stands for which token of the recorded one.

Bounded: of very many the oldest are forgotten. Knows nothing of where tokens stand (rules.py).
"""

from __future__ import annotations

from collections import OrderedDict

_KEPT_MAX = 200_000
_NAMED_MAX = 2_000
_SHORTEST_IN_TEXT = 12


class Tokens:
    """Recorded -> live, by kind. A scope says whose a token is where equal ones may be of several owners, as ETags are of
    entities."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, str], str] = OrderedDict()
        self._latest: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._named: OrderedDict[str, str] = OrderedDict()

    def learn(self, kind: str, scope: str, recorded: str, live: str) -> str:
        """Remember a pair. Gives the live token that stood for the recorded one before; "" if there was none."""
        key = (kind, scope, recorded)
        before = self._known.pop(key, "")
        self._known[key] = live
        self._latest.pop((kind, recorded), None)
        self._latest[kind, recorded] = live
        # What texts of errors name: ARNs and ids.
        if kind.endswith(("-arn", "-id")) and len(recorded) >= _SHORTEST_IN_TEXT and recorded != live:
            self._named[recorded] = live
        for kept, most in ((self._known, _KEPT_MAX), (self._latest, _KEPT_MAX), (self._named, _NAMED_MAX)):
            if len(kept) > most:
                kept.popitem(last=False)
        return before

    def live(self, kind: str, scope: str, recorded: str) -> str | None:
        """The live token for a recorded one: that of its scope, else the last of any."""
        found = self._known.get((kind, scope, recorded))
        return found if found is not None else self._latest.get((kind, recorded))

    def in_text(self, text: str) -> str:
        """A recorded text with the live tokens for those that it names."""
        for recorded, live in reversed(self._named.items()):
            text = text.replace(recorded, live)
        return text
