"""A statement enters at the node that has the slot that it names; nobody depends on a node being where it was thought to be."""

from __future__ import annotations

import pytest

from gateway.store import concatenated, rows, scans
from gateway.store.postgresql.distributed import nodes
from gateway.store.postgresql.distributed.database import slot_parameter
from gateway.store.postgresql.distributed.nodes import Address, Nodes

HERE, THERE = ("10.0.0.1", 5432), ("10.0.0.2", 5432)


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        (rows.GET, 3),
        (rows.LOOK_UP, 2),
        ("SELECT 1 FROM counters WHERE slot = ? AND name = ? FOR SHARE", 0),
        ("SELECT id FROM tables WHERE id = ANY(?::bigint[])", None),
        ("SELECT 1 FROM entries k WHERE k.row_slot = ? AND k.index_id = ?", None),
        ("SELECT 1 FROM rows r WHERE r.table_id = ? AND r.slot <= ?", None),
        (f"SELECT 1 FROM rows r WHERE r.table_id = ? AND {scans.columns_between('r', (b'a', b''), (b'a', b'b'), False)[0]}", 2),
    ],
)  # fmt: skip
def test_the_slot_of_a_statement_is_found(statement: str, place: int | None) -> None:
    assert slot_parameter(statement) == place


def test_the_slot_of_a_page_of_bodies_is_found() -> None:
    from gateway.model.pages import Concatenation
    from gateway.store.postgresql.distributed.statements import DistributedStatements

    statement = concatenated._statement(DistributedStatements(), False, Concatenation(","))
    assert slot_parameter(statement) == 2


class Opened:
    """Nodes as a test sees them: what was asked, what was opened."""

    def __init__(self, addresses: list[Address]) -> None:
        self.addresses = addresses
        self.asked = 0
        self.nodes: Nodes[Address] = Nodes(self._ask, lambda address: address)

    def _ask(self) -> list[Address]:
        self.asked += 1
        return self.addresses


def test_a_slot_has_its_node_and_nodes_are_asked_for_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Opened([HERE, THERE] * 128)
    assert [opened.nodes.address_of(slot) for slot in (0, 1, 255)] == [HERE, THERE, THERE]
    assert opened.nodes.database_at(THERE) is opened.nodes.database_at(THERE)
    assert opened.asked == 1
    opened.addresses = [THERE] * 256
    monkeypatch.setattr(nodes, "PERIOD_S", 0.0)
    assert opened.nodes.address_of(0) == THERE


def test_where_nothing_is_known_the_entry_is_asked() -> None:
    assert Opened([]).nodes.address_of(7) is None


def test_a_node_that_was_never_reached_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodes know each other by names that may mean nothing to the gateway."""
    monkeypatch.setattr(nodes, "_LEFT_ALONE_S", -1.0)
    opened = Opened([HERE, THERE] * 128)
    for address in (HERE, THERE):
        opened.nodes.address_of(0)
        if address == HERE:
            opened.nodes.note_reached(address)
        opened.nodes.leave_alone(address, OSError("no route"))
    assert opened.nodes.address_of(0) == HERE
    assert opened.nodes.address_of(1) is None
