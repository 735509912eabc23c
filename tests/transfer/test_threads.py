"""Ctrl-C while threads wait for a service."""

from __future__ import annotations

import _thread
import threading

import pytest

from tablegate.gateway.security.credentials import DEV_AZURE_ACCOUNT
from tablegate.transfer import threads
from tablegate.transfer.comparing.verifying import verify
from tablegate.transfer.endpoints.azure_table_client import Account, Client
from tablegate.transfer.endpoints.batching import RetryBudget
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
    assert threads.busy_threads()
    is_answered.set()
    wait_until(lambda: not threads.busy_threads())


def test_a_client_of_azure_table_is_closed_while_it_waits_for_the_service() -> None:
    client = Client(Account(DEV_AZURE_ACCOUNT, "http://127.0.0.1:1"), RetryBudget(1, "azure-table://a/t"))
    have_begun, is_answered = threading.Barrier(3), threading.Event()

    def request(_: int) -> None:
        have_begun.wait(PATIENCE_S)
        is_answered.wait(PATIENCE_S)

    caller = threading.Thread(target=lambda: client.each(request, range(2)))
    caller.start()
    have_begun.wait(PATIENCE_S)
    client.close()
    assert threads.busy_threads()
    is_answered.set()
    caller.join()
    wait_until(lambda: not threads.busy_threads())
