"""A dialect whose modules are loaded when its first request comes.

A server in a test's hand is mostly asked in one dialect, and starts for each run: modules of dialects that nobody asks would be
a third of its start. Knows no dialect.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any

from gateway.dialect import Claims, Dialect


def _is_worked_out(dialect: Dialect, member: str) -> bool:
    """Whether a member is worked out when somebody first asks for it, as few do."""
    return isinstance(getattr(type(dialect), member, None), cached_property)


class LateDialect:
    """Stands for a Dialect: what is in its Claims is known, and whatever else anybody wants of it loads it. From then on its
    own methods stand here, so that requests take no longer way."""

    def __init__(self, claims: Claims, load: Callable[[], Dialect]) -> None:
        self.name = claims.name
        self.hint = claims.hint
        self.service_hosts = claims.service_hosts
        self.claims = claims.claims
        self._load = load
        self._lock = threading.Lock()
        self._loaded: Dialect | None = None

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if self._loaded is None:
                loaded = self._load()
                known = vars(self)
                members = [
                    member
                    for member in dir(loaded)
                    if not member.startswith("_")
                    and member not in known
                    and not _is_worked_out(loaded, member)
                ]
                known.update({member: getattr(loaded, member) for member in members})
                self._loaded = loaded
        return getattr(self._loaded, name)
