"""A statement goes to the node that has its slot. It also works if the slot has moved to another node."""

from __future__ import annotations

import re

import pytest

from tablegate.gateway.model.errors import NodeAway
from tablegate.gateway.store.postgresql import statements
from tablegate.gateway.store.postgresql.distributed import nodes
from tablegate.gateway.store.postgresql.distributed import statements as distributed_statements
from tablegate.gateway.store.postgresql.distributed.nodes import Nodes, Place, Placements, placements
from tablegate.gateway.store.postgresql.distributed.sessions import slot_parameter
from tablegate.gateway.store.rows import range_scans, rows, scans
from tablegate.gateway.store.sql.databases import RetryableFailure, Unreachable
from tablegate.gateway.store.tables import index_kinds

HERE, THERE = (
    Place(("10.0.0.1", 5432), [1], {"rows": "rows_1"}),
    Place(("10.0.0.2", 5432), [2], {"rows": "rows_2"}),
)


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
    from tablegate.gateway.model.tables.pages import Concatenation
    from tablegate.gateway.store.postgresql.distributed.statements import DistributedStatements

    statement = range_scans._statement(DistributedStatements(), False, Concatenation(","))
    assert slot_parameter(statement) == 2


class Opened:
    """Nodes with these placements of slots 0, 1, ..., and the nodes that were asked for them."""

    def __init__(self, *places: Place) -> None:
        self.places = places
        self.asked: list[tuple[str, int] | None] = []
        self.nodes: Nodes[tuple[str, int]] = Nodes(self._fetch, lambda address: address)

    def place_of(self, slot: int) -> Place:
        return self.nodes.placements_for(slot).of_slots[slot]

    def _fetch(self, node: tuple[str, int] | None) -> Placements | None:
        self.asked.append(node)
        addresses = {number: place.address for number, place in enumerate(self.places)}
        return Placements(dict(enumerate(self.places)), addresses) if self.places else None


def test_a_slot_has_its_node_and_nodes_are_refreshed_periodically(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Opened(HERE, THERE)
    assert [opened.place_of(slot) for slot in (0, 1)] == [HERE, THERE]
    assert opened.nodes.database_at(THERE.address) is opened.nodes.database_at(THERE.address)
    assert opened.asked == [None]
    opened.places = (THERE,)
    assert opened.place_of(0) is HERE
    opened.nodes.forget()
    assert opened.place_of(0) is THERE
    assert opened.asked == [None, HERE.address]


def test_without_metadata_a_slot_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        Opened().place_of(7)


def test_a_slot_is_found_while_another_thread_fetches_the_first_placement() -> None:
    opened = Opened(HERE)
    fetch, found = opened.nodes._fetch, []

    def fetch_beside_another(node: tuple[str, int] | None) -> Placements | None:
        opened.nodes._fetch = fetch
        found.append(opened.place_of(0))
        return fetch(node)

    opened.nodes._fetch = fetch_beside_another
    assert [opened.place_of(0), *found] == [HERE, HERE]


def test_the_last_placement_is_kept_while_no_node_answers() -> None:
    opened = Opened(HERE)
    assert opened.place_of(0) is HERE
    opened.places = ()
    opened.nodes.set_aside(HERE.address, OSError("no route"), 2.0)
    assert opened.place_of(0) is HERE
    assert opened.asked == [None, None]  # the node that was set aside is not asked


def test_a_node_that_does_not_answer_is_refused_until_it_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """One caller tries it again after some time, and the others are refused meanwhile."""
    opened = Opened(HERE, THERE)
    opened.place_of(0)
    opened.nodes.set_aside(HERE.address, OSError("no route"), 2.0)
    assert opened.nodes.away == [HERE.address]
    with pytest.raises(NodeAway, match=r"10\.0\.0\.1:5432 does not answer"):
        opened.nodes.check(HERE.address)
    opened.nodes.check(THERE.address)
    with monkeypatch.context() as patched:
        patched.setattr(nodes, "_RETRY_S", -1.0)
        opened.nodes.set_aside(HERE.address, OSError("no route"), 2.0)
    opened.nodes.check(HERE.address)
    with pytest.raises(NodeAway):
        opened.nodes.check(HERE.address)
    opened.nodes.note_reached(HERE.address)
    opened.nodes.check(HERE.address)
    assert opened.nodes.away == []
    monkeypatch.setattr(nodes, "_RETRY_REFUSED_S", -1.0)
    opened.nodes.set_aside(HERE.address, OSError("refused"), 0.0)
    opened.nodes.check(HERE.address)


PLACE = Place(("here", 1), [7], {"rows": "rows_7", "entries": "entries_17", "tables": "tables_3"})


@pytest.mark.parametrize(
    ("statement", "at_shards"),
    [
        ("SELECT body FROM rows r WHERE r.slot = ?", "SELECT body FROM rows_7 r WHERE r.slot = ?"),
        ("SELECT id FROM tables WHERE id = ?", "SELECT id FROM tables_3 AS tables WHERE id = ?"),
        ("SELECT 1 FROM (SELECT r.sort FROM rows r LIMIT ?) s", "SELECT 1 FROM (SELECT r.sort FROM rows_7 r LIMIT ?) s"),
        ("SELECT 1 FROM streams WHERE id = ?", "SELECT 1 FROM streams WHERE id = ?"),
        ("INSERT INTO rows (slot) VALUES (?)", "INSERT INTO rows_7 AS rows (slot) VALUES (?)"),
        ("UPDATE rows SET slot = slot", "UPDATE rows_7 AS rows SET slot = slot"),
        ("DELETE FROM rows r\nUSING entries\nWHERE 1 = 1", "DELETE FROM rows_7 r\nUSING entries_17 AS entries\nWHERE 1 = 1"),
    ],
)  # fmt: skip
def test_a_statement_can_be_about_shards(statement: str, at_shards: str) -> None:
    assert PLACE.at_shards(statement) == at_shards


def test_every_statement_for_rows_can_be_about_shards() -> None:
    for statement in (
        statements._CLAIM,
        statements._CLAIM_MANY,
        statements._GET_MANY,
        statements._LOOK_UP_MANY,
        statements._SAVE_MANY,
        statements._REMOVE_MANY,
        statements._ADD_ENTRIES,
        statements._REMOVE_ENTRIES,
        distributed_statements._LATER_CHANGES,
        rows.GET,
        rows.LOOK_UP,
        rows.SAVE,
        rows.INSERT,
        rows.REMOVE,
        index_kinds.ADD_ENTRY,
        index_kinds.REMOVE_ENTRY,
    ):
        made = PLACE.at_shards(statement)
        assert "rows_7" in made or "entries_17" in made
        assert not re.search(r"(FROM|INTO|UPDATE|JOIN) (rows|entries|tables)\b", made)


def test_shards_that_stand_beside_each_other_are_of_one_place() -> None:
    made = placements(
        [(1, "here", 1), (2, "there", 2)],
        [(0, 1, 7, "-5"), (1, 2, 8, "9"), (2, 1, 7, "-5")],
        [
            ("rows", 7, "-5"),
            ("rows", 8, "9"),
            ("entries", 17, "-5"),
            ("entries", 18, "9"),
            ("tables", 3, None),
        ],
    )
    assert made.groups == {("here", 1): 1, ("there", 2): 2}
    made_places = made.of_slots
    assert made_places[0] is made_places[2]
    assert (made_places[1].address, made_places[1].numbers) == (("there", 2), [8])
    assert (
        made_places[1].at_shards("SELECT 1 FROM entries e JOIN tables t")
        == "SELECT 1 FROM entries_18 e JOIN tables_3 t"
    )


def test_all_shards_of_a_node_can_be_read_together() -> None:
    other = Place(("here", 1), [8], {"rows": "rows_8"})
    together = Placements({0: PLACE, 1: other}, {}).by_address["here", 1]
    scan = "SELECT r.partition, r.sort, r.body FROM rows r WHERE r.table_id = ? ORDER BY r.partition, r.sort LIMIT ?"
    union = "(SELECT * FROM rows_7 UNION ALL SELECT * FROM rows_8)"
    assert f" FROM {union} r WHERE " in together.at_shards(scan)
    assert together.at_shards("SELECT id FROM tables t") == "SELECT id FROM tables_3 t"
    assert together.numbers == [7, 8]


def test_a_shard_that_has_moved_is_noticed() -> None:
    opened = Opened(HERE, THERE)
    opened.place_of(0)
    opened.nodes.verify([(1, lambda: [(1,)]), (1, lambda: [(2,)])])
    with pytest.raises(RetryableFailure):
        opened.nodes.verify([(1, lambda: [(1,)]), (1, list)])
    opened.place_of(0)
    assert opened.asked == [None, HERE.address]
