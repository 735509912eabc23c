"""Auto-increment key columns: numbers drawn from the counter of a partition, before rows are claimed.

The numbers of a partition strictly grow. They start at the time in microseconds, which avoids small numbers that
clients choose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tablegate.gateway.model.commands.writes import Write, with_number
from tablegate.gateway.model.values.keys import AUTO_INCREMENT
from tablegate.gateway.store.sql.counters import advance, partition_counter
from tablegate.gateway.store.sql.databases import Session


def draw(session: Session, groups: Mapping[int, Sequence[Write]], now: int) -> dict[int, Sequence[Write]]:
    """Return the writes of each group, with numbers in auto-increment columns. Counters are locked in the order of
    their names.

    `now`: ticks of 100 ns since 1970.
    """
    writes = {at: list(group) for at, group in groups.items()}
    requests_by_counter: dict[str, list[tuple[int, int]]] = {}
    for at, group in writes.items():
        for ordinal, write in enumerate(group):
            if AUTO_INCREMENT in write.key.values:  # type: ignore[comparison-overlap]
                name = partition_counter(write.table.id, write.key.position.partition)
                requests_by_counter.setdefault(name, []).append((at, ordinal))
    for name in sorted(requests_by_counter):
        requests = requests_by_counter[name]
        first = advance(session, name, len(requests), now // 10) - len(requests) + 1
        for number, (at, ordinal) in enumerate(requests, first):
            writes[at][ordinal] = with_number(writes[at][ordinal], number)
    return {**writes}
