"""The check in tests/support/statements.py finds exactly the statements that a distributed PostgreSQL cannot execute
well.
"""

from __future__ import annotations

import pytest

from tablegate.gateway.store.postgresql import statements
from tablegate.gateway.store.postgresql.distributed import placement
from tablegate.gateway.store.rows import rows
from tablegate.gateway.store.tables import index_kinds
from tablegate.migrations.schema import metadata
from tests.support.statements import ALLOWED, DATA, allowed, complaints

FINE = [
    rows.GET,
    rows.SAVE,
    rows.REMOVE,
    statements._CLAIM,
    rows.LOOK_UP,
    index_kinds.ADD_ENTRY,
    index_kinds.REMOVE_ENTRY,
    "SELECT id FROM tables WHERE namespace = ?",
    "SELECT id FROM partition_locks WHERE id = ? AND slot = ? FOR UPDATE",
    "UPDATE tables SET id = id WHERE id = ?",
]
REFUSED = {
    "SELECT body FROM rows WHERE table_id = ? AND partition = ?": "no slot = ?",
    "DELETE FROM changes WHERE stream_id = ?": "no slot = ?",
    "UPDATE rows SET size_bytes = 0 WHERE table_id = ?": "no slot = ?",
    "SELECT id FROM partition_locks WHERE id = ? FOR UPDATE": "and locks rows",
    "SELECT id FROM tables WHERE id = ? FOR UPDATE": "Statements.lock_rows",
    "INSERT INTO tokens (scope, name) VALUES (?, ?)": "without its slot",
    "SELECT 1 FROM entries k JOIN rows r ON r.sort = k.row_sort WHERE k.slot = ?": "entries and rows are joined",
    statements._GET_MANY: "LATERAL",
    statements._CLAIM_MANY: "unnest",
    statements._SAVE_MANY: "unnest",
}


@pytest.mark.parametrize("statement", FINE)
def test_a_statement_with_a_slot_has_no_complaints(statement: str) -> None:
    assert complaints(statement) == []


@pytest.mark.parametrize("statement", REFUSED)
def test_a_statement_that_does_not_say_where_is_found(statement: str) -> None:
    assert any(REFUSED[statement] in complaint for complaint in complaints(statement))
    assert not allowed(statement)


def test_every_allowed_statement_has_a_reason() -> None:
    assert all(len(reason.split()) > 3 for reason in ALLOWED.values())


def test_tables_of_data_are_spread_after_those_that_every_node_has() -> None:
    """Distributed tables are joined with the replicated ones and colocated with the rows.

    The schema version comes last, so that an interrupted distribution is continued.
    """
    order = placement.distribution_order()
    assert [name for name, spread in order if spread] == ["rows", *sorted(DATA - {"rows"})]
    first_spread = [spread for _, spread in order].index(True)
    assert not any(spread for _, spread in order[:first_spread])
    assert order[-1] == ("alembic_version", False)
    assert {name for name, _ in order} == {*metadata.tables, "alembic_version"}


def test_each_table_has_a_defined_placement() -> None:
    """A table without a slot in its primary key is on every node, so each change is a transaction of all nodes.

    Tables that requests change do not belong there. The definition of such a table says why it does.
    """
    reasons = {table.name: table.info.get("on_every_node") for table in metadata.sorted_tables}
    assert {name for name, reason in reasons.items() if reason is None} == DATA
