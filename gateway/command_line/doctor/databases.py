"""Checks of the database: whether it answers, which it is, at which schema, what the role may do, how it is set.

Each statement is one look at the database, and gives texts (Examined.ask).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from tablegate.gateway.command_line.doctor.findings import CheckContext, CheckResult, Severity
from tablegate.gateway.configuration.database_urls import without_password
from tablegate.gateway.store.opening.migrating import NewerDatabase, revision_of, steps

OLDEST_POSTGRESQL = 14
_SLOW_MS = 20.0
# Signatures are good for minutes, but the writes of two gateways are ordered by their clocks.
_SKEW_S, _MOST_SKEW_S = 0.5, 60.0
# What makes acknowledged writes go: PostgreSQL's manual, "Settings" of its write-ahead log.
_SAFE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": None, "autovacuum": "on"}


def reachable(examined: CheckContext) -> Iterator[CheckResult]:
    """Whether the database answers, and how quickly: the best of three."""
    took = []
    for _ in range(3):
        began = time.perf_counter()
        examined.ask("SELECT 1")
        took.append((time.perf_counter() - began) * 1000)
    best = min(took)
    shown = without_password(examined.settings.database)
    level = Severity.WARNING if best > _SLOW_MS else Severity.OK
    yield CheckResult(level, f"{shown} answers in {best:.2f} ms", {"database": shown, "ms": round(best, 2)})


def version(examined: CheckContext) -> Iterator[CheckResult]:
    """Which version of the database it is."""
    if not examined.is_a_server:
        [(shown,)] = examined.ask("SELECT sqlite_version()")
        yield CheckResult(Severity.OK, f"SQLite {shown}", {"version": shown})
        return
    [(number, shown, standby)] = examined.ask(
        "SELECT current_setting('server_version_num'), current_setting('server_version'), pg_is_in_recovery()::text"
    )
    facts = {"version": shown, "is_standby": standby == "true"}
    if standby == "true":
        yield CheckResult(Severity.FAILED, f"PostgreSQL {shown} is a standby, which takes no writes", facts)
    elif int(number) < OLDEST_POSTGRESQL * 10_000:
        yield CheckResult(Severity.FAILED, f"PostgreSQL {shown} is older than {OLDEST_POSTGRESQL}", facts)
    else:
        yield CheckResult(Severity.OK, f"PostgreSQL {shown}", facts)


def schema(examined: CheckContext) -> Iterator[CheckResult]:
    """Which step of the schema the database is at."""
    newest = steps()[-1]
    assert examined.database is not None
    try:
        found = revision_of(examined.database)
    except NewerDatabase as error:
        text = f"the schema is {error.revision}, of a later release; this one has {newest}"
        yield CheckResult(Severity.FAILED, text, {"found": error.revision, "newest": newest})
        return
    facts = {"found": found, "newest": newest}
    if not found:
        yield CheckResult(Severity.OK, f"empty: the first server makes schema {newest}", facts)
    elif found != newest:
        text = f"the schema is {found}: `tablegate migrate`, or the next server, brings it to {newest}"
        yield CheckResult(Severity.WARNING, text, facts)
    else:
        yield CheckResult(Severity.OK, f"schema {newest}, the newest of this release", facts)


def rights(examined: CheckContext) -> Iterator[CheckResult]:
    """What the role may do: read and write every table, and, where a step of the schema is due, make tables."""
    if not examined.is_a_server:
        yield from _rights_of_files(examined)
        return
    [(role, may_make)] = examined.ask(
        "SELECT current_user::text, coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)::text"
    )
    missing = [
        name
        for (name,) in examined.ask(
            "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace "
            "AND NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT') "
            "AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')) ORDER BY relname"
        )
    ]
    facts = {"role": role, "may_create": may_make == "true", "without_rights": missing}
    if missing:
        yield CheckResult(
            Severity.FAILED, f"the role {role} may not read and write {', '.join(missing)}", facts
        )
    elif may_make != "true":
        text = f"the role {role} may not make tables: run `tablegate migrate` with one that may, before an upgrade"
        yield CheckResult(Severity.WARNING, text, facts)
    else:
        yield CheckResult(Severity.OK, f"the role {role} may read, write and migrate", facts)


def _rights_of_files(examined: CheckContext) -> Iterator[CheckResult]:
    path = examined.settings.database_path
    if path is None:
        yield CheckResult(Severity.OK, "in memory")
        return
    # That the file and its folder can be written was found out when it was opened.
    mode = path.stat().st_mode & 0o777
    facts = {"path": str(path), "mode": f"{mode:04o}"}
    if mode & 0o077:
        yield CheckResult(
            Severity.WARNING, f"others than its owner may read or write {path} ({mode:04o})", facts
        )
    else:
        yield CheckResult(Severity.OK, f"{path} is its owner's alone", facts)


def durability(examined: CheckContext) -> Iterator[CheckResult]:
    """Whether what was acknowledged survives a power cut."""
    if not examined.is_a_server:
        is_full = examined.settings.synchronous == "full"
        text = (
            "a power cut loses nothing"
            if is_full
            else "synchronous is normal: a power cut may lose the last writes"
        )
        yield CheckResult(Severity.OK if is_full else Severity.WARNING, text)
        return
    shown = ", ".join(f"current_setting('{name}')" for name in _SAFE)
    found = dict(zip(_SAFE, examined.ask(f"SELECT {shown}")[0], strict=True))
    bad = [name for name, value in found.items() if value == "off"]
    if bad:
        yield CheckResult(Severity.WARNING, f"switched off in PostgreSQL: {', '.join(bad)}", found)
    else:
        yield CheckResult(Severity.OK, "fsync, full pages, synchronous commit and autovacuum are on", found)


def connections(examined: CheckContext) -> Iterator[CheckResult]:
    """Whether PostgreSQL takes as many connections as the server processes may open."""
    if not examined.is_a_server:
        yield CheckResult(Severity.SKIPPED, "a file has no limit of connections")
        return
    [(most, reserved, used)] = examined.ask(
        "SELECT current_setting('max_connections'), current_setting('superuser_reserved_connections'), "
        "(SELECT count(*)::text FROM pg_stat_activity WHERE backend_type = 'client backend')"
    )
    # A writer and its readers on each of the threads that may be at the database: the tick's, Flask's, the background's.
    needed = 12 * examined.settings.workers
    free = int(most) - int(reserved) - int(used)
    facts = {"max_connections": int(most), "used": int(used), "needed": needed}
    text = f"{free} of {most} connections are free; {examined.settings.workers} server processes may want {needed}"
    yield CheckResult(Severity.WARNING if free < needed else Severity.OK, text, facts)


def clock(examined: CheckContext) -> Iterator[CheckResult]:
    """How far this machine's clock and the database's are apart. Of five looks the quickest counts."""
    if not examined.is_a_server:
        yield CheckResult(Severity.SKIPPED, "SQLite is on this machine")
        return
    looks = []
    for _ in range(5):
        before = time.time()
        [(there,)] = examined.ask("SELECT extract(epoch FROM clock_timestamp())::text")
        after = time.time()
        looks.append((after - before, float(there) - (before + after) / 2))
    took, skew = min(looks)
    # What the way there and back may hide is no skew.
    certain = max(0.0, abs(skew) - took / 2)
    level = (
        Severity.FAILED if certain > _MOST_SKEW_S else Severity.WARNING if certain > _SKEW_S else Severity.OK
    )
    where = "ahead of" if skew > 0 else "behind"
    text = f"the database's clock is {abs(skew) * 1000:.1f} ms {where} this machine's"
    yield CheckResult(level, text, {"seconds": round(skew, 6), "uncertainty_seconds": round(took / 2, 6)})
