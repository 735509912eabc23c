"""A sender of recorded requests, which compares units, rows and refusals with those of the service."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from tablegate.adapters.tablestore.wire.plainbuffer import Bound, decode_row
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import Refused, TableStoreService, plain, row, rows_of, units_of
from tests.adapters.tablestore.filter_messages import single

MIN, MAX = Bound.INF_MIN, Bound.INF_MAX
NEW = messages.EXPECT_NOT_EXIST
EQ = messages.CT_EQUAL

KEYS = {
    "one": ("name",),
    "two": ("game", "player"),
    "lsi": ("game", "score", "player"),
    "gsi": ("player", "time", "game"),
}


def revised(cells: dict[str, Any], revision: str) -> dict[str, Any]:
    return {**cells, "revision": revision}


def revision_is(revision: str) -> bytes:
    return single("revision", EQ, revision, if_missing=False)


@dataclass
class Recording:
    """Sends the requests of a recording, counts them, and keeps the rows that the service must have."""

    service: TableStoreService
    rows: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict)
    sent: int = 0

    def describe(self, table: str) -> Any:
        self.sent += 1
        answer = self.service.call("DescribeTable", table_name=table)
        assert answer.table_meta.table_id
        assert answer.table_options == messages.TableOptions(
            time_to_live=-1,
            max_versions=1,
            deviation_cell_version_in_sec=86400,
            allow_update=True,
            update_full_row=False,
        )
        assert answer.table_status == messages.ACTIVE
        assert answer.stream_details == messages.StreamDetails(enable_stream=False, last_enable_time=0)
        assert answer.sse_details == messages.SSEDetails(enable=False)
        return answer

    def put(
        self,
        key: tuple[str, ...],
        cells: dict[str, Any],
        units: tuple[int, int],
        expect: int = NEW,
        **more: Any,
    ) -> None:
        self.sent += 1
        table = table_of(key)
        answer = self.service.put(named(table, key), cells, table, expect=expect, **more)
        assert units_of(answer) == units
        assert answer.row == b""
        self.rows[key] = cells

    def refused(self, key: tuple[str, ...], cells: dict[str, Any], message: str, **more: Any) -> None:
        self.sent += 1
        table = table_of(key)
        with pytest.raises(Refused) as told:
            self.service.put(named(table, key), cells, table, **more)
        assert (told.value.status, told.value.code) == (403, "OTSConditionCheckFail")
        assert told.value.message == message

    def delete(self, key: tuple[str, ...], units: tuple[int, int], revision: str | None = None) -> None:
        self.sent += 1
        table = table_of(key)
        more = {} if revision is None else {"column_condition": revision_is(revision)}
        assert units_of(self.service.delete(named(table, key), table, **more)) == units
        self.rows.pop(key, None)

    def get(self, *keys: tuple[str, ...], columns: tuple[str, ...] = ()) -> None:
        """BatchGetRow with an empty token for each row: the rows, their columns by name."""
        self.sent += 1
        table = table_of(keys[0])
        asked = messages.TableInBatchGetRowRequest(
            table_name=table, max_versions=1, columns_to_get=columns, token=[b""] * len(keys)
        )
        asked.primary_key.extend(row(named(table, key)) for key in keys)
        found = self.service.call("BatchGetRow", tables=[asked]).tables[0].rows
        for key, each in zip(keys, found, strict=True):
            assert each.is_ok
            assert units_of(each) == (1, 0)
            kept = self.rows.get(key)
            if kept is None:
                assert each.row == b""
                continue
            cells = {name: kept[name] for name in sorted(kept) if not columns or name in columns}
            assert list((plain(decode_row(each.row)) or {}).items()) == list(
                {**named(table, key), **cells}.items()
            )

    def scan(
        self,
        table: str,
        start: tuple[Any, ...],
        end: tuple[Any, ...],
        wanted: list[tuple[str, ...]],
        condition: bytes | None = None,
    ) -> None:
        """Check a GetRange without a limit: the rows of these keys (of the table itself), one read unit, and no further
        page.
        """
        self.sent += 1
        more = {} if condition is None else {"filter": condition}
        answer = self.service.range(named(table, start), named(table, end), table, **more)
        assert units_of(answer) == (1, 0)
        assert (answer.data_block_type, answer.compress_type) == (
            messages.DBT_PLAIN_BUFFER,
            messages.CPT_NONE,
        )
        assert not answer.HasField("next_start_primary_key")
        shown = []
        for key in wanted:
            whole = {**named(table_of(key), key), **self.rows[key]}
            columns = [*KEYS[table], *sorted(set(whole) - set(KEYS[table]))]
            shown.append([(name, whole[name]) for name in columns])
        assert [list((each or {}).items()) for each in rows_of(answer)] == shown

    def scan_all(self) -> None:
        """The first requests of each recorded test: its table, and all that is in it."""
        self.describe("one")
        self.scan("one", (MIN,), (MAX,), sorted(key for key in self.rows if len(key) == 1))

    def begin(self, game: str) -> str:
        self.sent += 1
        answer = self.service.call("StartLocalTransaction", table_name="two", key=row({"game": game}))
        assert units_of(answer) == (0, 1)
        return str(answer.transaction_id)

    def end(self, operation: str, transaction: str) -> None:
        self.sent += 1
        assert units_of(self.service.call(operation, transaction_id=transaction)) == (0, 1)


def table_of(key: tuple[str, ...]) -> str:
    return "one" if len(key) == 1 else "two"


def named(table: str, key: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(KEYS[table], key, strict=True))
