"""Checks of several database servers: the nodes of distributed tables, and the replicas."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from itertools import count

from tablegate.gateway.configuration.database_urls import hosts_of
from tablegate.gateway.doctor.findings import CheckContext, CheckResult, Severity
from tablegate.gateway.store.opening.opening import open_replica, placement_of
from tablegate.gateway.store.sql.databases import Database, TablePlacement

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
