"""Requests of each dialect, good ones and bad ones, for the test that both entries answer alike
(tests/across_dialects/test_both_entries.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tablegate.gateway.http.messages import Reply, Request

NOW_MS = 1_700_000_000_123


class Case(NamedTuple):
    """A request and its operation."""

    name: str
    operation: str
    request: Request


Send = Callable[[Case], Reply]
"""Sends a case through both entries, compares the answers, and gives one of them."""
