"""The disposition of SIGINT, which tests of Ctrl-C must not inherit: a shell starts background processes with SIGINT ignored."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def in_foreground() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, here and in child processes, as in the foreground of a terminal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def in_background() -> Iterator[None]:
    """Ignore SIGINT, here and in child processes, as a shell has it for `command &` (POSIX, 2.11 of Shell Command Language)."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)
