"""The list of checks, their run, and a run that is bounded in time.

A check is a function from a CheckContext to results (findings.py). To add one, write the function in the module of its
subject and add it to CHECKS.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence

from tablegate.gateway.configuration.database_urls import with_advice
from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.doctor import databases, deep, environment
from tablegate.gateway.doctor import environment as settings_checks
from tablegate.gateway.doctor.findings import Check, CheckContext, Finding, Severity, findings_of
from tablegate.gateway.store.sql.databases import Database

_SLOW = "operate/runbook.md#requests-are-slow"
_NO_ANSWER = "operate/runbook.md#all-requests-get-503"
_DAMAGED = "operate/runbook.md#stored-data-is-damaged"
_NO_START = "operate/runbook.md#the-server-does-not-start"
_REPAIR = "Find out what is damaged, then restore it from a copy or a backup."
CHECKS = (
    Check("settings", settings_checks.clashes, "Change these settings and restart the server.", _NO_START),
    Check(
        "database reachable", databases.reachable, "Check the database's disk and the network to it.", _SLOW, True
    ),
    Check(
        "database version", databases.version, "Use a supported primary of PostgreSQL.", _NO_START, True
    ),
    Check(
        "schema", databases.schema, "Use the same release on all servers of this database.", "operate/upgrade.md", True
    ),
    Check(
        "rights", databases.rights, "Change the privileges of the role or the mode of the file.", "operate/secure.md", True
    ),
    Check(
        "durability", databases.durability,
        "SQLite: start the server with --synchronous full. PostgreSQL: enable the named settings.",
        "explain/durability.md", True,
    ),
    Check(
        "connections", databases.connections, "Raise max_connections of PostgreSQL, or lower --workers.",
        "operate/install.md", True,
    ),
    Check(
        "where tables are", databases.distribution, "Move all tables to the required nodes with tablegate distribute.",
        "operate/scaling.md", True,
    ),
    Check(
        "replicas", databases.replicas, "Check that the replica runs and follows this primary.", "operate/replicas.md", True
    ),
    Check(
        "clock", databases.clock, "Synchronize the clocks of this machine and the database with NTP.", "operate/runbook.md", True
    ),
    Check(
        "secret key", settings_checks.secret_key, "Start the server with the key that encrypted the credentials.",
        "operate/secure.md#the-secret-key", True,
    ),
    Check("disk", environment.disk, "Free or add disk space.", "operate/runbook.md#the-disk-is-full"),
    Check("open files", environment.open_files, "Raise the limit of open files of the server's user.", "operate/install.md"),
    Check("certificate", environment.certificate, "Renew the certificate.", "operate/secure.md"),
)  # fmt: skip
PLAIN_CHECKS = (Check("pages", databases.pages, _REPAIR, _DAMAGED, needs_database=True),)
"""The checks of `tablegate doctor` without --deep. They read the whole file, so the console does not run them."""
DEEP_CHECKS = (
    Check("pages", deep.pages, _REPAIR, _DAMAGED, needs_database=True),
    Check("rows and index entries", deep.rows_and_entries, _REPAIR, _DAMAGED, needs_database=True),
    Check("row counts", deep.row_counts, _REPAIR, _DAMAGED, needs_database=True),
)


def examine(
    settings: Settings, more: Sequence[Check] = (), server_database: Database | None = None
) -> Iterator[Finding]:
    """Run all checks and yield their findings, in the order of the checks.

    `more`: PLAIN_CHECKS or DEEP_CHECKS. All use the database of a running server, or open the one of the settings.
    """
    database, finding = server_database, None
    with contextlib.ExitStack() as stack:
        if server_database is None:
            database, finding = _open_database(settings)
            if database is not None:
                stack.callback(database.close)
        elif (finding := _unanswered(server_database)) is not None:
            database = None
        if finding is not None:
            yield finding
        for check in (*CHECKS, *more):
            yield from findings_of(check, CheckContext(settings, database))


class BoundedExamination:
    """Runs of the checks without the deep ones, on a thread. Callers do not wait longer than a bound.

    There is one run at a time. Calls during a run wait for its findings. `server_database` returns the database of the
    server, None if the checks open their own.
    """

    def __init__(
        self, settings: Settings, server_database: Callable[[], Database | None] = lambda: None
    ) -> None:
        self._settings = settings
        self._server_database = server_database
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._found: list[Finding] = []

    def findings(self, bound_s: float) -> list[Finding]:
        """Return the findings. If the checks take longer than `bound_s`, those so far and a warning."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._found = []
                self._thread = threading.Thread(
                    target=self._run, args=(self._found,), name="health checks", daemon=True
                )
                self._thread.start()
            thread, found = self._thread, self._found
        thread.join(bound_s)
        if not thread.is_alive():
            return found
        text = f"the checks did not end within {bound_s:g} s: these are the findings so far"
        return [*found, Finding("time", Severity.WARNING, text, {}, "Run `tablegate doctor`.", _SLOW)]

    def _run(self, found: list[Finding]) -> None:
        for finding in examine(self._settings, server_database=self._server_database()):
            found.append(finding)  # callers read the list meanwhile


def _open_database(settings: Settings) -> tuple[Database | None, Finding | None]:
    """Return the database, or the finding that it cannot be used."""
    from tablegate.gateway.wiring import connect

    path = settings.database_path
    if settings.memory:
        return None, Finding("database", Severity.SKIPPED, "the database is in memory of the server")
    if path is not None and not path.exists():
        text = f"{path} is not there yet: the first start of a server creates it"
        return None, Finding("database", Severity.WARNING, text, {}, "Check the setting database.", _NO_START)
    try:
        database = connect(settings)
    except Exception as error:
        return None, _no_answer(error)
    finding = _unanswered(database)
    if finding is not None:
        database.close()
        return None, finding
    return database, None


def _unanswered(database: Database) -> Finding | None:
    """Return the finding that a database does not answer, or None."""
    try:
        with database.read_one() as session:
            session.query("SELECT 1")
    except Exception as error:
        return _no_answer(error)
    return None


def _no_answer(error: Exception) -> Finding:
    text = " ".join(f"the database does not answer: {with_advice(str(error))}".split())
    advice = "Check that the database runs, and the network to it."
    return Finding("database", Severity.FAILED, text, {}, advice, _NO_ANSWER)
