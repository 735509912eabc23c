"""Checks of `tablegate doctor --deep`: verify every row, every index entry and every page of the database."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.dialects.adapter import register_views
from tablegate.gateway.doctor.findings import CheckContext, CheckResult, Severity
from tablegate.gateway.engine.tables import row_counting
from tablegate.gateway.model.errors import DataCorrupted
from tablegate.gateway.model.tables.indexes import Index
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.store.migrating import revision_of, steps
from tablegate.gateway.store.rows.scans import StoredRow
from tablegate.gateway.store.sql.checksums import ROW_COLUMNS, ROW_WIDTH, checksum_of, digest_of
from tablegate.gateway.store.sql.databases import Database, Session
from tablegate.gateway.store.sql.positions import position_of, stored_position
from tablegate.gateway.store.store import Store

_ROWS_TOGETHER = 500
_MOST_NAMED = 20
_OTHER_SCHEMA = "the schema is not that of this release: run `tablegate migrate` first"
_FUNCTIONS = "bt_index_check, verify_heapam"
_AMCHECK = """
SELECT quote_ident(n.nspname), bool_and(has_function_privilege(p.oid, 'EXECUTE'))::text
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace JOIN pg_proc p ON p.pronamespace = n.oid
WHERE e.extname = 'amcheck' AND p.proname IN ('bt_index_check', 'verify_heapam') GROUP BY n.nspname"""
_TABLES = """
SELECT oid::bigint::text, relname::text FROM pg_class
WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY relname"""
_INDEXES = """
SELECT c.oid::bigint::text, c.relname::text FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
JOIN pg_am a ON a.oid = c.relam AND a.amname = 'btree'
WHERE c.relnamespace = current_schema()::regnamespace AND i.indisvalid ORDER BY c.relname"""
_ROWS = f"""
SELECT {ROW_COLUMNS}, r.slot FROM rows r WHERE r.table_id = ? AND (r.slot, r.partition, r.sort) > (?, ?, ?)
ORDER BY r.slot, r.partition, r.sort LIMIT ?"""
_ENTRY = "SELECT 1 FROM entries WHERE index_id = ? AND partition = ? AND sort = ? AND slot = ?"
_ENTRIES = f"""
SELECT {ROW_COLUMNS}, k.slot, k.partition, k.sort, k.full_key FROM entries k
LEFT JOIN rows r ON r.table_id = ? AND r.partition = k.row_partition AND r.sort = k.row_sort AND r.slot = k.row_slot
WHERE k.index_id = ? AND (k.slot, k.partition, k.sort) > (?, ?, ?)
ORDER BY k.slot, k.partition, k.sort LIMIT ?"""


class Corruption(NamedTuple):
    """A damaged row or index entry: its table, the digest of its key (checksums.digest_of), and the damage."""

    table: str
    row: str
    text: str


def pages(context: CheckContext) -> Iterator[CheckResult]:
    """Check every page with the database's own tools."""
    assert context.database is not None
    if context.is_a_server:
        yield _by_amcheck(context.database)
        return
    with context.database.read() as session:
        found = [text for (text,) in session.query(f"PRAGMA integrity_check({_MOST_NAMED})")]
    level = Severity.OK if found == ["ok"] else Severity.FAILED
    yield CheckResult(level, f"PRAGMA integrity_check: {'; '.join(found)}", {"found": found})


def _by_amcheck(database: Database) -> CheckResult:
    """Check tables and indexes one by one, since amcheck stops at the first error of an index."""
    with database.read() as session:
        installed = session.query(_AMCHECK)
    if not installed:
        return CheckResult(
            Severity.SKIPPED,
            "the extension amcheck is not installed: run CREATE EXTENSION amcheck, or use pg_amcheck",
        )
    [(schema, can_execute)] = installed
    if can_execute != "true":
        text = (
            f"this role cannot call amcheck: grant it EXECUTE on the functions {_FUNCTIONS} (schema {schema})"
        )
        return CheckResult(Severity.SKIPPED, text)
    found: list[str] = []
    with _read_without_timeout(database) as session:
        indexes = session.query(_INDEXES)
        tables = session.query(_TABLES)
    for oid, name in tables:
        with _read_without_timeout(database) as session:
            statement = f"SELECT msg FROM {schema}.verify_heapam(?::bigint::oid, check_toast => true) LIMIT {_MOST_NAMED}"
            found += [f"{name}: {text}" for (text,) in session.query(statement, (int(oid),))]
    for oid, name in indexes:
        try:
            with _read_without_timeout(database) as session:
                session.query(f"SELECT {schema}.bt_index_check(?::bigint::oid, true)::text", (int(oid),))
        except DataCorrupted as error:
            found.append(f"{name}: {str(error).splitlines()[0]}")
    if found:
        return CheckResult(Severity.FAILED, f"amcheck: {'; '.join(found[:_MOST_NAMED])}", {"found": found})
    text = f"amcheck finds nothing in {len(tables)} tables and {len(indexes)} indexes"
    return CheckResult(Severity.OK, text, {"found": []})


@contextlib.contextmanager
def _read_without_timeout(database: Database) -> Iterator[Session]:
    with database.read() as session:
        session.send("SET LOCAL statement_timeout = 0")
        yield session


def rows_and_entries(context: CheckContext) -> Iterator[CheckResult]:
    """Check every row against its checksum, and every index entry against its row."""
    assert context.database is not None
    if revision_of(context.database) != steps()[-1]:
        yield CheckResult(Severity.SKIPPED, _OTHER_SCHEMA)
        return
    store = _store_of(context.database)
    with store.read() as session:
        tables = store.catalog.all(session)
    named: list[Corruption] = []
    number = 0
    read = {"rows": 0, "entries": 0}
    for table in tables:
        indexes = [index for index in table.indexes if index.filled]
        entries = (_corrupt_entries(store, table, index, read) for index in indexes)
        for corruption in chain(_corrupt_rows(store, table, indexes, read), *entries):
            number += 1
            if len(named) < _MOST_NAMED:
                named.append(corruption)
    facts: dict[str, Any] = {**read, "faults": [corruption._asdict() for corruption in named]}
    text = "{rows} rows, {entries} index entries".format(**read)
    if named:
        shown = "; ".join(f"row {it.row} of table {it.table}: {it.text}" for it in named)
        yield CheckResult(Severity.FAILED, f"{text}, {number} faults: {shown}", facts)
    else:
        yield CheckResult(Severity.OK, f"{text}: all are intact", facts)


def row_counts(context: CheckContext) -> Iterator[CheckResult]:
    """Compare the counts that writes maintain with the rows."""
    assert context.database is not None
    if revision_of(context.database) != steps()[-1]:
        yield CheckResult(Severity.SKIPPED, _OTHER_SCHEMA)
        return
    store = _store_of(context.database)
    wrong = list(islice(row_counting.mismatches(store), _MOST_NAMED))
    if wrong:
        text = f"{'; '.join(wrong)}. Run `tablegate tables recount TABLE`"
        yield CheckResult(Severity.WARNING, text, {"wrong": wrong})
    else:
        yield CheckResult(Severity.OK, "they match the rows", {"wrong": []})


def _store_of(database: Database) -> Store:
    """Return the store of a database, which can read the indexes of all dialects and capabilities."""
    store = Store(database)
    register_views(new_engine(store))
    return store


def _corrupt_rows(
    store: Store, table: Table, indexes: list[Index], read: dict[str, int]
) -> Iterator[Corruption]:
    """Yield the damaged rows of a table and count the rows in `read`.

    A batch of rows and their entries come from one snapshot.
    """
    after: tuple[Any, ...] = (-1, b"", b"")
    while True:
        with store.read() as session:
            found = session.query(_ROWS, (table.id, *after, _ROWS_TOGETHER))
            for columns in found:
                read["rows"] += 1
                yield from _check_row(session, table, indexes, columns)
        if len(found) < _ROWS_TOGETHER:
            return
        after = (found[-1][ROW_WIDTH], *found[-1][:2])


def _check_row(
    session: Session, table: Table, indexes: list[Index], columns: tuple[Any, ...]
) -> Iterator[Corruption]:
    partition, sort, full_key, modified_at, _, size_bytes, kinds, checksum, body = columns[:ROW_WIDTH]
    digest = digest_of(partition, sort)
    if checksum != checksum_of(partition, sort, full_key, modified_at, size_bytes, kinds, body):
        yield Corruption(table.name, digest, "it does not match its checksum")
        return
    try:
        row = StoredRow((*columns[: ROW_WIDTH - 2], None, body))
        expected = [(index, entry) for index in indexes if (entry := index.entry(row)) is not None]
        if not indexes:
            row.contents.latest  # noqa: B018  # reads the body
    except Exception as error:
        yield Corruption(table.name, digest, f"it cannot be read: {error!r}")
        return
    requests = [
        (index, session.ask(_ENTRY, (index.id, *stored_position(entry.position)[:3])))
        for index, entry in expected
    ]
    for index, answer in requests:
        if not answer():
            yield Corruption(table.name, digest, f"it has no entry in the index {index.name}")


def _corrupt_entries(store: Store, table: Table, index: Index, read: dict[str, int]) -> Iterator[Corruption]:
    """Yield the entries of an index that do not match their rows.

    The check is skipped if a row and its entry can be on different nodes.
    """
    after: tuple[Any, ...] = (-1, b"", b"")
    while True:
        with store.read() as session:
            if not session.statements.joins_entries:
                return
            found = session.query(_ENTRIES, (table.id, index.id, *after, _ROWS_TOGETHER))
        for columns in found:
            read["entries"] += 1
            if not _matches_row(index, columns):
                text = f"an entry of the index {index.name} matches no row"
                yield Corruption(table.name, digest_of(*columns[ROW_WIDTH + 1 : ROW_WIDTH + 3]), text)
        if len(found) < _ROWS_TOGETHER:
            return
        after = tuple(found[-1][ROW_WIDTH : ROW_WIDTH + 3])


def _matches_row(index: Index, columns: tuple[Any, ...]) -> bool:
    if columns[0] is None:
        return False
    try:
        entry = index.entry(StoredRow(columns))
    except Exception:
        return True  # the row is damaged and is reported by itself
    return entry is not None and entry.position == position_of(*columns[ROW_WIDTH + 1 : ROW_WIDTH + 4])
