"""Commands for the documents that a dialect stores for an account as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tablegate.gateway.model.commands.command import BaseCommand


@dataclass(frozen=True, slots=True)
class GetProperties(BaseCommand[dict[str, Any] | None]):
    """Read a document of a namespace by name. Outcome: the document, or None."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class PutProperties(BaseCommand[None]):
    """Store a document (plain JSON values) of a namespace by name. Outcome: None."""

    namespace: str
    name: str
    document: Mapping[str, Any]


AccountCommand = GetProperties | PutProperties
