"""The list of all hooks of writes, and two that the core has: idempotency tokens, and numbers of auto-increment columns.

The numbers of a partition strictly grow. They start at the time in microseconds, which avoids small numbers that
clients choose.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import orjson

from tablegate.gateway.engine.installation import Installation
from tablegate.gateway.engine.rows.writing import Answer, WriteBatch, WriteHook
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.row_commands import ReplayedOutcome, WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.writes import Write, with_number
from tablegate.gateway.model.values.keys import AUTO_INCREMENT
from tablegate.gateway.store.rows import idempotency_tokens
from tablegate.gateway.store.sql.counters import advance, partition_counter
from tablegate.gateway.store.sql.databases import Session

_WITHOUT_HOOK = frozenset(
    ("indexes", "other_indexes", "expiry.attribute", "max_versions", "stamped", "followed")
)
"""Features (Table.features) of the core that need no hook."""


class WriteHooks:
    """All hooks of writes, in the order of their locks. Those of capabilities stand before the last one of the core."""

    def __init__(self, installation: Installation, *hooks: type[WriteHook]) -> None:
        self._installation = installation
        self._hooks = [*hooks]
        self._known_features = _WITHOUT_HOOK.union(*(hook.features for hook in hooks))

    def add(self, hook: type[WriteHook]) -> None:
        """Add the hook of a capability."""
        self._hooks.insert(-1, hook)

    def for_features(self, features: Set[str]) -> Sequence[type[WriteHook]]:
        """Return all hooks. If a feature is not one of the core, those of capabilities are among them."""
        if not features <= self._known_features:
            self._installation.complete()
        return self._hooks


class Tokens(WriteHook):
    """The tokens of a batch, which are locked in the order of their names."""

    features = frozenset({"token"})

    def __init__(self, batch: WriteBatch) -> None:
        super().__init__(batch)
        self._stored_answers: dict[tuple[str, str], tuple[bytes, str]] = {}
        """The (digest, answer) of each token that was used before or by an earlier group of this batch."""

    def lock(self, session: Session) -> None:
        batch = self.batch
        for key in sorted({(group.token.scope, group.token.name) for group in batch.groups if group.token}):
            stored_answer = idempotency_tokens.take(session, *key, batch.now_ms)
            if stored_answer is not None:
                self._stored_answers[key] = stored_answer
        for at in [*batch.unanswered]:
            answer = self.answer(batch.groups[at], ())
            if answer is not None:
                batch.answer(at, answer)

    def answer(self, group: WriteGroup, writes: Sequence[Write]) -> Answer | None:
        if group.token is None:
            return None
        stored_answer = self._stored_answers.get((group.token.scope, group.token.name))
        if stored_answer is None:
            return None
        digest, answer = stored_answer
        if digest != group.token.digest:
            return errors.TokenReused()
        return ReplayedOutcome(tuple((old, new) for old, new in orjson.loads(answer)))

    def applied(
        self, session: Session, group: WriteGroup, writes: Sequence[Write], outcomes: Sequence[WriteOutcome]
    ) -> None:
        if group.token is None:
            return
        answer = orjson.dumps([_sizes(outcome) for outcome in outcomes]).decode()
        key = group.token.scope, group.token.name
        expires_at_ms = self.batch.now_ms + group.token.lifetime_ms
        idempotency_tokens.remember(session, key, group.token.digest, answer, expires_at_ms)
        self._stored_answers[key] = group.token.digest, answer


def _sizes(outcome: WriteOutcome) -> tuple[int | None, int | None]:
    old, new = outcome
    return None if old is None else old.size_bytes, None if new is None else new.size_bytes


class Numbering(WriteHook):
    """Puts numbers into the auto-increment columns of a batch. Counters are locked in the order of their names."""

    features = frozenset({"auto_increment"})

    def lock(self, session: Session) -> None:
        unanswered = self.batch.unanswered
        requests_by_counter: dict[str, list[tuple[int, int]]] = {}
        for at, writes in unanswered.items():
            for ordinal, write in enumerate(writes):
                if AUTO_INCREMENT in write.key.values:  # type: ignore[comparison-overlap]
                    name = partition_counter(write.table.id, write.key.position.partition)
                    requests_by_counter.setdefault(name, []).append((at, ordinal))
        numbered = {at: list(writes) for at, writes in unanswered.items()}
        for name in sorted(requests_by_counter):
            requests = requests_by_counter[name]
            first = advance(session, name, len(requests), self.batch.now // 10) - len(requests) + 1
            for number, (at, ordinal) in enumerate(requests, first):
                numbered[at][ordinal] = with_number(numbered[at][ordinal], number)
        unanswered.update(numbered)
