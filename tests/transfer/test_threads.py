"""Ctrl-C while threads wait for a service."""

from __future__ import annotations

import _thread
import threading

import pytest

from tablegate.transfer import threads
from tablegate.transfer.comparing.verifying import verify
from tablegate.transfer.threads import busy_threads
from tests.support.waiting import PATIENCE_S, wait_until
from tests.transfer.support.memory_endpoint import MemoryEndpoint, MemoryTable, definition_of, rows_of


@pytest.mark.usefixtures("in_foreground")
def test_ctrl_c_ends_a_comparison_that_waits_for_a_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that is busy is retried for minutes."""
    monkeypatch.setattr(threads, "_PATIENCE_S", 0.1)
    first, second = (MemoryEndpoint(MemoryTable(definition_of(), rows_of(10))) for _ in range(2))
    is_answered = threading.Event()

    def wait_for_the_service() -> None:
        _thread.interrupt_main()
        is_answered.wait(PATIENCE_S)

    second.when("scan", wait_for_the_service)
    with pytest.raises(KeyboardInterrupt):
        verify(first, second)
    assert busy_threads()
    is_answered.set()
    wait_until(lambda: not busy_threads())
