"""Hostile requests: every field of every message is random, with valid, nearly valid, extreme and damaged values.

The schema drives it, so a new field is included.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tablegate.adapters.tablestore.wire.plainbuffer import (
    AUTO_INCREMENT,
    HEADER,
    Bound,
    CellOperation,
    WireCell,
    WireRow,
    encode_row,
    encode_value,
    row_bytes,
)
from tablegate.adapters.tablestore.wire.protocol import table_store_pb2 as messages
from tests.adapters.tablestore.client import datum

_INTEGERS = (
    0,
    1,
    2,
    3,
    10,
    32,
    100,
    5_000,
    86_400,
    1 << 20,
    -1,
    -2,
    1_700_000_000_000,
    1_700_000_000_123_000,
)
_EDGES = {32: (2**31 - 1, -(2**31)), 64: (2**63 - 1, -(2**63), 2**31, 2**53)}
_COLUMNS = ("p", "i", "n", "d", "a", "b", "late", "x1", "", "#", "é", "a" * 256, "_")
_TABLES = (
    "t",
    "t",
    "t",
    "wide",
    "drawn",
    "drawn",
    "by_d",
    "by_n",
    "plain",
    "new",
    "",
    "no-good",
    "T" * 256,
    "é",
)
_TEXTS = ("", "a", "b", "m", "zz", "é", "\x00", "\U0001f600", "12", "-1.5", "nan", "x" * 1025, "y" * 5000)
_REGEXES = (
    "([0-9]+)",
    "(",
    "",
    "(a+)+$",
    "\\d{1,1000}",
    "(?i)a",
    "[",
    "(.*)(.*)(.*)",
    "\\1",
    "a{99999}",
    "(?=a)",
)
_STATEMENTS = (
    "select * from t",
    "select p, count(*) from wide group by p order by 2 desc",
    "select a.p from t a join drawn b on a.i = b.i where a.p > 'b' limit 3",
    "show tables",
    "desc plain",
    "select count(*) from t where i between 1 and 5 and not p like '%a'",
    "select",
    "selec",
    "select * from é",
    "select (((((" + "1" * 500,
    "select " + "not " * 2000 + "1",
    "select 'a' regexp '(a+)+$'",
    "create table t (p varchar(9), i bigint, primary key(p, i))",
    "drop mapping table t",
    "\x00",
    "select 1e999, -9223372036854775808 - 1, 1 / 0",
)
_NUMBERS = (0, 1, -1, 5, 2**63 - 1, -(2**63))
_FLOATS = (0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), 1e308, 5e-324)
_KEYS: tuple[tuple[str, type], ...] = (("p", str), ("i", int))


class Hostile:
    """A source of requests. `seen`: opaque texts and bytes of earlier answers, which later requests send again."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seen: dict[str, list[bytes]] = {}
        self._wildness = 0.0
        self._bytes: dict[str, Callable[[], bytes]] = {
            "filter": self._filter,
            "column_condition": self._filter,
            "column_value": lambda: encode_value(self._value()),
            "begin": lambda: encode_value(self._value()),
            "end": lambda: encode_value(self._value()),
            "row": self._row,
            "row_change": self._row,
            "primary_key": self._key,
            "inclusive_start_primary_key": self._bound,
            "exclusive_end_primary_key": self._bound,
            "key": self._partition,  # of StartLocalTransaction
        }
        self._texts: dict[str, Sequence[str]] = {
            "table_name": _TABLES,
            "main_table_name": _TABLES,
            "index_name": _TABLES,
            "name": _COLUMNS,
            "primary_key": _COLUMNS,
            "defined_column": _COLUMNS,
            "column_name": _COLUMNS,
            "columns": _COLUMNS,
            "columns_to_get": _COLUMNS,
            "return_column_names": _COLUMNS,
            "start_column": _COLUMNS,
            "end_column": _COLUMNS,
            "regex": _REGEXES,
            "query": _STATEMENTS,
        }

    def request(self, kind: type[Message]) -> bytes:
        """A request of this kind, mostly one that can be read."""
        self._wildness = self.random.choice((0.0, 0.0, 0.0, 0.2, 1.0))
        data = self._message(kind()).SerializePartialToString()
        return self._torn(data) if self._odd(0.03) else data

    def remember(self, answer: Message) -> None:
        """Keep what an answer has of opaque texts."""
        for field, value in answer.ListFields():
            if field.name in ("shards", "streams"):
                for each in value:
                    self.remember(each)
            elif field.name.endswith(("_id", "_iterator", "token", "start_primary_key")):
                kept = self.seen.setdefault(field.name.removeprefix("next_"), [])
                kept.append(value if isinstance(value, bytes) else value.encode())
                del kept[:-8]

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _odd(self, share: float) -> bool:
        """Decide on an invalid value, with this probability in the wildest requests."""
        return self._chance(share * self._wildness)

    def _message(self, made: Any, depth: int = 0) -> Any:
        for field in made.DESCRIPTOR.fields:
            if field.label == FieldDescriptor.LABEL_REQUIRED:
                wanted = not self._odd(0.005)
            else:
                wanted = self._is_wanted(field, 0.3 if depth else 0.4)
            if not wanted:
                continue
            if field.label == FieldDescriptor.LABEL_REPEATED:
                least = field.name in ("tables", "rows", "primary_key") and not self._odd(0.1)
                many = self.random.choice((least, 1, 1, 2, 3)) if depth < 5 else 0
                for _ in range(many):
                    if field.type == FieldDescriptor.TYPE_MESSAGE:
                        self._message(getattr(made, field.name).add(), depth + 1)
                    else:
                        getattr(made, field.name).append(self._scalar(field))
            elif field.type == FieldDescriptor.TYPE_MESSAGE:
                part = getattr(made, field.name)
                part.SetInParent()
                self._message(part, depth + 1)
            else:
                setattr(made, field.name, self._scalar(field))
        return made

    def _is_wanted(self, field: FieldDescriptor, share: float) -> bool:
        if field.name == "max_versions":
            return not self._odd(0.3)
        if field.name in ("time_range", "token", "partitions", "column_condition"):
            return self._odd(0.3) or (field.name == "column_condition" and self._chance(0.2))
        if field.name == "transaction_id":
            return self._chance(0.1)
        return self._chance(share) or field.name in ("table_options", "tables", "rows", "primary_key")

    def _scalar(self, field: FieldDescriptor) -> Any:
        choose = self.random.choice
        match field.type:
            case FieldDescriptor.TYPE_ENUM:
                assert field.enum_type is not None
                return choose(field.enum_type.values).number
            case FieldDescriptor.TYPE_BOOL:
                return choose((True, False))
            case FieldDescriptor.TYPE_STRING:
                names = self._texts.get(field.name)
                if names is None:
                    return self._opaque(field.name).decode(errors="replace")
                if (
                    names is _TABLES
                    and str(field.containing_type and field.containing_type.name) == "DeleteTableRequest"
                ):
                    return choose(_TABLES[6:] if self._chance(0.7) else _TABLES)
                return choose(names if self._odd(0.2) else names[:6])
            case FieldDescriptor.TYPE_BYTES:
                draw = self._bytes.get(field.name)
                data = self._opaque(field.name) if draw is None else draw()
                return self._torn(data) if self._odd(0.04) else data
            case FieldDescriptor.TYPE_INT32 | FieldDescriptor.TYPE_SINT32:
                return choose((*_INTEGERS[:11], -1, *_EDGES[32]) if self._odd(0.5) else _INTEGERS[1:6])
            case FieldDescriptor.TYPE_UINT64:
                return choose((0, 1, 2**63, 2**64 - 1))
            case FieldDescriptor.TYPE_INT64 | FieldDescriptor.TYPE_SINT64:
                return choose((*_INTEGERS, *_EDGES[64]) if self._odd(0.5) else _INTEGERS[1:6])
        raise AssertionError(f"a field of a type that nobody draws: {field.full_name}")

    def _opaque(self, name: str) -> bytes:
        kept = self.seen.get(name)
        return (
            self.random.choice((b"", b"nothing", b"a\x00_\x00", b"a_b:0:0\x00"))
            if not kept or self._odd(0.2)
            else self.random.choice(kept)
        )

    def _torn(self, data: bytes) -> bytes:
        at = self.random.randrange(len(data) + 1)
        more = self.random.choice((b"", b"\x00", b"\xff\xff\xff\xff", b"\x0a", b"u\x00\x00\x00"))
        return data[:at] + more + data[at + self.random.randrange(4) :]

    def _value(self) -> Any:
        choose = self.random.choice
        kind = self.random.randrange(9 if self._odd(0.5) else 6)
        if kind < 6:
            text = choose(_TEXTS if self._odd(0.1) else _TEXTS[:6])
            return datum(
                (
                    choose(_NUMBERS),
                    text,
                    text.encode(),
                    choose((True, False)),
                    choose(_FLOATS),
                    self.random.randrange(9),
                )[kind]
            )
        return choose((*Bound, datum(7), datum("a")))

    def _cell(self) -> WireCell:
        operation = self.random.choice(list(CellOperation)) if self._chance(0.3) else None
        value: Any = self._value()
        if operation is CellOperation.INCREMENT and not self._odd(0.3):
            value = datum(self.random.choice(_NUMBERS))
        elif operation is not None and not self._odd(0.3):
            value = None
        stamp = None
        if operation is CellOperation.DELETE_ONE or self._odd(0.3):
            stamp = self.random.choice((*_INTEGERS, *_EDGES[64]) if self._odd(0.5) else _INTEGERS[-2:])
        return WireCell(
            self.random.choice(_COLUMNS if self._odd(0.1) else _COLUMNS[2:8]), value, stamp, operation
        )

    def _key_cells(self, bounds: bool = False) -> list[WireCell]:
        cells = []
        for name, kind in _KEYS:
            value: Any = self.random.choice(("a", "b", "m")) if kind is str else self.random.randrange(-3, 9)
            if bounds and self._chance(0.4):
                value = self.random.choice((Bound.INF_MIN, Bound.INF_MAX))
            elif self._odd(0.04):
                value = self._value()
            elif kind is int and self._chance(0.1):
                value = AUTO_INCREMENT
            cells.append(WireCell(name, datum(value)))
        if self._odd(0.03):
            self.random.shuffle(cells)
        if self._odd(0.03):
            cells = cells[: self.random.randrange(2)] or [self._cell()]
        return cells

    def _encoded(self, made: WireRow) -> bytes:
        try:
            return HEADER + 2 * row_bytes(made) if self._odd(0.01) else encode_row(made)
        except (
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            struct.error,
        ):  # what even our own writer cannot say
            return self._torn(encode_row(WireRow(self._key_cells())))

    def _row(self) -> bytes:
        cells = [self._cell() for _ in range(self.random.choice((0, 1, 2, 3, 8)))]
        return self._encoded(WireRow(self._key_cells(), cells, is_delete=self._odd(0.2)))

    def _key(self) -> bytes:
        return self._encoded(WireRow(self._key_cells(), (), is_delete=self._chance(0.4)))

    def _bound(self) -> bytes:
        return (
            self._opaque("start_primary_key")
            if self._chance(0.1)
            else self._encoded(WireRow(self._key_cells(bounds=True)))
        )

    def _partition(self) -> bytes:
        return self._encoded(WireRow(self._key_cells()[: 2 if self._odd(0.1) else 1]))

    def _filter(self, depth: int = 0) -> bytes:
        kind = self.random.choice((1, 1, 1, 2, 3) if depth < 4 else (1,))
        if kind == 1:
            part: Any = self._message(messages.SingleColumnValueFilter(), 2)
        elif kind == 2:
            subs = [self._filter(depth + 1) for _ in range(self.random.choice((0, 1, 2, 3)))]
            part = messages.CompositeColumnValueFilter(combinator=self.random.choice((1, 2, 3)))  # type: ignore[arg-type]
            for sub in subs:
                part.sub_filters.add().MergeFromString(sub)
        else:
            part = self._message(messages.ColumnPaginationFilter(), 2)
        filled = messages.Filter(filter=part.SerializePartialToString())
        filled.type = kind  # type: ignore[assignment]
        return filled.SerializeToString()
