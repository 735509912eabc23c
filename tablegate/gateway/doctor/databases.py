"""Checks of the database, of the nodes of distributed tables, and of the replicas.

They check reachability, version, schema, privileges, durability, connections and clock. Each statement runs by itself and
returns text columns (CheckContext.query).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from itertools import count

from tablegate.gateway.configuration.database_urls import hosts_of, without_password
from tablegate.gateway.doctor.findings import CheckContext, CheckResult, Severity
from tablegate.gateway.store.migrating import NewerDatabase, revision_of, steps
from tablegate.gateway.store.opening import open_replica, placement_of
from tablegate.gateway.store.sql.databases import Database, TablePlacement

OLDEST_POSTGRESQL = 14
PAGES_S = 60.0
"""The time of a check of all pages, in seconds."""
_SLOW_MS = 20.0
# Signatures are valid for minutes, but the writes of two servers are ordered by their clocks.
_SKEW_S, _MOST_SKEW_S = 0.5, 60.0
# Settings that protect acknowledged writes. Source: PostgreSQL's manual, "Write Ahead Log", "Settings".
_SAFE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": None, "autovacuum": "on"}


def reachable(context: CheckContext) -> Iterator[CheckResult]:
    """Check that the database answers. The time is the minimum of three queries."""
    took = []
    for _ in range(3):
        began = time.perf_counter()
        context.query("SELECT 1")
        took.append((time.perf_counter() - began) * 1000)
    best = min(took)
    shown = without_password(context.settings.database)
    level = Severity.WARNING if best > _SLOW_MS else Severity.OK
    yield CheckResult(level, f"{shown} answers in {best:.2f} ms", {"database": shown, "ms": round(best, 2)})


def version(context: CheckContext) -> Iterator[CheckResult]:
    """Check the version of the database, and that PostgreSQL is not a standby."""
    if not context.is_a_server:
        [(shown,)] = context.query("SELECT sqlite_version()")
        yield CheckResult(Severity.OK, f"SQLite {shown}", {"version": shown})
        return
    [(number, shown, standby)] = context.query(
        "SELECT current_setting('server_version_num'), current_setting('server_version'), pg_is_in_recovery()::text"
    )
    facts = {"version": shown, "is_standby": standby == "true"}
    if standby == "true":
        text = f"PostgreSQL {shown} is a standby, which refuses writes: set database to the primary"
        yield CheckResult(Severity.FAILED, text, facts)
    elif int(number) < OLDEST_POSTGRESQL * 10_000:
        text = f"PostgreSQL {shown} is too old: upgrade to {OLDEST_POSTGRESQL} or later"
        yield CheckResult(Severity.FAILED, text, facts)
    else:
        yield CheckResult(Severity.OK, f"PostgreSQL {shown}", facts)


def schema(context: CheckContext) -> Iterator[CheckResult]:
    """Check that the database has the schema of this release."""
    newest = steps()[-1]
    assert context.database is not None
    try:
        found = revision_of(context.database)
    except NewerDatabase as error:
        text = f"the schema is {error.revision} of a later release: use that release, this one has schema {newest}"
        yield CheckResult(Severity.FAILED, text, {"found": error.revision, "newest": newest})
        return
    facts = {"found": found, "newest": newest}
    if not found:
        yield CheckResult(Severity.OK, f"empty: the first start of a server creates schema {newest}", facts)
    elif found != newest:
        text = f"the schema is {found}: `tablegate migrate` or the next start of a server migrates it to {newest}"
        yield CheckResult(Severity.WARNING, text, facts)
    else:
        yield CheckResult(Severity.OK, f"schema {newest}, the newest of this release", facts)


def rights(context: CheckContext) -> Iterator[CheckResult]:
    """Check that the role can read and write every table, and create tables, which migrations need."""
    if not context.is_a_server:
        yield from _rights_of_files(context)
        return
    [(role, can_create)] = context.query(
        "SELECT current_user::text, coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)::text"
    )
    missing = [
        name
        for (name,) in context.query(
            "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace "
            "AND NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT') "
            "AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')) ORDER BY relname"
        )
    ]
    facts = {"role": role, "may_create": can_create == "true", "without_rights": missing}
    if missing:
        text = f"the role {role} cannot read and write {', '.join(missing)}: grant SELECT, INSERT, UPDATE and DELETE"
        yield CheckResult(Severity.FAILED, text, facts)
    elif can_create != "true":
        text = f"the role {role} cannot create tables: before an upgrade run `tablegate migrate` with a role that can"
        yield CheckResult(Severity.WARNING, text, facts)
    else:
        yield CheckResult(Severity.OK, f"the role {role} can read, write and migrate", facts)


def _rights_of_files(context: CheckContext) -> Iterator[CheckResult]:
    path = context.settings.database_path
    if path is None:
        yield CheckResult(Severity.OK, "in memory")
        return
    # Opening the file has shown that it and its folder are writable.
    mode = path.stat().st_mode & 0o777
    facts = {"path": str(path), "mode": f"{mode:04o}"}
    if mode & 0o077:
        yield CheckResult(
            Severity.WARNING,
            f"other users than the owner can read or write {path} ({mode:04o}): run chmod 600",
            facts,
        )
    else:
        yield CheckResult(Severity.OK, f"only the owner can read and write {path}", facts)


def durability(context: CheckContext) -> Iterator[CheckResult]:
    """Check that acknowledged writes survive a power failure."""
    if not context.is_a_server:
        is_full = context.settings.synchronous == "full"
        text = (
            "a power failure loses no acknowledged write"
            if is_full
            else "synchronous is normal: a power failure can lose the last writes"
        )
        yield CheckResult(Severity.OK if is_full else Severity.WARNING, text)
        return
    shown = ", ".join(f"current_setting('{name}')" for name in _SAFE)
    found = dict(zip(_SAFE, context.query(f"SELECT {shown}")[0], strict=True))
    bad = [name for name, value in found.items() if value == "off"]
    if bad:
        text = f"disabled in PostgreSQL: {', '.join(bad)}. Enable them, or a power failure can lose writes"
        yield CheckResult(Severity.WARNING, text, found)
    else:
        text = "fsync, full_page_writes, synchronous_commit and autovacuum are on"
        yield CheckResult(Severity.OK, text, found)


def pages(context: CheckContext) -> Iterator[CheckResult]:
    """Check the structure of all pages of a SQLite file, which takes about as long as reading it, up to a bound."""
    assert context.database is not None
    try:
        found = context.database.damaged_pages(PAGES_S)
    except TimeoutError:
        text = f"PRAGMA quick_check did not end within {PAGES_S:g} s: run `tablegate doctor --deep`"
        yield CheckResult(Severity.WARNING, text)
        return
    if found is None:
        yield CheckResult(Severity.SKIPPED, "pages of this database are checked with --deep only")
        return
    level = Severity.FAILED if found else Severity.OK
    yield CheckResult(level, f"PRAGMA quick_check: {'; '.join(found) or 'ok'}", {"found": found})


def connections(context: CheckContext) -> Iterator[CheckResult]:
    """Check that PostgreSQL allows as many connections as the server processes can open."""
    if not context.is_a_server:
        yield CheckResult(Severity.SKIPPED, "SQLite has no limit of connections")
        return
    [(most, reserved, used)] = context.query(
        "SELECT current_setting('max_connections'), current_setting('superuser_reserved_connections'), "
        "(SELECT count(*)::text FROM pg_stat_activity WHERE backend_type = 'client backend')"
    )
    # A writer and its readers on each of the threads that use the database: of requests, of Flask, of background work.
    needed = 12 * context.settings.workers
    free = int(most) - int(reserved) - int(used)
    facts = {"max_connections": int(most), "used": int(used), "needed": needed}
    processes = context.settings.workers
    text = f"{free} of {most} connections are free, {processes} server processes can open {needed}"
    yield CheckResult(Severity.WARNING if free < needed else Severity.OK, text, facts)


def clock(context: CheckContext) -> Iterator[CheckResult]:
    """Check the difference between the clocks of this machine and the database, by the fastest of five queries."""
    if not context.is_a_server:
        yield CheckResult(Severity.SKIPPED, "SQLite is on this machine")
        return
    samples = []
    for _ in range(5):
        before = time.time()
        [(database_time,)] = context.query("SELECT extract(epoch FROM clock_timestamp())::text")
        after = time.time()
        samples.append((after - before, float(database_time) - (before + after) / 2))
    took, skew = min(samples)
    # Half the round trip is uncertain and does not count.
    certain = max(0.0, abs(skew) - took / 2)
    level = (
        Severity.FAILED if certain > _MOST_SKEW_S else Severity.WARNING if certain > _SKEW_S else Severity.OK
    )
    where = "ahead of" if skew > 0 else "behind"
    text = f"the database's clock is {abs(skew) * 1000:.1f} ms {where} this machine's"
    yield CheckResult(level, text, {"seconds": round(skew, 6), "uncertainty_seconds": round(took / 2, 6)})


_POLL_S = 0.005


def distribution(context: CheckContext) -> Iterator[CheckResult]:
    """Check that all tables of a distributed database are on the required nodes."""
    if not context.is_a_server:
        yield CheckResult(
            Severity.OK, f"all tables are in {context.settings.database_path or 'memory'}", {"nodes": 1}
        )
        return
    placement = placement_of(context.settings.database)
    if placement is not None:
        yield from _check_placement(context, placement)
        return
    [(address, name)] = context.query(
        "SELECT coalesce(host(inet_server_addr()), 'a local socket') || coalesce(':' || inet_server_port()::text, ''), "
        "current_database()::text"
    )
    yield CheckResult(Severity.OK, f"all tables are in the database {name} at {address}", {"nodes": 1})


_STUCK = """
SELECT n.nodename || ':' || n.nodeport, r.success::text, r.result FROM run_command_on_all_nodes(
    $$SELECT count(*) FROM pg_prepared_xacts
    WHERE database = current_database() AND prepared < now() - interval '30 seconds'$$
) r JOIN pg_dist_node n ON n.nodeid = r.nodeid"""


def _check_placement(context: CheckContext, placement: TablePlacement) -> Iterator[CheckResult]:
    shards = {node.name: node.shards for node in placement.nodes}
    facts = {
        "nodes": len(shards),
        "shards": shards,
        "by_slot": placement.distributed,
        "everywhere": placement.everywhere,
    }
    if placement.alone:
        text = (
            f"on one node only: {', '.join(placement.alone)}. Run `tablegate distribute` at the coordinator"
        )
        yield CheckResult(Severity.FAILED, text, {**facts, "alone": placement.alone})
        return
    where = ", ".join(f"{name} has {number} shards" for name, number in shards.items())
    text = f"{len(placement.distributed)} tables by slot ({where}), {len(placement.everywhere)} on every node"
    yield CheckResult(Severity.OK, text, facts)
    [(prepared,)] = context.query("SELECT current_setting('max_prepared_transactions')")
    if prepared == "0":
        yield CheckResult(
            Severity.FAILED,
            "max_prepared_transactions is 0, so transactions over two nodes fail: raise it in PostgreSQL",
        )
    for name, is_reached, answer in context.query(_STUCK):
        if is_reached != "true":
            yield CheckResult(Severity.FAILED, f"node {name} does not answer: {answer}", {"node": name})
        elif answer != "0":
            text = f"node {name} has {answer} prepared transactions older than 30 s, which lock rows"
            advice = "A running server finishes them. If none can, see the page on scaling"
            yield CheckResult(Severity.WARNING, f"{text}. {advice}", {"node": name, "stuck": int(answer)})
    table = "pg_catalog.pg_dist_transaction"
    if context.query(f"SELECT has_table_privilege('{table}', 'UPDATE')::text") != [("true",)]:
        yield CheckResult(
            Severity.FAILED,
            f"the role may not lock {table}, so transactions over two nodes fail: run on every node, as superuser,"
            f" GRANT UPDATE ON {table} TO the role",
        )


def replicas(context: CheckContext) -> Iterator[CheckResult]:
    """Check that each replica answers, is a standby of this primary and lags less than the bound.

    A failure is a warning only: a server starts without such a replica and does not read from it.
    """
    settings, primary = context.settings, context.database
    assert primary is not None  # the check needs a database
    if not settings.replica:
        yield CheckResult(Severity.OK, "no replica is set")
        return
    if primary.is_distributed:
        yield CheckResult(
            Severity.FAILED,
            "a distributed database cannot have replicas: remove replica, or no server starts",
        )
        return
    for url in settings.replica:
        with contextlib.closing(open_replica(url, not settings.prepared_statements)) as replica:
            yield _check_replica(primary, replica, hosts_of(url), settings.replica_lag_ms)


def _check_replica(primary: Database, replica: Database, name: str, bound_ms: int) -> CheckResult:
    """Check one replica. Its lag is the time until it has replayed the present log position of the primary."""
    facts: dict[str, object] = {"replica": name}
    try:
        position, timeline = primary.log_written()
        began = time.monotonic()
        if replica.log_replayed() < 0:
            return CheckResult(Severity.WARNING, f"{name} is not a standby and is not read from", facts)
        if replica.log_timeline() != timeline:
            return CheckResult(
                Severity.WARNING, f"{name} follows another primary and is not read from", facts
            )
        for _ in count():
            behind = max(0, position - replica.log_replayed())
            took_ms = (time.monotonic() - began) * 1000
            if not behind or took_ms > bound_ms:
                break
            time.sleep(_POLL_S)
    except Exception as error:
        return CheckResult(Severity.WARNING, " ".join(f"{name} does not answer: {error}".split()), facts)
    facts |= {"behind_bytes": behind, "lag_ms": None if behind else round(took_ms, 1)}
    if behind:
        text = f"{name} lags more than replica_lag_ms ({bound_ms} ms, {behind} bytes) and is not read from"
        return CheckResult(Severity.WARNING, text, facts)
    return CheckResult(Severity.OK, f"{name} is a standby with a lag of at most {took_ms:.0f} ms", facts)
