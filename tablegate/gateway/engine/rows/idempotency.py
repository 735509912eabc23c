"""Idempotency tokens: a group with a token that was used before is not applied, but gets the answer of the first one."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from tablegate.gateway.engine.rows.writing import Answer, WriteBatch, WriteHook
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.row_commands import ReplayedOutcome, WriteGroup, WriteOutcome
from tablegate.gateway.model.commands.writes import Write
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.transactions import tokens


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
            stored_answer = tokens.take(session, *key, batch.now_ms)
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
        tokens.remember(session, key, group.token.digest, answer, expires_at_ms)
        self._stored_answers[key] = group.token.digest, answer


def _sizes(outcome: WriteOutcome) -> tuple[int | None, int | None]:
    old, new = outcome
    return None if old is None else old.size_bytes, None if new is None else new.size_bytes
