"""Auto-increment key columns: numbers drawn from the counter of a partition, before rows are locked.

The numbers of a partition strictly grow. They start at the time in microseconds, which avoids small numbers that
clients choose.
"""

from __future__ import annotations

from tablegate.gateway.engine.rows.writing import WriteHook
from tablegate.gateway.model.commands.writes import with_number
from tablegate.gateway.model.values.keys import AUTO_INCREMENT
from tablegate.gateway.store.sql.counters import advance, partition_counter
from tablegate.gateway.store.sql.databases import Session


class Numbering(WriteHook):
    """Puts numbers into the auto-increment columns of a batch. Counters are locked in the order of their names."""

    features = frozenset({"auto_increment"})

    def lock(self, session: Session) -> None:
        unanswered = self.batch.unanswered
        requests_by_counter: dict[str, list[tuple[int, int]]] = {}
        for at, writes in unanswered.items():
            for ordinal, write in enumerate(writes):
                if AUTO_INCREMENT in write.key.values:  # type: ignore[comparison-overlap]
                    name = partition_counter(write.table.id, write.key.position.partition)
                    requests_by_counter.setdefault(name, []).append((at, ordinal))
        numbered = {at: list(writes) for at, writes in unanswered.items()}
        for name in sorted(requests_by_counter):
            requests = requests_by_counter[name]
            first = advance(session, name, len(requests), self.batch.now // 10) - len(requests) + 1
            for number, (at, ordinal) in enumerate(requests, first):
                numbered[at][ordinal] = with_number(numbered[at][ordinal], number)
        unanswered.update(numbered)
