"""What followers (following.py) have still to be told, read from the streams of their tables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tablegate.gateway.model.tables.changes import Change, Shard
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.streams import changes, followers
from tablegate.gateway.store.streams.followers import Follower

_BYTES = 4_000_000
# Looked at together.
_PAGE = 100


class PendingDelivery(NamedTuple):
    """What a follower is to be told next, and where it has come to with that."""

    changes: list[Change]
    after: Follower


def pending(session: Session, follower: Follower, until_ms: int, limit: int) -> PendingDelivery | None:
    """The next changes for a follower, of those that were made until a time, `limit` at most and of a bounded size. None: there
    are none. Where one of its streams is through, there may be no changes and yet a step to the next."""
    found: list[Change] = []
    positions = dict(follower.positions)
    shards = changes.shards_of(session, follower.stream_id)
    room = _BYTES
    for shard in shards:
        if not _is_open_for(shard, shards, positions):
            continue
        part = _ShardRange((follower.stream_id, shard.number), follower.end_of(shard.number), until_ms)
        page = _page(session, part, _position(shard, positions), limit - len(found))
        while page and room > 0:
            found += page
            room -= sum(len(row.body) for each in page for row in (each.old, each.new) if row is not None)
            positions[shard.number] = page[-1].sequence + 1
            page = _page(session, part, positions[shard.number], limit - len(found))
        if len(found) >= limit or room <= 0:
            break
    if found:
        return PendingDelivery(found, follower._replace(positions=positions))
    return _next_stream(session, follower, shards)


class _ShardRange(NamedTuple):
    """The part of a shard that a follower is told: before a sequence, if any, and not after a time."""

    shard: changes.Numbered
    end: int | None
    until_ms: int

    def has(self, change: Change) -> bool:
        """True if the change is in this part."""
        return change.at_ms <= self.until_ms and (self.end is None or change.sequence < self.end)


def _page(session: Session, part: _ShardRange, sequence: int, limit: int) -> list[Change]:
    """Some changes of a part of a shard from a sequence on."""
    page = changes.page(session, part.shard, sequence, min(_PAGE, limit)) if limit > 0 else []
    return list(itertools.takewhile(part.has, page))


def _next_stream(session: Session, follower: Follower, shards: Sequence[Shard]) -> PendingDelivery | None:
    """A step to the table's next stream, if this one is over and has been read to its end."""
    stream = changes.stream_by_id(session, follower.stream_id)
    is_over = stream is None or stream.ended_at_ms is not None
    if not is_over or any(not _is_drained(shard, follower.positions) for shard in shards):
        return None
    following = changes.next_stream(session, follower.table_id, follower.stream_id)
    return (
        None
        if following is None
        else PendingDelivery([], follower._replace(stream_id=following.id, positions={}))
    )


def _position(shard: Shard, positions: Mapping[int, int]) -> int:
    return positions.get(shard.number, shard.trimmed + 1)


def _is_drained(shard: Shard, positions: Mapping[int, int]) -> bool:
    """Whether a shard is closed, and has been read to its end."""
    return shard.last_sequence is not None and _position(shard, positions) > shard.last_sequence


def _is_open_for(shard: Shard, shards: Sequence[Shard], positions: Mapping[int, int]) -> bool:
    """Whether a shard is to be read now: its parents have been read to their ends, and it not to its."""
    parents = [parent for parent in shards if parent.number in shard.parents]
    return not _is_drained(shard, positions) and all(_is_drained(parent, positions) for parent in parents)


def oldest_pending_ms(session: Session, follower: Follower) -> int | None:
    """When the oldest change was made that a follower has not been told; None: it has been told all."""
    oldest: list[int] = []
    while True:
        for shard in changes.shards_of(session, follower.stream_id):
            end = follower.end_of(shard.number)
            place = follower.stream_id, shard.number
            oldest += [
                each.at_ms
                for each in changes.page(session, place, _position(shard, follower.positions), 1)
                if end is None or each.sequence < end
            ]
        if oldest:
            return min(oldest)
        following = changes.next_stream(session, follower.table_id, follower.stream_id)
        if following is None:
            return None
        follower = follower._replace(stream_id=following.id, positions={})


def oldest_of_kind(session: Session, kind: str) -> int | None:
    """When the oldest change was made that some follower of a kind has not been told; None: they have been told all."""
    oldest: list[int] = []
    follower = followers.of_kind(session, kind)
    while follower is not None:
        at_ms = oldest_pending_ms(session, follower)
        if at_ms is not None:
            oldest.append(at_ms)
        follower = followers.of_kind(session, kind, follower.id)
    return min(oldest, default=None)
