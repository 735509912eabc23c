"""Auto-increment key columns: numbers drawn from the partition's counter, before the rows are claimed.

Numbers of a partition strictly grow. They begin at the time in microseconds, so that they stay clear of small numbers that
somebody chose by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tablegate.gateway.model.commands.writes import Write, numbered
from tablegate.gateway.model.values.keys import AUTO_INCREMENT
from tablegate.gateway.store.sql.counters import advance, partition_counter
from tablegate.gateway.store.sql.databases import Session


def draw(session: Session, groups: Mapping[int, Sequence[Write]], now: int) -> dict[int, Sequence[Write]]:
    """The writes of each group, with numbers for the columns that ask for one. Counters are locked in the order of their
    names. `now` in ticks of 100 ns since 1970."""
    writes = {at: list(group) for at, group in groups.items()}
    asking: dict[str, list[tuple[int, int]]] = {}
    for at, group in writes.items():
        for ordinal, write in enumerate(group):
            if AUTO_INCREMENT in write.key.values:  # type: ignore[comparison-overlap]
                name = partition_counter(write.table.id, write.key.position.partition)
                asking.setdefault(name, []).append((at, ordinal))
    for name in sorted(asking):
        askers = asking[name]
        first = advance(session, name, len(askers), now // 10) - len(askers) + 1
        for number, (at, ordinal) in enumerate(askers, first):
            writes[at][ordinal] = numbered(writes[at][ordinal], number)
    return {**writes}
