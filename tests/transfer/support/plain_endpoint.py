"""A read-only table in memory as an endpoint, for tests of comparisons and lint. It can contain rows twice.

`changing` is called before each lookup, to simulate another writer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tablegate.gateway.model.values.keys import Key, partition_hash
from tablegate.gateway.model.values.rows import Row
from tablegate.transfer.endpoints.endpoint import (
    JSON,
    ChangedKeys,
    Definition,
    Endpoint,
    Reject,
    ScanPage,
    Service,
)


class PlainEndpoint(Endpoint):
    """Rows in a list, in the order in which they were given."""

    def __init__(
        self, definition: Definition, rows: Sequence[Row], service: Service | None = None, page_rows: int = 7
    ) -> None:
        self.definition = definition
        self.rows = list(rows)
        self.service = service or definition.service
        self.shown = f"memory:{definition.name}"
        self.page_rows = page_rows
        self.changing: Callable[[], None] = lambda: None
        self.looked_up = 0

    def describe(self) -> Definition:
        return self.definition

    def create(self, definition: Definition) -> list[str]:
        raise NotImplementedError

    def segments(self, wanted: int) -> list[JSON]:
        return [[number, wanted] for number in range(wanted)]

    def scan(self, segment: JSON, resume: JSON | None = None) -> Iterator[ScanPage]:
        number, of = segment
        mine = [row for row in self.rows if partition_hash(row.position.partition) % of == number]
        for at in range(0, max(len(mine), 1), self.page_rows):
            after = at + self.page_rows
            yield ScanPage(mine[at:after], after if after < len(mine) else None)

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        assert self.looks_up
        self.changing()
        self.looked_up += len(keys)
        rows = {row.position: row for row in self.rows}
        return [rows.get(key.position) for key in keys]

    def write(self, rows: Sequence[Row]) -> list[Reject]:
        raise NotImplementedError

    def delete(self, keys: Sequence[Key]) -> None:
        raise NotImplementedError

    def capture(self) -> JSON:
        raise NotImplementedError

    def changes(self, position: JSON) -> ChangedKeys:
        raise NotImplementedError

    def close(self) -> None:
        pass


class WholeEndpoint(PlainEndpoint):
    """One that can only be read as a whole, as a file."""

    looks_up = False
