"""Transactions: attempts at reads and writes, their retries, and the outcome of an interrupted COMMIT."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import Any

from tablegate.gateway.engine.installation import FunctionsOfCommands, Installation
from tablegate.gateway.engine.rows import reading
from tablegate.gateway.engine.rows.write_hooks import Numbering, Tokens, WriteHooks
from tablegate.gateway.engine.rows.writing import WriteBatch
from tablegate.gateway.engine.streams.streaming import StreamRecorder
from tablegate.gateway.model import errors
from tablegate.gateway.model.commands.command import Command
from tablegate.gateway.model.commands.row_commands import WriteGroup
from tablegate.gateway.store.sql.databases import (
    CommitInterrupted,
    LockTimeout,
    RetryableFailure,
    Unreachable,
)
from tablegate.gateway.store.store import Store

log = logging.getLogger(__name__)

# Attempts in immediate succession. After them the caller decides about waiting, as it knows which requests are delayed.
_ATTEMPTS = 4
_FIRST_PAUSE_S = 0.002
_LONG_ATTEMPT_S = 1.0
# Errors that some commands of a list can have alone.
_OF_SOME = errors.DatabaseFailed | errors.NodeAway


class Transactions:
    """Runs reads and writes against a store.

    `failover_s` is the time to wait for a database that cannot be reached. `now` returns nanoseconds since 1970.
    """

    def __init__(
        self, store: Store, failover_s: float, now: Callable[[], int], installation: Installation
    ) -> None:
        self._store = store
        self._failover_s = failover_s
        self._now = now
        self.readers: FunctionsOfCommands[reading.Reader] = FunctionsOfCommands(installation, {})
        """The functions of reads that capabilities have registered."""
        self.write_hooks = WriteHooks(installation, Tokens, Numbering, StreamRecorder)
        """The hooks of writes, in the order of locks (docs/architecture.md section 4). Those of capabilities come before
        streams."""

    def read(self, commands: list[Command[Any]]) -> list[Any]:
        """Return the outcome or GatewayError of each read, all from one snapshot."""
        answer = self.with_retries(self._read_once, commands)
        if isinstance(answer, _OF_SOME) and len(commands) > 1:
            half = len(commands) // 2
            return self.read(commands[:half]) + self.read(commands[half:])
        return [answer] * len(commands) if isinstance(answer, errors.GatewayError) else answer

    def _read_once(self, commands: list[Command[Any]]) -> list[Any]:
        try:
            return reading.read(self._store, commands, self.readers, self._now() // 1_000_000)
        except (errors.GatewayError, RetryableFailure):
            raise
        except Exception as error:
            log.exception("a list of reads failed")
            raise errors.DatabaseFailed(repr(error)) from error

    def write(self, groups: list[WriteGroup], nowait: bool = False) -> list[Any]:
        """Return the outcomes or GatewayError of each group, all from one transaction."""
        answer = self.with_retries(self.write_once, groups, nowait)
        if isinstance(answer, _OF_SOME) and len(groups) > 1:
            # Only the failing group may get the error, so find it by bisection.
            half = len(groups) // 2
            return self.write(groups[:half], nowait) + self.write(groups[half:], nowait)
        return [answer] * len(groups) if isinstance(answer, errors.GatewayError) else answer

    def write_once(self, groups: list[WriteGroup], nowait: bool = False) -> list[Any]:
        """Make one attempt of `write`. Raises RetryableFailure, CommitUnknown, and other GatewayErrors."""
        batch = WriteBatch(self._store, self.write_hooks.for_features, groups, self._now() // 100, nowait)
        self.run_transaction(batch.run)
        return batch.answers

    def run_transaction(self, transaction: Callable[[], None]) -> None:
        """Run a write transaction to its end. Raises RetryableFailure, CommitUnknown, and other GatewayErrors."""
        try:
            transaction()
        except CommitInterrupted as interruption:
            # The outcome is read from the database. After a commit the computed answers are valid. Otherwise the
            # attempt is repeated.
            self._require_commit(interruption)
        except (errors.GatewayError, RetryableFailure):
            raise
        except Exception as error:
            # The driver rejected a value, or there is a defect. Other requests of the list must not fail for it.
            log.exception("a list of writes failed")
            raise errors.DatabaseFailed(repr(error)) from error

    def _require_commit(self, interruption: CommitInterrupted) -> None:
        """Return if the transaction was committed. Raises RetryableFailure if not, CommitUnknown if that is unknown."""
        is_committed = self._is_committed(interruption.transaction_id)
        if is_committed is None:
            raise errors.CommitUnknown("the connection was lost at COMMIT") from interruption
        if not is_committed:
            raise RetryableFailure(
                "the connection was lost at COMMIT, which did not happen"
            ) from interruption

    def _error_of_lost_commit(self, interruption: CommitInterrupted) -> errors.GatewayError:
        try:
            self._require_commit(interruption)
        except RetryableFailure as reason:
            return errors.Contended(str(reason))
        except errors.CommitUnknown as error:
            return error
        return errors.CommitUnknown("the connection was lost at COMMIT, which did happen")

    def _is_committed(self, transaction_id: str | None) -> bool | None:
        deadline = time.monotonic() + self._failover_s
        pause = 0.05
        while True:
            is_committed = self._store.database.committed(transaction_id)
            if is_committed is not None or time.monotonic() >= deadline:
                return is_committed
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def with_retries(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run work that may fail temporarily, up to _ATTEMPTS times with short pauses. Return its result or its
        GatewayError.

        A lock timeout is not retried here, because other requests wait behind this call.
        """
        pause = _FIRST_PAUSE_S
        start = time.monotonic()
        for attempt in range(_ATTEMPTS):
            try:
                return work(*arguments)
            except LockTimeout as reason:
                return errors.Contended(str(reason))
            except Unreachable as reason:
                return errors.Contended(str(reason), self._failover_s)
            except RetryableFailure as reason:
                log.info("attempt %d failed and will be retried: %s", attempt + 1, reason)
                if time.monotonic() - start > _LONG_ATTEMPT_S:
                    break
                time.sleep(pause * random.uniform(0.5, 1.5))
                pause *= 2
            except CommitInterrupted as interruption:
                # The control plane lost its answer, even if the commit happened.
                return self._error_of_lost_commit(interruption)
            except errors.GatewayError as error:
                return self._log_and_classify(error)
        return errors.Contended("the database did not yield")

    def _log_and_classify(self, error: errors.GatewayError) -> errors.GatewayError:
        """Log an error of the database, and record damage. Return SchemaTooNew if a changed schema is the cause."""
        if isinstance(error, errors.DataCorrupted):
            self._store.note_damage(error)
        elif isinstance(error, errors.DatabaseFailed | errors.CommitUnknown):
            try:
                self._store.check_schema()
            except errors.SchemaTooNew as too_new:
                return too_new
            except Exception as second:
                log.info("cannot read the schema version: %r", second)
            log.error("the database failed: %r", error)
        return error
