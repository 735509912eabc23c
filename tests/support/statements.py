"""Rules for the gateway's SQL so that a distributed PostgreSQL (Citus) can execute each statement on the node with the
data.

Data tables have `slot` in their primary key. Citus sends a statement to one node if it contains `slot = ?` for the
table, or inserts one row. Every other statement goes to all nodes or is rejected. A test with `listening` therefore
fails on a statement that breaks a rule in `complaints`, unless ALLOWED lists it with a reason. A new table or statement
is checked this way without a Citus cluster.

Statements of store/postgresql/statements.py are not checked where they are used as intended. Their counterparts in
store/postgresql/distributed/ are checked. The engine's tests run these on a plain PostgreSQL too.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tablegate.gateway.store.postgresql.database import PostgresSession
from tablegate.gateway.store.postgresql.distributed.sessions import RoutingSession
from tablegate.gateway.store.postgresql.statements import PostgreSQLStatements
from tablegate.gateway.store.sql.databases import Session
from tablegate.migrations.schema import metadata

DATA = frozenset(table.name for table in metadata.sorted_tables if "slot" in table.primary_key.columns)
_PASSED_ON = frozenset(
    {
        "tablegate.gateway.store.sql.databases",
        "tablegate.gateway.store.postgresql.database",
        "tablegate.gateway.store.postgresql.distributed.sessions",
    }
)
_OWN_FORMS = "tablegate.gateway.store.postgresql.statements"

# A pattern in a statement, with one space between its words -> why it may go to every node.
ALLOWED = {
    # The requested data is on every node.
    r"\((r|k)\.partition, \1\.sort\) >= \(\?, \?\) AND \(\1\.partition, \1\.sort\) <": "a scan of several partitions",
    r"AND (r|k)\.partition >= \? AND \1\.partition < \? ORDER BY \1\.partition LIMIT 1":
        "a scan, where long keys tie",
    r"\((r|k)\.slot, \1\.partition, \1\.sort\) >= .* \1\.slot <= \?":
        "a segment of a parallel scan, which is a range of slots",
    r"^SELECT count\(\*\), COALESCE\(sum\(size_bytes\), 0\) FROM (rows|entries)": "a whole table or index is counted",
    r"^SELECT owner_id, sum\(rows\), sum\(size_bytes\), min\(stripe\) FROM row_counts WHERE owner_id":
        "the count of a table is the sum of what each node has",
    r"^DELETE FROM row_counts WHERE owner_id = \?$": "the counts of a dropped table are deleted",
    r"^INSERT INTO rows .* FROM rows WHERE table_id = \? AND body IS NOT NULL$":
        "a whole table is copied, each slot to itself",
    r"^INSERT INTO (entries|vectors) .* FROM \1 WHERE index_id = \?$":
        "a whole index is copied, each slot to itself",
    r"^SELECT .* FROM vectors WHERE index_id = \?": "a search looks at a whole index, wherever its vectors are",
    r"FROM search_documents d WHERE d\.index_id = \?": "a search looks at a whole index, wherever its documents are",
    r"FROM search_terms (t|d) WHERE \1\.index_id = \? AND \1\.field":
        "the documents with a term are counted in a whole index",
    # Background work, or a request by an operator.
    r"\(slot, partition, sort\) >= .* ORDER BY slot, partition, sort LIMIT": "background work walks a table by slot",
    r"^SELECT (0, r\.slot|r\.partition), .* FROM rows r WHERE .*\(r\.slot, r\.partition, r\.sort\) >":
        "a copy walks its source by slot",
    r"^SELECT count\(\*\) FROM \(SELECT 1 FROM \w+ WHERE \w+_id = \?": "what background work has left is counted",
    r"FROM rows (r )?WHERE (r\.)?expires_at_ms IS NOT NULL": "the sweep looks for expired rows, and counts them",
    r"^DELETE FROM tokens WHERE \(scope, name, slot\) IN": "the sweep forgets tokens, wherever they are",
    r"^SELECT id FROM partition_locks WHERE expires_at_ms <=": "the sweep looks for local transactions that are over",
    r"^DELETE FROM counters WHERE \(name, slot\) IN": "counters of what is gone are swept",
    r"^SELECT (partition, sort(, slot)?|changed_at, slot, partition, sort|field, term, document, slot), \w+"
    r" FROM \w+ WHERE \w+_id = \? ORDER":
        "a purge looks for its next rows",
    r"^DELETE FROM (rows|entries|vectors|history|search_\w+) WHERE \w+_id = \?( AND \(|$)": "a purge deletes what is gone",
    # A history is one log of a table: by time, whatever the slot.
    r"^SELECT changed_at FROM history WHERE history_id = \? ORDER BY changed_at DESC LIMIT 1$":
        "the last change of a whole table",
    r"^INSERT INTO history .* FROM (rows r WHERE|\(SELECT 1\) LEFT JOIN rows r ON) .*r\.slot = \?$":
        "what a row is goes into the history, at the same slot",
    r"FROM history r WHERE r\.history_id = \? AND r\.changed_at >": "a copy walks a history back",
    r"^(SELECT changed_at|DELETE) FROM history WHERE history_id = \? AND changed_at <": "a history is trimmed",
    # Deletion times of rows of replicated tables: by table and time.
    r"^SELECT table_id FROM tombstones WHERE table_id > \?": "the sweep looks for tables with deleted rows",
    r"^(SELECT deleted_at|DELETE) FROM tombstones WHERE table_id = \?": "what was deleted long ago is forgotten",
    r"^INSERT INTO tombstones .* FROM tombstones WHERE table_id = \?$": "a new replica takes over what was deleted",
}  # fmt: skip
# A database that has this (Statements.joins_entries) is no distributed one.
_JOINED_ENTRIES = "FROM entries k CROSS JOIN rows r"

_TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|USING)\s+(\w+)", re.IGNORECASE)
_INSERT = re.compile(r"INSERT INTO (\w+) \(([^)]*)\) VALUES", re.IGNORECASE)
_AT_SLOT = re.compile(r"\bslot = \?")


def complaints(statement: str) -> list[str]:
    """Return the reasons why a distributed database executes this statement badly or not at all."""
    text = " ".join(statement.split())
    tables = [name for name in _TABLE.findall(text) if name in DATA]
    is_locking = re.search(r"\bFOR (UPDATE|SHARE)\b", text) is not None
    if not tables:
        return (
            ["rows that every node has are locked at all of them: Statements.lock_rows"] if is_locking else []
        )
    found = []
    if "unnest(" in text:
        found.append("a set over slots goes over as arrays (unnest): rows of VALUES, or a statement for each")
    if "LATERAL" in text:
        found.append("LATERAL with LIMIT is refused")
    if len(tables) > 1:
        found.append(f"{' and '.join(tables)} are joined, whose rows may be at different slots")
    inserted = _INSERT.match(text)
    if inserted is not None:
        if "slot" not in inserted[2].replace(" ", "").split(","):
            found.append("a row is inserted without its slot")
    elif not _AT_SLOT.search(text):
        found.append(f"no slot = ? says where: every node is asked{', and locks rows' if is_locking else ''}")
    return found


def allowed(statement: str) -> bool:
    """True if ALLOWED permits the statement."""
    text = " ".join(statement.split())
    return any(re.search(pattern, text) for pattern in ALLOWED)


class Listener:
    """Statements that the gateway executed, each once, and not yet checked."""

    def __init__(self) -> None:
        self._looked_at: set[tuple[str, str]] = set()
        self._heard: set[tuple[str, str]] = set()

    def hear(self, module: str, statement: str) -> None:
        """Note a statement that a module has run."""
        if (module, statement) not in self._looked_at:
            self._heard.add((module, statement))

    def complaints(self) -> list[str]:
        """Return the complaints about the statements since the last call."""
        heard, self._heard = self._heard, set()
        self._looked_at |= heard
        return [
            f"{module}: {' '.join(statement.split())}\n    {complaint}"
            for module, statement in sorted(heard)
            if not allowed(statement)
            for complaint in complaints(statement)
        ]


@contextlib.contextmanager
def listening() -> Iterator[Listener]:
    """Within it, statements of modules of the gateway are heard."""
    listener = Listener()
    with pytest.MonkeyPatch.context() as patched:
        for session_class in (Session, PostgresSession, RoutingSession):
            for name in (
                "query",
                "ask",
                "send",
                "execute",
                "execute_many",
            ):
                if name in vars(session_class):
                    patched.setattr(session_class, name, _heard(listener, vars(session_class)[name]))
        yield listener


def _heard(listener: Listener, method: Callable[..., Any]) -> Callable[..., Any]:
    def hearing(session: Session, statement: str, *parameters: Any) -> Any:
        module = sys._getframe(1).f_globals["__name__"]
        is_joined = _JOINED_ENTRIES in statement and session.statements.joins_entries
        is_own = module == _OWN_FORMS and type(session.statements) is PostgreSQLStatements
        if (
            module.startswith("tablegate.gateway.")
            and module not in _PASSED_ON
            and not is_joined
            and not is_own
        ):
            listener.hear(module, statement)
        return method(session, statement, *parameters)

    return hearing


@pytest.fixture(scope="session")
def listener() -> Iterator[Listener]:
    """It listens from now on to the end."""
    with listening() as found:
        yield found


@pytest.fixture(autouse=True)
def statements_say_where(listener: Listener) -> Iterator[None]:
    """Assert that no statement goes to every node of a distributed database without a reason.

    It applies to each test of a folder whose conftest imports both fixtures.
    """
    yield
    found = listener.complaints()
    assert not found, "\n".join(found)
