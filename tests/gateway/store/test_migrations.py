"""Migrations lead to the schema, one at a time, and never backwards."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import sqlalchemy
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from tablegate.gateway.store.opening.migrating import NewerDatabase, migrate, revision_of, script_of, steps
from tablegate.gateway.store.opening.migration_plan import plan
from tablegate.gateway.store.opening.opening import open_database
from tablegate.gateway.store.sql import counters
from tablegate.gateway.store.sql.databases import Database, DatabaseUnusable
from tablegate.gateway.store.sql.schema import metadata
from tablegate.gateway.store.streams import changes
from tablegate.gateway.store.tables.catalog import Catalog
from tablegate.gateway.store.tables.descriptors import stream_rule
from tablegate.gateway.store.transactions import tokens
from tablegate.migrations import scripts
from tests.support.databases import PostgresServer


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.sqlite'}"
    else:
        yield request.getfixturevalue("postgres").empty_database()


def test_they_lead_to_the_schema(database: Database) -> None:
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


_DEFINITIONS = {
    "sqlite": "SELECT type, name, sql FROM sqlite_master WHERE tbl_name <> 'alembic_version'",
    "postgresql": """
        SELECT table_name, column_name, ordinal_position, data_type, collation_name, is_nullable, column_default
        FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'
        UNION ALL
        SELECT tablename, indexname, 0, indexdef, NULL, NULL, NULL
        FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'alembic_version'
    """,
}


@pytest.mark.parametrize("way", ["steps", "script"])
def test_they_make_what_the_schema_would_make(empty: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compares the text of the schema, because compare_metadata ignores collations, WITHOUT ROWID and partial indexes.

    Ignores only the quotes that SQLite adds to the new name of a renamed table. An empty database runs the script. All
    others run the migrations step by step.
    """
    from tablegate.gateway.store.opening import migrating

    if way == "steps":
        monkeypatch.setattr(migrating, "script_of", lambda name: "")
    else:
        monkeypatch.setattr(migrating, "_upgrade", lambda *_: pytest.fail("the script was not used"))
    database = open_database(empty)
    assert migrate(database) == steps()
    made = _definitions(database)
    metadata.drop_all(database.engine)
    assert _definitions(database) == []
    metadata.create_all(database.engine)
    assert made == _definitions(database)
    database.close()


@pytest.mark.parametrize("name", scripts.DATABASES)
def test_the_scripts_are_of_this_schema(name: str) -> None:
    """`python -m tablegate.migrations.scripts` writes them anew."""
    assert script_of(name) == scripts.script(scripts.DATABASES[name])


def test_a_script_of_another_release_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablegate.gateway.store.opening import migrating

    script = script_of("sqlite").replace(f"-- {steps()[-1]}", "-- 0001", 1)
    monkeypatch.setattr(migrating, "script_of", lambda name: script)
    database = open_database(f"sqlite:///{tmp_path / 'a.sqlite'}")
    assert migrate(database) == steps()
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    database.close()


def _definitions(database: Database) -> list[tuple[str, ...]]:
    with database.engine.connect() as connection:
        found = connection.execute(sqlalchemy.text(_DEFINITIONS[connection.dialect.name])).all()
    return sorted(tuple(" ".join(str(each).replace('"', "").split()) for each in row) for row in found)


def test_an_empty_database_is_brought_up_once(empty: str) -> None:
    database = open_database(empty)
    assert migrate(database) == steps()
    assert migrate(database) == []
    database.close()


def test_gateways_that_start_together_migrate_once(empty: str) -> None:
    ran: list[list[str]] = []

    def start() -> None:
        database = open_database(empty)
        ran.append(migrate(database))
        database.close()

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ran) == [[], [], [], steps()]


@pytest.mark.parametrize(
    ("oldest", "is_taken"), [(None, False), ("9998", False), (steps()[-1], True), ("0006", True)]
)
def test_a_newer_database_is_refused_unless_its_schema_has_only_grown(
    database: Database, oldest: str | None, is_taken: bool
) -> None:
    """A later release records the oldest release that can still serve the database (docs/operate/upgrade.md)."""
    with database.engine.connect() as connection:
        connection.execute(sqlalchemy.text("UPDATE alembic_version SET version_num = '9999'"))
        connection.execute(sqlalchemy.text("DELETE FROM schema_compatibility"))
        if oldest is not None:
            connection.execute(sqlalchemy.text(f"INSERT INTO schema_compatibility VALUES ('{oldest}')"))
        connection.commit()
    if is_taken:
        assert migrate(database) == []
        assert revision_of(database) == steps()[-1]
        return
    with pytest.raises(NewerDatabase) as caught:
        migrate(database)
    assert caught.value.revision == "9999"


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE customers (id INTEGER)"],
        ["CREATE TABLE rows (id INTEGER)"],
        [
            "CREATE TABLE alembic_version (version_num TEXT)",
            "INSERT INTO alembic_version VALUES ('ae1027a6acf')",
            "CREATE TABLE users (id INTEGER)",
        ],
    ],
    ids=["any table", "a table of the same name", "revisions of its own"],
)
def test_a_database_of_another_program_is_refused(empty: str, statements: list[str]) -> None:
    database = open_database(empty)
    with database.engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
        connection.commit()
    before = sqlalchemy.inspect(database.engine).get_table_names()
    for refused in (migrate, revision_of, plan):
        with pytest.raises(
            DatabaseUnusable, match=f"of another program, such as {before[-1]}. Use an empty database"
        ):
            refused(database)
    assert sqlalchemy.inspect(database.engine).get_table_names() == before
    database.close()


def test_tables_of_an_extension_are_not_of_another_program(postgres: PostgresServer) -> None:
    database = open_database(postgres.empty_database())
    with database.engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE spatial_ref_sys (id INTEGER)")
        connection.exec_driver_sql("ALTER EXTENSION plpgsql ADD TABLE spatial_ref_sys")
        connection.commit()
    assert migrate(database) == steps()
    database.close()


def test_a_failed_migration_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablegate.gateway.store.opening import migrating

    copy = tmp_path / "migrations"
    shutil.copytree(migrating._FOLDER, copy)
    (copy / "versions" / "9998_bad.py").write_text(
        "from alembic import op\nrevision = '9998'\n"
        f"down_revision = {steps()[-1]!r}\n"
        "def upgrade():\n    op.execute('CREATE TABLE half (a INTEGER)')\n    op.execute('nonsense')\n"
    )
    monkeypatch.setattr(migrating, "_FOLDER", copy)
    database = open_database(f"sqlite:///{tmp_path / 'a.sqlite'}")
    with pytest.raises(sqlalchemy.exc.OperationalError):
        migrate(database)
    assert sqlalchemy.inspect(database.engine).get_table_names() == []
    database.close()


# 0002: the dialect becomes part of the namespace.

_AZURE_KEYS = '[[["PartitionKey", "text", false]], [["RowKey", "text", false]]]'
_OTHER_KEYS = '[[["pk", "int64", false]], []]'
# (namespace before, made by Table Store, what Azure and Table Store keep with it, namespace after)
_TABLES_OF_0001 = [
    ("shared", False, "{}", "shared"),
    ("shared", True, '{"tablestore": {}}', "shared"),
    ("123456789012/us-east-1", False, '{"dynamodb": {}}', "aws/123456789012/us-east-1"),
    ("123456789012/eu-west-1", False, '{"dynamodb": {}}', "aws/123456789012/eu-west-1"),
    ("acca", False, "{}", "azure/acca"),
    ("acca", True, '{"tablestore": {}}', "tablestore/acca"),
    # Each may have altered what the other had made.
    ("acca", False, '{"tablestore": {}, "azuretable": {}}', "azure/acca"),
    ("acca", True, '{"tablestore": {}, "azuretable": {}}', "tablestore/acca"),
    ("a%2Fb", True, '{"tablestore": {}}', "tablestore/a%2Fb"),
]


def _at(revision: str, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    """A database as the release of that revision left it."""
    from tablegate.gateway.store.opening import migrating

    copy = folder / f"migrations to {revision}"
    shutil.copytree(migrating._FOLDER, copy)
    for path in (copy / "versions").glob("[0-9]*.py"):
        if path.name[:4] > revision:
            path.unlink()
    database = open_database(url)
    with monkeypatch.context() as patched:
        patched.setattr(migrating, "_FOLDER", copy)
        assert migrate(database)[-1] == revision
    return database


def test_0002_gives_each_table_to_the_dialect_that_made_it(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = _at("0001", empty, tmp_path, monkeypatch)
    gone = len(_TABLES_OF_0001)
    orphans = [
        ("acca", _OTHER_KEYS, "tablestore/acca"),
        ("acca", _AZURE_KEYS, "azure/acca"),
        ("123456789012/us-east-1", _OTHER_KEYS, "aws/123456789012/us-east-1"),
        ("shared", _OTHER_KEYS, "shared"),
    ]
    with database.engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        for number, (before, stamped, properties, _) in enumerate(_TABLES_OF_0001):
            rules = json.dumps({"stamped": stamped, "stream": None, "expiry": None})
            values = {"id": number, "ns": before, "name": f"t{number}", "rules": rules, "props": properties}
            connection.execute(
                sqlalchemy.text(
                    "INSERT INTO tables (id, namespace, name, azure_name, azure_name_lower, key_schema, rules, properties,"
                    " state, busy_until_ms, version, created_at_ms)"
                    " VALUES (:id, :ns, :name, :name, :name, '[]', :rules, :props, 'active', 0, 1, 0)"
                ),
                values,
            )
        listed = [(at, before, "[]") for at, (before, *_) in enumerate(_TABLES_OF_0001)]
        listed += [(gone + at, before, keys) for at, (before, keys, _) in enumerate(orphans)]
        for number, before, keys in listed:
            connection.execute(
                sqlalchemy.text(
                    "INSERT INTO streams (id, table_id, namespace, table_name, label, key_schema, rule, opened_at_ms)"
                    " VALUES (:id, :id, :ns, 't', :label, :keys, '{}', 0)"
                ),
                {"id": number, "ns": before, "label": str(number), "keys": keys},
            )
        for before in ("shared", "acca", "accb"):
            connection.execute(
                sqlalchemy.text("INSERT INTO namespace_properties VALUES (:ns, :name, '{}')"),
                {"ns": before, "name": f"azuretable/{before}"},
            )
        connection.commit()

    assert "0002" in migrate(database)

    with database.engine.connect() as connection:
        made = connection.execute(sqlalchemy.text("SELECT namespace FROM tables ORDER BY id")).scalars().all()
        of_streams = (
            connection.execute(sqlalchemy.text("SELECT namespace FROM streams ORDER BY id")).scalars().all()
        )
        kept = connection.execute(
            sqlalchemy.text("SELECT namespace, name FROM namespace_properties ORDER BY name")
        ).all()
    expected = [after for *_, after in _TABLES_OF_0001]
    assert made == expected
    assert of_streams == expected + [after for *_, after in orphans]
    assert [tuple(row) for row in kept] == [
        ("azure/acca", "azuretable/acca"),
        ("azure/accb", "azuretable/accb"),
        ("shared", "azuretable/shared"),
    ]
    database.close()


# 0004: SQL tables under plain names.

_RENAMED = {"holds": "partition_locks", "staged": "staged_writes", "refills": "expiry_backfills"}
_WRITTEN_BEFORE = (
    "INSERT INTO holds (id, table_id, partition, expires_at_ms, size_bytes, writes) VALUES ('t', 1, 'p', 5, 6, 7)",
    "INSERT INTO staged (transaction_id, ordinal, partition, sort, kind) VALUES ('t', 1, 'p', 's', 'put')",
    "INSERT INTO refills (table_id, mark) VALUES (1, 'm')",
    "INSERT INTO credentials (scheme, access_id, place, sealed, changed_at_ms) VALUES ('aws', 'a', '', 'x', 1)",
)
_READ_AFTER = (
    "SELECT id, table_id, expires_at_ms, size_bytes, writes FROM partition_locks",
    "SELECT transaction_id, ordinal, kind FROM staged_writes",
    "SELECT table_id FROM expiry_backfills",
    "SELECT scheme, access_id, length(encrypted_secrets) FROM credentials",
)
# More than two batches of them, and as the releases before wrote them: `holds` may be absent.
_TABLES_OF_0003 = 1_001
_STREAM = {
    "label": "l", "enabled": True, "view": "v", "retention_ms": 1, "enabled_at_ms": 2, "id": 3,
    "properties": {"holds": "\u00e4\u0000"}, "shards": [[0, 0]],
}  # fmt: skip


def _rules_of_0003(number: int) -> dict[str, object]:
    rules = {"expiry": None, "stream": _STREAM if number % 2 else None, "max_versions": 1, "stamped": True}
    return rules if number % 3 == 0 else {**rules, "holds": number % 3 == 1}


def _where_stored(database: Database, names: Iterable[str]) -> list[object]:
    """The first page, or the file, of some tables: the same before and after what copies no row."""
    statement = {
        "sqlite": "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = :name",
        "postgresql": "SELECT pg_relation_filenode(CAST(:name AS regclass))",
    }
    with database.engine.connect() as connection:
        text = sqlalchemy.text(statement[connection.dialect.name])
        return [connection.execute(text, {"name": name}).scalar_one() for name in names]


def test_0004_renames_tables_in_place_and_keeps_what_was_written(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = _at("0003", empty, tmp_path, monkeypatch)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        for statement in _WRITTEN_BEFORE:
            connection.exec_driver_sql(statement)
        connection.execute(
            sqlalchemy.text(
                "INSERT INTO tables (id, namespace, name, azure_name, azure_name_lower, key_schema, rules, properties,"
                " state, busy_until_ms, version, created_at_ms)"
                " VALUES (:id, 'shared', :name, :name, :name, '[[], []]', :rules, '{}', 'active', 0, 1, 0)"
            ),
            [
                {"id": number, "name": f"t{number}", "rules": json.dumps(_rules_of_0003(number))}
                for number in range(_TABLES_OF_0003)
            ],
        )
        connection.commit()
    before = _where_stored(database, _RENAMED)
    database.close()

    database = _at("0004", empty, tmp_path, monkeypatch)

    assert _where_stored(database, _RENAMED.values()) == before
    with database.engine.connect() as connection:
        kept = [
            tuple(row) for query in _READ_AFTER for row in connection.execute(sqlalchemy.text(query)).all()
        ]
    assert kept == [("t", 1, 5, 6, 7), ("t", 1, "put"), (1,), ("aws", "a", 1)]
    with database.read() as session:
        found = {table.id: table.rules for table in Catalog().all(session)}
    assert len(found) == _TABLES_OF_0003
    for number, rules in found.items():
        assert rules.has_local_transactions is (number % 3 == 1)
        assert rules.stamped is True
        assert rules.stream == (stream_rule(_STREAM) if number % 2 else None)
    database.close()


# 0005: slots in the keys.

_CHANGES_OF_0004 = 3_000
_TOKENS_OF_0004 = 2_001  # more than a batch
_COUNTERS_OF_0004 = {
    "ids": 7,
    "drawn/3/" + "ab" * 20: 1_700_000_000_000_000,
    "shard/9/0": 2_999,
    "shard/9/1": 3_000,
}


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_step_may_compute_for_a_minute_between_its_statements(database: Database) -> None:
    """A request has five seconds."""
    from tablegate.gateway.store.opening import migrating

    with database.engine.connect() as connection:
        shown = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar()
        migrating._begin(connection)
        in_migration = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar()
        connection.exec_driver_sql("ROLLBACK")
    assert (shown, in_migration) == ("5s", "1min")


def test_0005_gives_slots_and_keeps_what_was_written(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = _at("0004", empty, tmp_path, monkeypatch)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        for statement in (
            (
                "INSERT INTO partition_locks (id, table_id, partition, expires_at_ms, size_bytes, writes)"
                " VALUES ('t', 1, 'p', 5, 6, 7)"
            ),
            "INSERT INTO staged_writes (transaction_id, ordinal, partition, sort, kind) VALUES ('t', 1, 'p', 's', 'put')",
        ):
            connection.exec_driver_sql(statement)
        for number in (0, 1):
            connection.execute(
                sqlalchemy.text(
                    "INSERT INTO shards (stream_id, number, first_slot, last_slot, parents, opened_at_ms, trimmed)"
                    " VALUES (9, :number, 0, 255, '[]', 0, 0)"
                ),
                {"number": number},
            )
        connection.execute(
            sqlalchemy.text("INSERT INTO counters (name, value) VALUES (:name, :value)"),
            [{"name": name, "value": value} for name, value in _COUNTERS_OF_0004.items()],
        )
        connection.execute(
            sqlalchemy.text(
                "INSERT INTO tokens (scope, name, digest, answer, expires_at_ms) VALUES (:scope, :name, :digest, '[]', 5)"
            ),
            [
                {"scope": f"s{number % 2}", "name": f"\u00e4{number}", "digest": bytes([number % 256])}
                for number in range(_TOKENS_OF_0004)
            ],
        )
        connection.execute(
            sqlalchemy.text(
                "INSERT INTO changes (stream_id, shard, sequence, at_ms, kind, noop, actor, key, new_body)"
                " VALUES (9, :shard, :number, 1, 'put', 0, '', :key, :body)"
            ),
            [
                {"shard": number % 2, "number": number, "key": b'{"p":{"S":"a"}}', "body": b"{}"}
                for number in range(1, _CHANGES_OF_0004 + 1)
            ],
        )
        connection.commit()

    assert migrate(database)[-1] >= "0005"

    with database.read() as session:
        for name, value in _COUNTERS_OF_0004.items():
            assert counters.value_of(session, name) == value
        assert [len(changes.page(session, (9, shard), 1, _CHANGES_OF_0004)) for shard in (0, 1)] == [
            1_500,
            1_500,
        ]
        assert [changes.last_sequence(session, (9, shard)) for shard in (0, 1)] == [2_999, 3_000]
        assert session.query("SELECT count(*) FROM tokens") == [(_TOKENS_OF_0004,)]
        # Transactions of an earlier release have no recorded partition. They are ended.
        for table in ("partition_locks", "staged_writes"):
            assert session.query(f"SELECT count(*) FROM {table}") == [(0,)]
    with database.write() as session:
        for number in (0, 1, _TOKENS_OF_0004 - 1):
            known = tokens.take(session, f"s{number % 2}", f"\u00e4{number}", 1)
            assert known == (bytes([number % 256]), "[]")
    database.close()


# 0007: grants.


def test_0007_leaves_stored_credentials_everything(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = _at("0006", empty, tmp_path, monkeypatch)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        for scheme, access_id in (("aws", "AKID"), ("azure", "account")):
            connection.exec_driver_sql(
                "INSERT INTO credentials (scheme, access_id, place, encrypted_secrets, changed_at_ms)"
                f" VALUES ('{scheme}', '{access_id}', '', 'x', 5)"
            )
        connection.commit()
    assert "0007" in migrate(database)
    with database.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT grantee, form FROM grants ORDER BY grantee").all()
    assert [tuple(row) for row in found] == [("aws/AKID", "all"), ("azure/account", "all")]
    database.close()


# 0012: rows of SQLite in the order of their arrival.


@pytest.mark.parametrize("has_rows", [False, True])
def test_0012_moves_no_rows(has_rows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = _at("0011", f"sqlite:///{tmp_path / 'a.sqlite'}", tmp_path, monkeypatch)
    with database.engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        for table_id in (2, 1) if has_rows else ():
            connection.exec_driver_sql(
                "INSERT INTO rows (table_id, partition, sort, slot, modified_at, size_bytes, body)"
                f" VALUES ({table_id}, 'p', 's', 0, 5, 6, 'b')"
            )
        connection.commit()

    assert migrate(database)[0] == "0012"

    with database.engine.connect() as connection:
        kept = connection.exec_driver_sql("SELECT table_id, body FROM rows").all()
        [(written,)] = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'rows'").all()
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    assert [tuple(row) for row in kept] == ([(1, "b"), (2, "b")] if has_rows else [])
    assert ("WITHOUT ROWID" in written) is has_rows
    database.close()
