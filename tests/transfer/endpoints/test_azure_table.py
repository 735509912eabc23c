"""Ranges of an Azure table (transfer/endpoints/azure_table.py): together always the whole table, none twice.

Keys are ordered by UTF-16 code units, as the service compares them (docs/protocols/azure-table.md).
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tablegate.transfer.endpoints.azure_table import Range, divide_range, filter_of

Keys = list[tuple[str, str]]
_CHARACTERS = st.text("ab0'\ud7ff\ue000\uffff\U00010000\U0010ffff é", max_size=4)
_KEYS = st.lists(st.tuples(_CHARACTERS, _CHARACTERS), max_size=40, unique=True)


def order(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def sort_key(key: tuple[str, str]) -> tuple[bytes, bytes]:
    return order(key[0]), order(key[1])


def is_in(key: tuple[str, str], bounds: Range) -> bool:
    if "partition" in bounds and key[0] != bounds["partition"]:
        return False
    value = order(key["partition" in bounds])
    if "from" in bounds and value < order(bounds["from"]):
        return False
    if "after" in bounds and value <= order(bounds["after"]):
        return False
    return not ("to" in bounds and value >= order(bounds["to"]))


class Table:
    def __init__(self, keys: Keys) -> None:
        self.keys = sorted(keys, key=sort_key)
        self.probes = 0

    def first(self, bounds: Range) -> tuple[str, str] | None:
        self.probes += 1
        return next((key for key in self.keys if is_in(key, bounds)), None)


@given(_KEYS, st.integers(1, 12), st.tuples(_CHARACTERS, _CHARACTERS))
def test_every_key_is_in_one_range_also_one_that_comes_later(
    keys: Keys, wanted: int, later: tuple[str, str]
) -> None:
    table = Table(keys)
    ranges = divide_range(wanted, table.first)
    for key in [*keys, later]:
        assert sum(is_in(key, bounds) for bounds in ranges) == 1, (key, ranges)
    assert len(ranges) <= wanted + 2
    assert table.probes <= 40 + 8 * wanted


def test_a_table_of_many_partitions_is_divided_evenly() -> None:
    keys = [(f"customer-{number:04}", "") for number in range(3000)]
    ranges = divide_range(8, Table(keys).first)
    sizes = [sum(is_in(key, bounds) for key in keys) for bounds in ranges]
    assert len(ranges) == 8
    assert max(sizes) <= 1000


def test_one_partition_is_divided_by_its_row_keys() -> None:
    keys = [("hot", f"{number:05}") for number in range(2000)]
    ranges = divide_range(6, Table(keys).first)
    sizes = [sum(is_in(key, bounds) for key in keys) for bounds in ranges]
    assert ranges[0] == {"to": "hot"} and ranges[-1] == {"after": "hot"}
    assert len(ranges) == 8
    assert max(sizes) <= 1000


def test_a_range_as_a_filter() -> None:
    assert filter_of({}) == ""
    assert filter_of({"from": "it's", "to": "z"}) == "PartitionKey ge 'it''s' and PartitionKey lt 'z'"
    assert filter_of({"partition": "p", "after": "r"}) == "PartitionKey eq 'p' and RowKey gt 'r'"
