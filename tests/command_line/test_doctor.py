"""`tablegate doctor`: each check on a database that is well and on one that is not, its exit status and its JSON."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from sqlalchemy import make_url

from tablegate.gateway.__main__ import main
from tablegate.gateway.capabilities import new_engine
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.doctor import databases, environment
from tablegate.gateway.doctor import databases as database_checks
from tablegate.gateway.doctor.findings import (
    Check,
    CheckContext,
    CheckResult,
    Severity,
    findings_of,
)
from tablegate.gateway.model.commands.table_commands import AlterTable, NewIndex
from tablegate.gateway.model.tables.indexes import IndexProjection
from tablegate.gateway.model.values.keys import KeySchema
from tablegate.gateway.model.values.values import Kind, Value, text
from tablegate.gateway.security.credential_store import CredentialStore
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.server.listening import make_self_signed_certificate
from tablegate.gateway.store import migrating
from tablegate.gateway.store.sql.checksums import checksum_of
from tablegate.gateway.store.sql.databases import Database, NodeShards, TablePlacement
from tablegate.gateway.store.sqlite import files
from tablegate.gateway.store.sqlite.database import SQLITE_PAGE_BYTES
from tablegate.gateway.store.store import Store
from tablegate.gateway.wiring import open_store
from tests.gateway.engine.conftest import Client, by_color, column, make_table
from tests.support.later_release import later_migrations

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
OK, SOMETHING_FAILED, WARNINGS = 0, 1, 3


def examined(url: str, *flags: str, code: int) -> dict[str, dict[str, Any]]:
    """Return the results of `doctor --json` by the name of the check."""
    done = CliRunner().invoke(main, ["doctor", "--json", "--database", url, *flags])
    assert done.exit_code == code, done.output
    told = json.loads(done.output)
    assert told["verdict"] == {OK: "ok", SOMETHING_FAILED: "failed", WARNINGS: "warning"}[code]
    return {check["check"]: check for check in told["checks"]}


def own(database_url: str) -> str:
    """Return a database that only its owner can read, as a server creates it."""
    if database_url.startswith("sqlite"):
        Path(database_url.removeprefix("sqlite:///")).chmod(0o600)
    return database_url


@on_sqlite
def test_all_is_well_on_sqlite(database_url: str) -> None:
    checks = examined(own(database_url), code=OK)
    assert {check["level"] for check in checks.values()} == {"ok", "skipped"}
    assert checks["schema"]["facts"]["found"] == checks["schema"]["facts"]["newest"]
    assert checks["where tables are"]["facts"] == {"nodes": 1}
    assert checks["disk"]["facts"]["free_bytes"] > 0


@on_postgresql
def test_on_postgresql_settings_disabled_by_the_tests_are_reported(database_url: str) -> None:
    checks = examined(database_url, code=WARNINGS)
    warned = {name for name, check in checks.items() if check["level"] == "warning"}
    assert warned == {"durability"}
    assert "fsync" in checks["durability"]["text"]
    assert checks["clock"]["facts"]["seconds"] == pytest.approx(0, abs=0.5)
    assert checks["disk"]["facts"]["size_bytes"] > 0
    assert not checks["database version"]["facts"]["is_standby"]


def test_a_table_is_printed_for_people(database_url: str) -> None:
    done = CliRunner().invoke(main, ["doctor", "--database", database_url])
    assert "schema" in done.output
    assert "the newest of this release" in done.output


def test_a_database_that_does_not_answer(tmp_path: Path) -> None:
    checks = examined("postgresql://nobody@127.0.0.1:1/none", code=SOMETHING_FAILED)
    assert checks["database"]["level"] == "failed"
    assert checks["schema"]["level"] == "skipped"


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    checks = examined(f"sqlite:///{tmp_path}/new.sqlite", code=WARNINGS)
    assert "not there yet" in checks["database"]["text"]
    assert list(tmp_path.iterdir()) == []


def test_an_older_schema_is_a_warning_and_a_newer_one_a_failure(
    database_url: str, database: Database, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(migrating, "FOLDER", later_migrations(tmp_path))
        checks = examined(own(database_url), code=WARNINGS)
    assert "tablegate migrate" in checks["schema"]["text"]
    with database.write() as session:
        session.execute("UPDATE alembic_version SET version_num = '9999'")
        session.execute("DELETE FROM schema_compatibility")
    checks = examined(own(database_url), code=SOMETHING_FAILED)
    assert "later release" in checks["schema"]["text"]


@on_postgresql
def test_a_role_without_rights(database_url: str) -> None:
    url = make_url(database_url)
    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    name = f"guest_{os.urandom(4).hex()}"
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'guest'")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}")
    try:
        guest = url.set(username=name, password="guest").render_as_string(hide_password=False)
        checks = examined(guest, code=SOMETHING_FAILED)
        assert "rows" in checks["rights"]["facts"]["without_rights"]
        assert checks["rights"]["facts"]["may_create"] is False
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute(
                f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}"
            )
        checks = examined(guest, code=WARNINGS)
        assert checks["rights"]["level"] == "warning"
        assert "tablegate migrate" in checks["rights"]["text"]
    finally:
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {name}")
            connection.execute(f"DROP ROLE {name}")


@on_sqlite
def test_a_file_that_others_may_read(database_url: str) -> None:
    Path(database_url.removeprefix("sqlite:///")).chmod(0o644)
    checks = examined(database_url, code=WARNINGS)
    assert checks["rights"]["level"] == "warning"


@pytest.mark.parametrize(
    ("skew", "level"), [(0.4, "ok"), (-0.4, "ok"), (2.0, "warning"), (-2.0, "warning"), (61.0, "failed")]
)
@on_postgresql
def test_a_clock_that_is_wrong(
    database_url: str, database: Database, monkeypatch: pytest.MonkeyPatch, skew: float, level: str
) -> None:
    real = time.time

    class Clock:
        perf_counter = staticmethod(time.perf_counter)

        @staticmethod
        def time() -> float:
            return real() + skew

    monkeypatch.setattr(database_checks, "time", Clock)
    [told] = database_checks.clock(CheckContext(load({"database": database_url}, {}), database))
    assert told.level.value == level
    assert told.facts["seconds"] == pytest.approx(-skew, abs=0.3)


@pytest.mark.parametrize(
    ("flags", "names", "code"),
    [
        (["--host", "0.0.0.0"], {"auth", "host"}, SOMETHING_FAILED),
        (["--host", "0.0.0.0", "--insecure"], {"auth", "insecure"}, WARNINGS),
        (["--namespaces", "separate"], {"auth", "namespaces"}, WARNINGS),
        (["--jwt-issuer", "x"], {"jwt_keys_file"}, WARNINGS),
        (["--admin-token", "x" * 15], {"admin_token"}, WARNINGS),
        (["--max-buffered-bytes", "1000"], {"max_buffered_bytes", "max_body_bytes"}, WARNINGS),
    ],
)
@on_sqlite
def test_settings_that_clash(database_url: str, flags: list[str], names: set[str], code: int) -> None:
    checks = examined(own(database_url), *flags, code=code)
    assert set(checks["settings"]["facts"]["settings"]) == names


@on_sqlite
def test_the_secret_key_must_open_what_is_stored(database_url: str, database: Database) -> None:
    CredentialStore(Store(database), lambda: "the right key, 16+").add(
        Credential(Scheme.AWS, "KEY", ("secret",))
    )
    url = own(database_url)
    checks = examined(url, "--secret-key", "the right key, 16+", code=OK)
    assert checks["secret key"]["facts"] == {"credentials": 1}
    checks = examined(url, "--secret-key", "another key, 16+++", code=SOMETHING_FAILED)
    assert "cannot decrypt" in checks["secret key"]["text"]
    checks = examined(url, code=SOMETHING_FAILED)
    assert ".key is not there" in checks["secret key"]["text"]
    assert not Path(url.removeprefix("sqlite:///") + ".key").exists()


@on_sqlite
def test_doctor_warns_of_auth_strict_without_a_credential(database_url: str) -> None:
    checks = examined(own(database_url), "--auth", "strict", "--metrics-port", "0", code=WARNINGS)
    assert "auth strict refuses all requests" in checks["secret key"]["text"]


@on_sqlite
def test_a_disk_that_is_nearly_full(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        total = 1 << 40
        free = 63 << 20

    monkeypatch.setattr(environment.shutil, "disk_usage", lambda path: Usage)
    checks = examined(own(database_url), code=SOMETHING_FAILED)
    assert checks["disk"]["level"] == "failed"
    Usage.free = (1 << 30) - 1
    assert examined(database_url, code=WARNINGS)["disk"]["level"] == "warning"
    Usage.free = 1 << 30
    assert examined(database_url, code=OK)["disk"]["level"] == "ok"


@on_sqlite
def test_certificates(database_url: str, tmp_path: Path) -> None:
    certificate, key = make_self_signed_certificate(tmp_path, "127.0.0.1")
    flags = ["--tls-cert", str(certificate), "--tls-key", str(key)]
    assert "valid until" in examined(own(database_url), *flags, code=OK)["certificate"]["text"]
    key.write_text("no key")
    assert examined(database_url, *flags, code=SOMETHING_FAILED)["certificate"]["level"] == "failed"


def test_a_check_that_raises_has_found_that() -> None:
    def broken(context: CheckContext) -> Iterator[CheckResult]:
        yield CheckResult(Severity.OK, "so far")
        raise OSError("no more")

    settings = load({"memory": True}, {})
    found = list(findings_of(Check("broken", broken, "Repair it.", "page.md"), CheckContext(settings, None)))
    assert [(each.level, each.text) for each in found] == [
        (Severity.OK, "so far"), (Severity.FAILED, "OSError: no more"),
    ]  # fmt: skip


@on_sqlite
def test_doctor_runs_beside_a_server_and_changes_nothing(database_url: str) -> None:
    path = Path(own(database_url).removeprefix("sqlite:///"))
    with contextlib.closing(sqlite3.connect(path)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        examined(database_url, code=OK)
        writer.execute("ROLLBACK")


class Distributed:
    """Plays a distributed database."""

    is_distributed = True


def test_doctor_reports_the_placement_of_a_distributed_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """With Citus: tests/durability/test_distributed.py."""
    shards = [NodeShards("a:5432", 16), NodeShards("b:5432", 16)]
    placed = TablePlacement(["rows", "changes"], ["tables"], [], shards)
    prepared = [("100",)]
    answers: dict[str, list[tuple[str, ...]]] = {databases._STUCK: [("a:5432", "true", "0")]}

    def query(context: CheckContext, statement: str) -> list[tuple[str, ...]]:
        if "has_table_privilege" in statement:
            return [("true",)]
        return answers.get(statement, prepared)

    monkeypatch.setattr(databases, "placement_of", lambda url: placed)
    monkeypatch.setattr(CheckContext, "query", query)
    looked_at = CheckContext(load({"database": "postgresql://a/b"}, {}), None)
    [told] = databases.distribution(looked_at)
    assert told.level is Severity.OK
    assert told.text == "2 tables by slot (a:5432 has 16 shards, b:5432 has 16 shards), 1 on every node"
    prepared[0] = ("0",)
    assert [told.level for told in databases.distribution(looked_at)] == [Severity.OK, Severity.FAILED]
    prepared[0] = ("100",)
    answers[databases._STUCK] = [("a:5432", "false", "no route"), ("b:5432", "true", "3")]
    _, away, stuck = databases.distribution(looked_at)
    assert (away.level, away.text) == (Severity.FAILED, "node a:5432 does not answer: no route")
    assert stuck.level is Severity.WARNING and "b:5432 has 3 prepared transactions" in stuck.text
    placed = placed._replace(alone=["jobs"])
    [told] = databases.distribution(looked_at)
    assert told.level is Severity.FAILED and "on one node only: jobs" in told.text


def test_a_distributed_database_has_no_replicas() -> None:
    settings = load({"database": "postgresql://a/b", "replica": ("postgresql://c/b",)}, {})
    [told] = databases.replicas(CheckContext(settings, Distributed()))  # type: ignore[arg-type]
    assert told.level is Severity.FAILED
    with pytest.raises(BadSetting, match="distributed over several nodes"):
        open_store(settings, Distributed())  # type: ignore[arg-type]


# --deep


def filled(database: Database) -> Client:
    engine = new_engine(Store(database))
    client = Client(engine, make_table(engine, indexes=(by_color(),)))
    client.write(*(client.put("a", s, color=text("red")) for s in range(700)))
    return client


def deep(database_url: str, code: int) -> dict[str, Any]:
    return examined(own(database_url), "--deep", code=code)


@pytest.fixture
def well(database_url: str) -> int:
    """The exit status if nothing more is found: the PostgreSQL of the tests does not sync."""
    return OK if database_url.startswith("sqlite") else WARNINGS


def test_deep_reads_every_row_and_entry(database_url: str, database: Database, well: int) -> None:
    filled(database)
    found = deep(database_url, well)
    assert found["rows and index entries"]["facts"] == {
        "rows": 700, "entries": 700, "faults": [],
    }  # fmt: skip
    assert found["pages"]["level"] == ("ok" if well == OK else "skipped")


def test_sweep_and_deep_read_index_keys_as_the_dialect_of_the_index(
    database_url: str, database: Database, well: int
) -> None:
    """Table Store indexes a number of DynamoDB as the integer that its clients see (docs/architecture.md section 7)."""
    engine = new_engine(Store(database))
    client = Client(engine, make_table(engine))
    client.write(client.put("a", 1, size=Value(Kind.DECIMAL, Decimal(7))))
    schema = KeySchema((column("size", Kind.INT64),), ())
    index = NewIndex("by_size", schema, IndexProjection.ALL)
    engine.run([AlterTable("tablestore", client.table, add_indexes=(index,))])
    swept = CliRunner().invoke(main, ["sweep", "--database", database_url])
    assert swept.exit_code == 0
    facts = deep(database_url, well)["rows and index entries"]["facts"]
    assert (facts["entries"], facts["faults"]) == (1, [])


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE rows SET size_bytes = size_bytes + 1", "does not match its checksum"),
        ("UPDATE rows SET checksum = NULL", "does not match its checksum"),
        ("body", "cannot be read"),
        ("DELETE FROM entries", "has no entry in the index by_color"),
        ("DELETE FROM rows", "an entry of the index by_color matches no row"),
    ],
)
def test_deep_finds_damage(database_url: str, database: Database, damage: str, said: str) -> None:
    client = filled(database)
    with database.write() as session:
        column = "row_sort" if "entries" in damage else "sort"
        sort = client.key("a", 600).position.sort
        if damage == "body":
            [row] = session.query(
                "SELECT partition, sort, full_key, modified_at, size_bytes, kinds FROM rows WHERE sort = ?",
                (sort,),
            )
            changed = (b"{", checksum_of(*row, body=b"{"), sort)
            session.execute("UPDATE rows SET body = ?, checksum = ? WHERE sort = ?", changed)
        else:
            session.execute(f"{damage} WHERE {column} = ?", (sort,))
    check = deep(database_url, SOMETHING_FAILED)["rows and index entries"]
    assert check["level"] == "failed"
    assert len(check["facts"]["faults"]) == 1
    assert said in check["text"]


def test_deep_finds_wrong_row_counts_and_recount_repairs_them(
    database_url: str, database: Database, well: int
) -> None:
    filled(database)
    with database.write() as session:
        session.execute("UPDATE row_counts SET rows = rows + 1")
    check = deep(database_url, WARNINGS)["row counts"]
    assert check["level"] == "warning"
    assert "things/by_color: stored" in check["text"]
    assert "`tablegate tables recount TABLE`" in check["text"]
    result = CliRunner().invoke(
        main, ["tables", "recount", "things", "--namespace", "", "--database", own(database_url)]
    )
    assert result.exit_code == 0, result.output
    assert "things: 700 rows, " in result.output
    assert "things/by_color: 700 entries, " in result.output
    assert deep(database_url, well)["row counts"]["level"] == "ok"


@on_sqlite
def test_a_page_of_noise_is_found_without_deep(
    database_url: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(database)
    database.close()
    path = Path(own(database_url).removeprefix("sqlite:///"))
    assert examined(database_url, code=OK)["pages"]["text"] == "PRAGMA quick_check: ok"
    context = CheckContext(load({"database": database_url}, {}), database)
    check = Check("pages", database_checks.pages, "", "")
    well, noise = path.read_bytes(), random.Random(1).randbytes(SQLITE_PAGE_BYTES)
    for at in range(0, len(well), SQLITE_PAGE_BYTES):
        path.write_bytes(well[:at] + noise + well[at + SQLITE_PAGE_BYTES :])
        [found] = findings_of(check, context)
        assert found.level is Severity.FAILED, (at // SQLITE_PAGE_BYTES + 1, found)
    assert examined(database_url, code=SOMETHING_FAILED)["pages"]["level"] == "failed"
    path.write_bytes(well)
    with pytest.raises(TimeoutError):
        files.damaged_pages(path, -1, steps=1)
    monkeypatch.setattr(database, "damaged_pages", raising(TimeoutError()))
    [found] = findings_of(check, context)
    assert found.level is Severity.WARNING
    assert "did not end within 60 s: run `tablegate doctor --deep`" in found.text
    path.unlink()
    with pytest.raises(sqlite3.OperationalError):
        files.damaged_pages(path, 1)
    assert not path.exists()


def raising(error: Exception) -> Callable[..., None]:
    def call(*_: object) -> None:
        raise error

    return call


@on_sqlite
def test_deep_finds_a_damaged_page(database_url: str, database: Database) -> None:
    filled(database)
    database.close()
    path = Path(database_url.removeprefix("sqlite:///"))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        [(root,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'rows_by_slot'")
        [(page_bytes,)] = connection.execute("PRAGMA page_size")
    with path.open("r+b") as file:
        file.seek((root - 1) * page_bytes)
        file.write(b"\xee" * 100)
    assert deep(database_url, SOMETHING_FAILED)["pages"]["level"] == "failed"


@pytest.fixture
def amcheck(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    """Return a superuser's connection to a PostgreSQL with amcheck.

    The wheel of the tests has none, and Debian's packages have it (TABLEGATE_TEST_DATABASE_URL).
    """
    plain = make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        known = connection.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'amcheck'").fetchall()
        if not known:
            pytest.skip("this PostgreSQL has no amcheck")
        connection.execute("CREATE EXTENSION amcheck")
        yield connection
        connection.execute("DROP EXTENSION amcheck")


@on_postgresql
def test_deep_calls_amcheck(database_url: str, database: Database, amcheck: psycopg.Connection[Any]) -> None:
    """An index that was not maintained for a while lacks an entry. The other indexes are still checked."""
    filled(database)
    found = CliRunner().invoke(main, ["doctor", "--deep", "--json", "--database", database_url])
    assert "amcheck finds nothing in" in found.output
    kept_up = "UPDATE pg_index SET indisready = {0}, indisvalid = {0} WHERE indexrelid = '{1}'::regclass"
    names = ("rows_by_slot", "entries_pkey")
    try:
        for name in names:
            amcheck.execute(kept_up.format("false", name))  # type: ignore[arg-type]
        for table in ("rows", "entries"):
            amcheck.execute(
                f"UPDATE {table} SET sort = sort || '\\x00' WHERE ctid = (SELECT min(ctid) FROM {table})"  # type: ignore[arg-type]
            )
        for name in names:
            amcheck.execute(kept_up.format("true", name))  # type: ignore[arg-type]
        pages = deep(database_url, SOMETHING_FAILED)["pages"]
        assert pages["level"] == "failed"
        assert [text.partition(": ")[0] for text in pages["facts"]["found"]] == sorted(names)
        assert all("lacks matching index tuple" in text for text in pages["facts"]["found"])
    finally:
        for name in names:
            amcheck.execute(kept_up.format("true", name))  # type: ignore[arg-type]
            amcheck.execute(f"REINDEX INDEX {name}")  # type: ignore[arg-type]


@on_postgresql
def test_deep_names_the_right_that_amcheck_needs(database_url: str, amcheck: psycopg.Connection[Any]) -> None:
    amcheck.execute("CREATE ROLE plain_doctor LOGIN")
    try:
        amcheck.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO plain_doctor")
        url = make_url(database_url).set(username="plain_doctor").render_as_string(hide_password=False)
        done = CliRunner().invoke(main, ["doctor", "--deep", "--json", "--database", url])
        [pages] = [check for check in json.loads(done.output)["checks"] if check["check"] == "pages"]
        assert pages["level"] == "skipped"
        assert "grant it EXECUTE" in pages["text"]
    finally:
        amcheck.execute("DROP OWNED BY plain_doctor")
        amcheck.execute("DROP ROLE plain_doctor")
