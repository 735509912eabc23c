"""Background work on a thread of its own: the engine's chores (backfill, expiry, purging), and news of credentials.

Knows when to call; what is done is the engine's.
"""

from __future__ import annotations

import threading
from time import monotonic

from gateway import logs
from gateway.credentials import Credentials
from gateway.engine.engine import Engine
from gateway.model.errors import Busy, Unknowable
from gateway.store.databases import CommitLost, Retry
from gateway.vault import Vault

_CREDENTIALS_S = 2.0
_AFTER_FAILURE_S = 1.0
# Between two pieces of long work, so that requests get in between.
_BREATH_S = 0.001
# A lost connection, a lock, a full disk: nothing that a traceback would tell more of.
_DATABASE_AWAY = (Busy, Unknowable, Retry, CommitLost)


class Chores(threading.Thread):
    """Works from `start()` to `stop()`; a failure is logged and tried again."""

    def __init__(self, engine: Engine, vault: Vault, credentials: Credentials) -> None:
        super().__init__(name="chores", daemon=True)
        self._engine = engine
        self._vault = vault
        self._credentials = credentials
        self._stopping = threading.Event()
        self._next_look = monotonic() + _CREDENTIALS_S
        self._is_waiting = False

    def run(self) -> None:
        pause = 0.0
        while not self._stopping.wait(max(pause, _BREATH_S)):
            pause = _AFTER_FAILURE_S
            try:
                wanted = min(self._engine.chores(), _CREDENTIALS_S)
                self._look_at_credentials()
                self._engine.retry_writes()  # after the work, which may have made room
                pause = wanted
                self._is_waiting = False
            except _DATABASE_AWAY as error:
                # One line, however long it takes: what is the matter with the database is known.
                if not self._is_waiting:
                    self._is_waiting = True
                    reason = " ".join(str(error).split())
                    logs.error("background work waits for the database", None, reason=reason)
            except Exception as error:
                logs.error("background work failed", error)

    def stop(self) -> None:
        """End after the piece of work in hand."""
        self._stopping.set()
        self.join()

    def look_at_credentials_now(self) -> None:
        """Look for news of credentials before the next piece of work."""
        self._next_look = 0.0

    def _look_at_credentials(self) -> None:
        if monotonic() >= self._next_look:
            self._next_look = monotonic() + _CREDENTIALS_S
            changed = self._vault.changes()
            if changed is not None:
                self._credentials.replace(changed)
