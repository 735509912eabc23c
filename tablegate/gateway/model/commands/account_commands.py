"""Commands for the documents that a dialect stores for an account as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tablegate.gateway.model.authorization.permissions import Permission
from tablegate.gateway.model.commands.command import AccountRead, ControlCommand


@dataclass(frozen=True, slots=True)
class GetProperties(AccountRead[dict[str, Any] | None]):
    """Read a document of a namespace by name. Outcome: the document, or None."""

    namespace: str
    name: str

    permission = Permission.READ_ACCOUNT


@dataclass(frozen=True, slots=True)
class PutProperties(ControlCommand[None]):
    """Store a document (plain JSON values) of a namespace by name. Outcome: None."""

    namespace: str
    name: str
    document: Mapping[str, Any]

    permission = Permission.WRITE_ACCOUNT
