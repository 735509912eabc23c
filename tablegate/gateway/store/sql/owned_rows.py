"""The rows that a table, an index or another owner has, by kind. They are purged after the owner is dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tablegate.gateway.store.sql import counters
from tablegate.gateway.store.sql.databases import Session


class OwnedRows(NamedTuple):
    """The rows of a kind of owner.

    - `table`, `owner`: the SQL table, and its column with the id of the owner
    - `key`: the other columns of the key
    - `size`: the billed bytes of a row, "0" if rows are small
    - `narrow`: a condition that all rows meet, so that they are counted in an index without bodies
    - `forget`: deletes up to a number of counters of an owner that has no rows left, and returns their number
    """

    table: str
    owner: str
    key: str
    size: str = "0"
    narrow: str = ""
    forget: Callable[[Session, int, int], int] | None = None

    @property
    def counting(self) -> str:
        """The statement that counts the rows of an owner, up to a limit."""
        narrow = f" AND {self.narrow}" if self.narrow else ""
        return f"SELECT count(*) FROM (SELECT 1 FROM {self.table} WHERE {self.owner} = ?{narrow} LIMIT ?) AS counted"


KINDS = {
    "table": OwnedRows(
        "rows", "table_id", "partition, sort", "size_bytes", "slot >= 0", counters.forget_table
    ),
    "index": OwnedRows("entries", "index_id", "partition, sort", narrow="slot >= 0"),
}
"""The kinds by their names in `purges`. A capability adds its kinds beside the SQL that writes their rows."""
