"""What becomes of a table and of its rows in another service: one pure mapping, asked by lint, copy and verify alike.

Knows which of the adapters' own conversions (`values`, `keys`, `names`) and limits apply to a target; converts nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gateway.model.keys import Key
from gateway.model.rows import Row
from transfer.endpoints.endpoint import Definition, Service
from transfer.mapping.rules import Finding


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """What its user chooses about a mapping. The same options must be given to copy and to verify.

    `escape_keys`: characters that a target's keys cannot have are written `_xHHHH_`, and read back by a mapping the other way;
    otherwise such rows are rejected.
    """

    escape_keys: bool = False


class Mapped(NamedTuple):
    """A row as the target is to hold it, None where it cannot; and every rule that changed or lost something of it, or
    rejected it."""

    row: Row | None
    findings: tuple[Finding, ...]


class Mapping:
    """From the rows of one table to those of its copy. Pure; may be used by several threads."""

    definition: Definition
    """The table to be made in the target."""
    notes: tuple[Finding, ...]
    """What of the source's definition the target cannot have."""

    def __init__(
        self,
        source: Definition,
        target: Service,
        existing: Definition | None = None,
        options: MappingOptions = MappingOptions(),
    ) -> None:
        """`existing`: the target's table, if there is one. Raises SchemaChanged where its key cannot hold the source's."""
        raise NotImplementedError

    def map(self, row: Row) -> Mapped:
        """The row in the target."""
        raise NotImplementedError

    def key(self, key: Key) -> Key | None:
        """The key of the row's copy; None where the target cannot have it (such a row was rejected)."""
        raise NotImplementedError
