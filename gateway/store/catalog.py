"""The catalogue: tables and indexes as rows of SQL, and the cache of their descriptors.

The cache is per process. Whoever acts on a cached descriptor checks its version inside the transaction (`check`): a table
that another process changed or dropped is then parsed again (docs/architecture.md section 4, step 1).
"""

from __future__ import annotations

import dataclasses
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson

from gateway.model.keys import KeyColumn, KeySchema
from gateway.model.tables import (
    ExpiryRule,
    HistoryRule,
    Index,
    IndexView,
    Projection,
    Replica,
    ReplicationRule,
    Rules,
    State,
    StreamRule,
    Table,
    VectorIndex,
)
from gateway.model.values import Kind
from gateway.model.vectors import Metric
from gateway.store import counters, expiry_backfills, history, progress
from gateway.store.databases import Session

_TABLE_COLUMNS = "id, namespace, name, azure_name, key_schema, rules, properties, state, busy_until_ms, version, created_at_ms"


_INDEXES = "SELECT table_id, id, name, definition, properties, filled, busy_until_ms FROM indexes"
_TABLES_TOGETHER = 500


def _indexes_of(session: Session, table_ids: list[int]) -> tuple[str, Sequence[Any]]:
    """A statement, and its parameters, that gives the indexes of some tables."""
    condition, parameters = session.statements.one_of("table_id", table_ids)
    return f"{_INDEXES} WHERE {condition} ORDER BY id", parameters


class Cache:
    """Descriptors by (namespace, name), each loaded when somebody asks for it. Bounded: past `capacity` the one that was asked
    for least recently goes."""

    def __init__(self, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._tables: OrderedDict[tuple[str, str], Table] = OrderedDict()
        self._by_id: dict[int, Table] = {}
        self._by_azure_name: dict[tuple[str, str], Table] = {}
        self._lock = threading.Lock()

    def get(self, namespace: str, name: str) -> Table | None:
        """The descriptor of a table, or None: it is not in the cache."""
        table = self._tables.get((namespace, name))
        if table is not None:
            try:
                self._tables.move_to_end((namespace, name))
            except KeyError:  # another thread forgets it meanwhile
                return table
        return table

    def get_azure(self, namespace: str, azure_name: str) -> Table | None:
        """The descriptor of a table by its Azure name, in whatever case, or None: it is not in the cache."""
        table = self._by_azure_name.get((namespace, azure_name.lower()))
        return None if table is None else self.get(namespace, table.name)

    def by_id(self, table_id: int) -> Table | None:
        """The descriptor of a table, or None: it is not in the cache."""
        return self._by_id.get(table_id)

    def keep(self, table: Table) -> None:
        """Put a descriptor in place of the one of its name."""
        with self._lock:
            known = self._tables.get((table.namespace, table.name))
            if known is not None:
                self._drop(known)
            elif len(self._tables) >= self._capacity:
                self._drop(next(iter(self._tables.values())))
            self._tables[table.namespace, table.name] = table
            self._by_id[table.id] = table
            self._by_azure_name[table.namespace, table.azure_name.lower()] = table

    def forget(self, table_id: int) -> None:
        """Take a descriptor out, if it is there."""
        with self._lock:
            table = self._by_id.get(table_id)
            if table is not None:
                self._drop(table)

    def _drop(self, table: Table) -> None:
        maps: tuple[tuple[Any, Any], ...] = (
            (self._by_id, table.id),
            (self._tables, (table.namespace, table.name)),
            (self._by_azure_name, (table.namespace, table.azure_name.lower())),
        )
        for known, key in maps:
            if known.get(key) is table:
                del known[key]


class Catalog:
    """Reads and writes descriptors. `views`: dialect -> how it reads the key columns of its indexes."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.views: dict[str, IndexView] = {}

    def with_property(self, session: Session, name: str) -> dict[tuple[str, str], Any]:
        """What the tables have that have something of a property, by namespace and table."""
        found = session.query(
            "SELECT namespace, name, properties FROM tables WHERE properties LIKE ?", (f'%"{name}":%',)
        )
        read = ((namespace, table, orjson.loads(document)) for namespace, table, document in found)
        return {(namespace, table): known[name] for namespace, table, known in read if known.get(name)}

    # As documents, for files

    def document_of(self, table: Table) -> dict[str, Any]:
        """What makes a table anew, as JSON."""
        return {
            "name": table.name,
            "azure_name": table.azure_name,
            "key_schema": orjson.loads(_key_schema_json(table.key_schema)),
            "rules": orjson.loads(_rules_json(table.rules)),
            "properties": orjson.loads(_json(table.properties)),
            "indexes": [
                {
                    "name": name,
                    "definition": orjson.loads(definition),
                    "properties": orjson.loads(properties),
                }
                for _, name, definition, properties, *_ in map(_index_columns, table.all_indexes)
            ],
        }

    def table_of(self, document: Mapping[str, Any]) -> Table:
        """A table that is of no namespace and has no id yet. Raises KeyError, TypeError, ValueError for what `document_of` has
        not made."""
        indexes = [
            (0, index["name"], _json(index["definition"]), _json(index["properties"]), True, 0)
            for index in document["indexes"]
        ]
        columns = (
            0, "", str(document["name"]), str(document["azure_name"]), _json(document["key_schema"]),
            _json(document["rules"]), _json(document["properties"]), State.ACTIVE.value, 0, 1, 0,
        )  # fmt: skip
        return self._table(columns, indexes)

    # Reading

    def find(self, session: Session, namespace: str, name: str, by_azure_name: bool = False) -> Table | None:
        """The table of that name; an Azure name is compared without case."""
        if "\0" in name:  # no name has one, and PostgreSQL takes no text that has
            return None
        column, wanted = ("azure_name_lower", name.lower()) if by_azure_name else ("name", name)
        tables = self._load(session, f"namespace = ? AND {column} = ?", (namespace, wanted))
        return tables[0] if tables else None

    def by_id(self, session: Session, table_id: int) -> Table | None:
        """The table of that id."""
        tables = self._load(session, "id = ?", (table_id,))
        return tables[0] if tables else None

    def all(self, session: Session, where: str = "1 = 1", parameters: Sequence[Any] = ()) -> list[Table]:
        """All tables that meet a condition in SQL, for background work and the command line."""
        return self._load(session, where, parameters)

    def names(self, session: Session) -> frozenset[str]:
        """The names and Azure names of all tables."""
        rows = session.query("SELECT name, azure_name FROM tables")
        return frozenset(name for row in rows for name in row)

    def namespaces(self, session: Session) -> list[str]:
        """The namespaces that have tables, in order."""
        found = session.query("SELECT DISTINCT namespace FROM tables ORDER BY namespace")
        return [namespace for (namespace,) in found]

    def page(
        self, session: Session, namespace: str, after: str, limit: int | None, by_azure_name: bool = False
    ) -> list[Table]:
        """Tables of a namespace in name order, after a name; `limit` at most (None: all)."""
        after = after.partition("\0")[0]  # between the two there is no name
        column, above = ("azure_name_lower", after.lower()) if by_azure_name else ("name", after)
        tail = f" ORDER BY {column}" + (" LIMIT ?" if limit is not None else "")
        parameters: list[Any] = [namespace, above]
        if limit is not None:
            parameters.append(limit)
        return self._load(session, f"namespace = ? AND {column} > ?{tail}", parameters)

    def _load(self, session: Session, where: str, parameters: Sequence[Any]) -> list[Table]:
        found = session.query(f"SELECT {_TABLE_COLUMNS} FROM tables WHERE {where}", parameters)
        indexes: dict[int, list[tuple[Any, ...]]] = {}
        for at in range(0, len(found), _TABLES_TOGETHER):
            ids = [columns[0] for columns in found[at : at + _TABLES_TOGETHER]]
            for table_id, *index in session.query(*_indexes_of(session, ids)):
                indexes.setdefault(table_id, []).append(tuple(index))
        return [self._table(columns, indexes.get(columns[0], [])) for columns in found]

    def check(self, session: Session, tables: Iterable[Table], lock: bool, near: bytes = b"") -> set[int]:
        """Ids of those tables whose descriptor is out of date. With `lock` none of them can change until the end. `near`: a
        partition that the transaction will write to (Statements.ask_versions)."""
        return self.ask_check(session, tables, lock, near)()

    def ask_check(
        self, session: Session, tables: Iterable[Table], lock: bool, near: bytes
    ) -> Callable[[], set[int]]:
        """Ask what `check` tells: the ids are to be had by calling what this returns (Session.ask). Of a table that is there in
        two versions one is out of date, whichever the database has."""
        expected: dict[int, int] = {}
        several = {
            table.id for table in tables if expected.setdefault(table.id, table.version) != table.version
        }
        answer = session.statements.ask_versions(session, sorted(expected), lock, near)

        def outdated() -> set[int]:
            found = answer()
            if found and len(found[0]) > 2:
                session.transaction_id = found[0][2]
            current = {columns[0]: columns[1] for columns in found}
            outdated = {
                table_id for table_id, version in expected.items() if current.get(table_id) != version
            }
            return outdated | several

        return outdated

    # Writing

    def next_id(self, session: Session) -> int:
        """An id that was never given before, to a table or an index."""
        return self.next_ids(session, 1)[0]

    def next_ids(self, session: Session, number: int) -> range:
        """So many ids that were never given before."""
        last = counters.advance(session, "ids", number) if number else 0
        return range(last - number + 1, last + 1)

    def lock(self, session: Session, table_id: int) -> Table | None:
        """The table as it is now, locked against everybody else until the transaction ends."""
        found = self.lock_all(session, [table_id])
        return found[0] if found else None

    def lock_all(self, session: Session, table_ids: Sequence[int]) -> list[Table]:
        """Those of some tables that there are, as `lock` has them, in the order of their ids."""
        condition, parameters = session.statements.one_of("id", table_ids)
        in_order = f"{condition} ORDER BY id"
        session.statements.lock_rows(session, "tables", "id", table_ids)
        return self._load(session, in_order, parameters)

    def azure_name_taken(self, session: Session, namespace: str) -> Callable[[str], bool]:
        """A function that says whether an Azure name, given in lower case, is in use in a namespace."""
        return lambda lower: bool(
            session.query(
                "SELECT 1 FROM tables WHERE namespace = ? AND azure_name_lower = ?", (namespace, lower)
            )
        )

    def insert(self, session: Session, table: Table) -> bool:
        """Store a new table and its indexes; False if its name was taken in the meantime."""
        return self.ask_insert(session, table)()

    def ask_insert(self, session: Session, table: Table) -> Callable[[], bool]:
        """Do what `insert` does; what it tells is to be had by calling what this returns. If it is False the transaction must
        not be committed."""
        inserted = session.ask_count(
            f"INSERT INTO tables ({_TABLE_COLUMNS}, azure_name_lower) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            (*_columns(table), table.azure_name.lower()),
        )
        for index in table.all_indexes:
            self.insert_index(session, table.id, index)
        return lambda: inserted() == 1

    def update(self, session: Session, table: Table) -> None:
        """Store a table's rules, properties and state; its version grows by one."""
        session.execute(
            "UPDATE tables SET rules = ?, properties = ?, state = ?, busy_until_ms = ?, version = version + 1 WHERE id = ?",
            (
                _rules_json(table.rules),
                _json(table.properties),
                table.state.value,
                table.busy_until_ms,
                table.id,
            ),
        )

    def insert_index(self, session: Session, table_id: int, index: Index | VectorIndex) -> None:
        """Store a new index."""
        session.send(
            "INSERT INTO indexes (id, table_id, name, definition, properties, filled, busy_until_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (index.id, table_id, *_index_columns(index)[1:]),
        )

    def update_index(self, session: Session, index: Index | VectorIndex) -> None:
        """Store an index's properties, and whether it is filled."""
        _, _, _, properties, filled, busy_until_ms = _index_columns(index)
        session.execute(
            "UPDATE indexes SET properties = ?, filled = ?, busy_until_ms = ? WHERE id = ?",
            (properties, filled, busy_until_ms, index.id),
        )

    def remove_index(self, session: Session, index: Index | VectorIndex) -> None:
        """Forget an index; its entries are purged later."""
        session.send("DELETE FROM indexes WHERE id = ?", (index.id,))
        progress.forget(session, progress.INDEX_BACKFILL, index.id)
        kind = "vectors" if isinstance(index, VectorIndex) else "index"
        session.send("INSERT INTO purges (kind, id) VALUES (?, ?)", (kind, index.id))

    def remove(self, session: Session, table: Table) -> None:
        """Forget a table, in constant time; its rows and entries are purged later. Its id is never used again."""
        for index in table.all_indexes:
            self.remove_index(session, index)
        session.send("DELETE FROM tables WHERE id = ?", (table.id,))
        expiry_backfills.finish(session, table.id)
        session.send("INSERT INTO purges (kind, id) VALUES ('table', ?)", (table.id,))
        if table.rules.history is not None:
            history.end(session, table.rules.history.id)

    def filled_up_to(self, session: Session, index_id: int) -> bytes | None:
        """How far the filling of an index has come: an opaque mark of `save_progress`."""
        rows = session.query("SELECT filled_up_to FROM indexes WHERE id = ?", (index_id,))
        return rows[0][0] if rows else None

    def save_progress(self, session: Session, index_id: int, mark: bytes, number: int) -> None:
        """Remember how far the filling of an index has come, by so many rows more."""
        session.execute("UPDATE indexes SET filled_up_to = ? WHERE id = ?", (mark, index_id))
        progress.advance(session, progress.INDEX_BACKFILL, index_id, number)

    def move(self, session: Session, table: Table, namespace: str) -> None:
        """Put a table into another namespace, which has none of its names; whoever knows it where it was finds it gone."""
        session.execute(
            "UPDATE tables SET namespace = ?, version = version + 1 WHERE id = ?", (namespace, table.id)
        )
        for index in table.all_indexes:
            self.remove_index(session, index)

    # Definitions by themselves, of tables that may be gone

    def definition(self, table: Table) -> str:
        """A table and its indexes as a text, of which `defined` makes them again."""
        return _json([_columns(table), [_index_columns(index) for index in table.all_indexes]])

    def defined(self, definition: str) -> Table:
        """The inverse of `definition`."""
        columns, indexes = orjson.loads(definition)
        return self._table(tuple(columns), [tuple(index) for index in indexes])

    # Documents of a namespace

    def document(self, session: Session, namespace: str, name: str) -> Any:
        """The JSON document that is kept under a name in a namespace, or None."""
        found = session.query(
            "SELECT document FROM namespace_properties WHERE namespace = ? AND name = ?", (namespace, name)
        )
        return orjson.loads(found[0][0]) if found else None

    def keep_document(self, session: Session, namespace: str, name: str, document: Mapping[str, Any]) -> None:
        """Keep a JSON document under a name in a namespace, in place of the one that was there."""
        session.execute(
            "INSERT INTO namespace_properties (namespace, name, document) VALUES (?, ?, ?)"
            " ON CONFLICT (namespace, name) DO UPDATE SET document = excluded.document",
            (namespace, name, _json(document)),
        )

    def present_documents(self, session: Session, namespace: str, names: Sequence[str]) -> set[str]:
        """Under which of some names a document is kept in a namespace."""
        asked = [
            session.ask(
                "SELECT name FROM namespace_properties WHERE namespace = ? AND name = ?", (namespace, name)
            )
            for name in names
        ]
        return {name for answer in asked for (name,) in answer()}

    def forget_document(self, session: Session, namespace: str, name: str) -> None:
        """Keep the document under a name in a namespace no longer."""
        session.send("DELETE FROM namespace_properties WHERE namespace = ? AND name = ?", (namespace, name))

    # Rows of SQL <-> descriptors

    def _table(self, columns: tuple[Any, ...], indexes: list[tuple[Any, ...]]) -> Table:
        (table_id, namespace, name, azure_name, schema, rules, properties, state, busy, version, created) = (
            columns
        )
        key_schema = key_schema_of(orjson.loads(schema))
        made = [self._index(row, key_schema.names) for row in indexes]
        return Table(
            id=table_id,
            namespace=namespace,
            name=name,
            azure_name=azure_name,
            key_schema=key_schema,
            indexes=tuple(index for index in made if isinstance(index, Index)),
            rules=rules_of(orjson.loads(rules)),
            properties=orjson.loads(properties),
            state=State(state),
            busy_until_ms=busy,
            version=version,
            created_at_ms=created,
            vector_indexes=tuple(index for index in made if isinstance(index, VectorIndex)),
        )

    def _index(self, columns: tuple[Any, ...], table_keys: tuple[str, ...]) -> Index | VectorIndex:
        index_id, name, definition, properties, filled, busy_until_ms = columns
        stored = orjson.loads(definition)
        if "vector" in stored:
            return VectorIndex(
                id=index_id,
                name=name,
                projection=Projection(stored["projection"]),
                table_keys=table_keys,
                included=tuple(stored["included"]),
                filled=bool(filled),
                busy_until_ms=busy_until_ms,
                dialect=stored["dialect"],
                view=self.views.get(stored["dialect"]),
                **_vector_of(stored["vector"]),
            )
        return Index(
            id=index_id,
            name=name,
            key_schema=key_schema_of(stored["key_schema"]),
            projection=Projection(stored["projection"]),
            table_keys=table_keys,
            included=tuple(stored["included"]),
            local=stored["local"],
            filled=bool(filled),
            busy_until_ms=busy_until_ms,
            properties=orjson.loads(properties),
            dialect=stored["dialect"],
            view=self.views.get(stored["dialect"]),
        )


def _columns(table: Table) -> tuple[Any, ...]:
    """A table as _TABLE_COLUMNS."""
    return (
        table.id,
        table.namespace,
        table.name,
        table.azure_name,
        _key_schema_json(table.key_schema),
        _rules_json(table.rules),
        _json(table.properties),
        table.state.value,
        table.busy_until_ms,
        table.version,
        table.created_at_ms,
    )


def _index_columns(index: Index | VectorIndex) -> tuple[Any, ...]:
    """An index as _INDEXES has it, without its table."""
    if isinstance(index, VectorIndex):
        definition, properties = _vector_definition_json(index), "{}"
    else:
        definition, properties = _definition_json(index), _json(index.properties)
    return (
        index.id,
        index.name,
        definition,
        properties,
        int(index.filled),
        index.busy_until_ms,
    )


def _json(document: Any) -> str:
    return orjson.dumps(document).decode()


def _columns_document(columns: tuple[KeyColumn, ...]) -> list[list[Any]]:
    return [[column.name, column.kind.value, column.auto_increment] for column in columns]


def key_schema_document(schema: KeySchema) -> list[Any]:
    """The JSON form of a key schema: the partition columns and the sort columns, each as [name, kind, auto-increment]."""
    return [_columns_document(schema.partition), _columns_document(schema.sort)]


def _key_schema_json(schema: KeySchema) -> str:
    return _json(key_schema_document(schema))


def key_schema_of(document: list[Any]) -> KeySchema:
    """The key schema of a JSON form that key_schema_document made."""
    partition, sort = map(_key_columns, document)
    return KeySchema(partition, sort)


def _key_columns(document: Iterable[Any]) -> tuple[KeyColumn, ...]:
    return tuple(KeyColumn(name, Kind(kind), auto) for name, kind, auto in document)


def _definition_json(index: Index) -> str:
    return _json(
        {
            "key_schema": key_schema_document(index.key_schema),
            "projection": index.projection.value,
            "included": index.included,
            "local": index.local,
            "dialect": index.dialect,
        }
    )


def _vector_definition_json(index: VectorIndex) -> str:
    return _json(
        {
            "vector": {
                "attribute": index.attribute,
                "dimensions": index.dimensions,
                "metric": index.metric.value,
                "partition": None if index.partition is None else _columns_document((index.partition,)),
                "filters": _columns_document(index.filters),
            },
            "projection": index.projection.value,
            "included": index.included,
            "dialect": index.dialect,
        }
    )


def _vector_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a VectorIndex that its JSON form has under `vector`."""
    partition, *_ = _key_columns(document["partition"] or ()) or (None,)
    return {
        **document,
        "metric": Metric(document["metric"]),
        "partition": partition,
        "filters": _key_columns(document["filters"]),
    }


def _rules_json(rules: Rules) -> str:
    return _json(dataclasses.asdict(rules))


def stream_rule(document: Mapping[str, Any]) -> StreamRule:
    """A stream rule from its JSON form."""
    shards = tuple((number, first) for number, first in document.get("shards", ()))
    return StreamRule(**{**document, "shards": shards})


def _replication_rule(document: Mapping[str, Any] | None) -> ReplicationRule | None:
    if document is None:
        return None
    return ReplicationRule(**{**document, "peers": tuple(Replica(**peer) for peer in document["peers"])})


def rules_of(document: Mapping[str, Any]) -> Rules:
    """The rules of a JSON form that dataclasses.asdict made."""
    expiry, stream, history = document["expiry"], document["stream"], document.get("history")
    log = document.get("log")
    return Rules(
        **{
            **document,
            "expiry": None if expiry is None else ExpiryRule(**expiry),
            "stream": None if stream is None else stream_rule(stream),
            "history": None if history is None else HistoryRule(**history),
            "log": None if log is None else stream_rule(log),
            "replication": _replication_rule(document.get("replication")),
        }
    )
