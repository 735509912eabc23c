"""The work of a statement, with its limits ("SQL limits", Tablestore developer guide, and our own)."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple

from tablegate.adapters.tablestore import capacity
from tablegate.adapters.tablestore.call import TableOrIndex
from tablegate.adapters.tablestore.features.sql.sql_values import sql_error
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError


class Step(NamedTuple):
    """A step of a statement, as EXPLAIN shows it. `rows_max`: the highest number of rows that it reads."""

    table: str
    access: str
    index_name: str
    condition: str
    rows_max: int


class Work:
    """The work of one statement so far, its subqueries included. Raises ServiceError beyond a limit.

    `explains`: each access reads one row and returns none, and is added to `steps`.
    """

    def __init__(
        self, hold: Callable[[int], None], check_client: Callable[[], None], explains: bool = False
    ) -> None:
        self._deadline = monotonic() + limits.SQL_SECONDS
        self._hold = hold
        self._check_client = check_client
        self._comparisons = self._kept_bytes = self._kept_sizes = 0
        self._rows = self._bytes = self._subqueries = 0
        self.explains = explains
        self.steps: list[Step] = []
        self.units: dict[str, int] = {}
        """Read units by table or secondary index."""
        self.search_units: dict[tuple[str, str], int] = {}
        """Read units by table and search index."""

    def add_page(self, target: TableOrIndex, rows: int, size_bytes: int, search_index: str = "") -> None:
        """Count a page of a table or an index."""
        capacity.count_read(target, capacity.of_read(size_bytes))
        self._rows += rows
        self._bytes += size_bytes
        units = capacity.units(size_bytes)
        if search_index:
            key = (target.table.name, search_index)
            self.search_units[key] = self.search_units.get(key, 0) + units
        else:
            name = target.table.name if target.index is None else target.index.name
            self.units[name] = self.units.get(name, 0) + units
        if self._rows > limits.SQL_ROWS_MAX or self._bytes > limits.SQL_BYTES_MAX:
            raise sql_error(
                f"The scanned data exceeds the limit of {limits.SQL_ROWS_MAX} rows or {limits.SQL_BYTES_MAX} bytes."
            )
        self.check_time()

    def add_subquery(self) -> None:
        """Count a subquery."""
        self._subqueries += 1
        if self._subqueries > limits.SQL_SUBQUERIES_MAX:
            raise sql_error(f"The number of subqueries exceeds {limits.SQL_SUBQUERIES_MAX}.")

    def keep(self, rows: int, columns: int, size_bytes: int) -> None:
        """Count rows that stay in memory. Raises Busy."""
        self._kept_bytes += size_bytes + limits.SQL_VALUE_BYTES * rows * columns
        self._hold(self._kept_bytes)

    def keep_value(self, value: Any) -> Any:
        """Count a computed value that stays in memory, and return it."""
        if isinstance(value, (str, bytes)):
            self._kept_sizes += len(value)
            if self._kept_sizes > limits.SQL_KEPT_MAX:
                raise sql_error(f"The values of the statement exceed {limits.SQL_KEPT_MAX} bytes.")
        self.check_time()
        return value

    def add_comparisons(self, number: int) -> None:
        """Count pairs of rows that a join or a subquery compares."""
        self._comparisons += number
        if self._comparisons > limits.SQL_COMPARISONS_MAX:
            raise sql_error(f"The statement compares more than {limits.SQL_COMPARISONS_MAX} pairs of rows.")

    @property
    def rest_ms(self) -> int:
        """The time that is left."""
        return max(1, int((self._deadline - monotonic()) * 1000))

    def check_time(self) -> None:
        """Called for each row or value, since a single one may take long to evaluate. Raises ServiceError, Busy."""
        self._check_client()
        if monotonic() > self._deadline:
            raise ServiceError("OTSTimeout", "The execution of the SQL statement timed out.")
