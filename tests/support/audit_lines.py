"""A sink of the audit log that keeps its lines in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tablegate.gateway.observability.audit import AuditSink


class Gathering(AuditSink):
    """Keeps lines. They are complete once the trail is closed."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def write(self, lines: Sequence[bytes]) -> None:
        self.lines += map(json.loads, lines)
