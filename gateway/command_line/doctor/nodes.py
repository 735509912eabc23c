"""Checks of several servers: where the tables are spread to, and how each replica is doing."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from itertools import count

from tablegate.gateway.command_line.doctor.findings import CheckContext, CheckResult, Severity
from tablegate.gateway.configuration.database_urls import hosts_of
from tablegate.gateway.store.opening.opening import open_replica, placement_of
from tablegate.gateway.store.sql.databases import Database, TablePlacement

_POLL_S = 0.005


def distribution(examined: CheckContext) -> Iterator[CheckResult]:
    """Where tables are, and whether all are where a distributed database must have them."""
    if not examined.is_a_server:
        yield CheckResult(
            Severity.OK, f"all tables are in {examined.settings.database_path or 'memory'}", {"nodes": 1}
        )
        return
    found = placement_of(examined.settings.database)
    if found is not None:
        yield from _of_nodes(examined, found)
        return
    [(address, name)] = examined.ask(
        "SELECT coalesce(host(inet_server_addr()), 'a local socket') || coalesce(':' || inet_server_port()::text, ''), "
        "current_database()::text"
    )
    yield CheckResult(Severity.OK, f"all tables are in the database {name} at {address}", {"nodes": 1})


def _of_nodes(examined: CheckContext, found: TablePlacement) -> Iterator[CheckResult]:
    shards = {node.name: node.shards for node in found.nodes}
    facts = {
        "nodes": len(shards),
        "shards": shards,
        "by_slot": found.distributed,
        "everywhere": found.everywhere,
    }
    if found.alone:
        text = f"on one node only: {', '.join(found.alone)}. Run `tablegate distribute` at the coordinator"
        yield CheckResult(Severity.FAILED, text, {**facts, "alone": found.alone})
        return
    where = ", ".join(f"{name} has {number} shards" for name, number in shards.items())
    text = f"{len(found.distributed)} tables by slot ({where}), {len(found.everywhere)} on every node"
    yield CheckResult(Severity.OK, text, facts)
    [(prepared,)] = examined.ask("SELECT current_setting('max_prepared_transactions')")
    if prepared == "0":
        yield CheckResult(
            Severity.FAILED, "max_prepared_transactions is 0: nothing can be written at two nodes at once"
        )


def replicas(examined: CheckContext) -> Iterator[CheckResult]:
    """Whether each replica answers, is a standby of this primary, and how far it is behind. A server leaves one alone that is not
    well, and starts nevertheless."""
    settings, primary = examined.settings, examined.database
    assert primary is not None  # the check needs a database
    if not settings.replica:
        yield CheckResult(Severity.OK, "no replicas are named")
        return
    if primary.is_distributed:
        yield CheckResult(
            Severity.FAILED,
            "a distributed database cannot have replicas: no server starts with these settings",
        )
        return
    for url in settings.replica:
        with contextlib.closing(open_replica(url, not settings.prepared_statements)) as replica:
            yield _of_replica(primary, replica, hosts_of(url), settings.replica_lag_ms)


def _of_replica(primary: Database, replica: Database, name: str, bound_ms: int) -> CheckResult:
    """What is to be said of a replica. Its lag is how long it takes until it has what the primary has now."""
    facts: dict[str, object] = {"replica": name}
    try:
        position, timeline = primary.log_written()
        began = time.monotonic()
        if replica.log_replayed() < 0:
            return CheckResult(Severity.WARNING, f"{name} is no standby, and will not be read from", facts)
        if replica.log_timeline() != timeline:
            return CheckResult(
                Severity.WARNING, f"{name} follows another primary, and will not be read from", facts
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
        text = f"{name} is behind by more than replica_lag_ms ({bound_ms} ms, {behind} bytes): it will not be read from"
        return CheckResult(Severity.WARNING, text, facts)
    return CheckResult(
        Severity.OK, f"{name} is a standby, and had within {took_ms:.0f} ms what the primary has", facts
    )
