"""Transactions: attempts at reads and writes, the retries of those that failed, and the answer to a COMMIT that was cut off."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import Any

from tablegate.gateway.engine.rows import reading
from tablegate.gateway.engine.rows.writing import WriteBatch
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.store.sql.databases import (
    CommitInterrupted,
    LockTimeout,
    RetryableFailure,
    Unreachable,
)
from tablegate.gateway.store.store import Store

log = logging.getLogger(__name__)

# Attempts that follow each other at once. After them the caller waits, which knows what the wait holds up.
_ATTEMPTS = 4
_FIRST_PAUSE_S = 0.002
_LONG_ATTEMPT_S = 1.0


class Transactions:
    """Runs reads and writes against a store. `failover_s`: how long a database that cannot be reached is waited for. `now` gives
    nanoseconds since 1970."""

    def __init__(self, store: Store, failover_s: float, now: Callable[[], int]) -> None:
        self._store = store
        self._failover_s = failover_s
        self._now = now

    def read(self, commands: list[reading.Reading]) -> list[Any]:
        """Return the outcome of each read, or the GatewayError that it met, all from one snapshot."""
        answer = self.with_retries(self._read_once, commands)
        if isinstance(answer, errors.DatabaseFailed) and len(commands) > 1:
            half = len(commands) // 2
            return self.read(commands[:half]) + self.read(commands[half:])
        return [answer] * len(commands) if isinstance(answer, errors.GatewayError) else answer

    def _read_once(self, commands: list[reading.Reading]) -> list[Any]:
        try:
            return reading.read(self._store, commands, self._now() // 1_000_000)
        except (errors.GatewayError, RetryableFailure):
            raise
        except Exception as error:
            log.exception("a list of reads failed")
            raise errors.DatabaseFailed(repr(error)) from error

    def write(self, groups: list[WriteGroup], nowait: bool = False) -> list[Any]:
        """Return the outcomes of each group, or the GatewayError that it met, all from one transaction."""
        answer = self.with_retries(self.write_once, groups, nowait)
        if isinstance(answer, errors.DatabaseFailed) and len(groups) > 1:
            # Only the culprit may fail, so look for it by halves.
            half = len(groups) // 2
            return self.write(groups[:half], nowait) + self.write(groups[half:], nowait)
        return [answer] * len(groups) if isinstance(answer, errors.GatewayError) else answer

    def write_once(self, groups: list[WriteGroup], nowait: bool = False) -> list[Any]:
        """Make one attempt at what `write` does. Raises Retry, Unknowable, and other GatewayErrors."""
        batch = WriteBatch(self._store, groups, self._now() // 100, nowait)
        self.carry_out(batch.run)
        return batch.answers

    def carry_out(self, transaction: Callable[[], None]) -> None:
        """Run a write transaction to its end. Raises Retry, Unknowable, and other GatewayErrors."""
        try:
            transaction()
        except CommitInterrupted as lost:
            # Never guess: ask what became of the transaction. Applied: the answers in hand are true. Not: once more.
            self._require_commit(lost)
        except (errors.GatewayError, RetryableFailure):
            raise
        except Exception as error:
            # A value that the driver cannot take, or a defect of ours: the neighbours must not suffer from it.
            log.exception("a list of writes failed")
            raise errors.DatabaseFailed(repr(error)) from error

    def _require_commit(self, lost: CommitInterrupted) -> None:
        """Return if the transaction was committed after all. Raises Retry if not, Unknowable if that cannot be known."""
        committed = self._committed(lost.transaction_id)
        if committed is None:
            raise errors.CommitUnknown("the connection was lost at COMMIT") from lost
        if not committed:
            raise RetryableFailure("the connection was lost at COMMIT, which did not happen") from lost

    def _error_of_lost_commit(self, lost: CommitInterrupted) -> errors.GatewayError:
        try:
            self._require_commit(lost)
        except RetryableFailure as reason:
            return errors.Contended(str(reason))
        except errors.CommitUnknown as error:
            return error
        return errors.CommitUnknown("the connection was lost at COMMIT, which did happen")

    def _committed(self, transaction_id: str | None) -> bool | None:
        until = time.monotonic() + self._failover_s
        pause = 0.05
        while True:
            committed = self._store.database.committed(transaction_id)
            if committed is not None or time.monotonic() >= until:
                return committed
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def with_retries(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run work that may fail for a passing reason, up to _ATTEMPTS times with short pauses. Return its result or the
        GatewayError that it met. A lock that did not come in time is not waited for: other requests wait behind this call."""
        pause = _FIRST_PAUSE_S
        began = time.monotonic()
        for attempt in range(_ATTEMPTS):
            try:
                return work(*arguments)
            except LockTimeout as reason:
                return errors.Contended(str(reason))
            except Unreachable as reason:
                return errors.Contended(str(reason), self._failover_s)
            except RetryableFailure as reason:
                log.info("attempt %d will be repeated: %s", attempt + 1, reason)
                if time.monotonic() - began > _LONG_ATTEMPT_S:
                    break
                time.sleep(pause * random.uniform(0.5, 1.5))
                pause *= 2
            except CommitInterrupted as lost:
                # Of the control plane: what it would have answered is lost, even if it happened.
                return self._error_of_lost_commit(lost)
            except errors.GatewayError as error:
                return self._explained(error)
        return errors.Contended("the database did not yield")

    def _explained(self, error: errors.GatewayError) -> errors.GatewayError:
        """Log an error of the database, and note damage. What failed because the schema has changed becomes SchemaTooNew."""
        if isinstance(error, errors.DataCorrupted):
            self._store.note_damage(error)
        elif isinstance(error, errors.DatabaseFailed | errors.CommitUnknown):
            try:
                self._store.check_schema()
            except errors.SchemaTooNew as too_new:
                return too_new
            except Exception as second:
                log.info("the schema could not be read: %r", second)
            log.error("the database failed: %r", error)
        return error
