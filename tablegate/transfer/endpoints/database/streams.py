"""The change stream of a table as changed keys.

A position is `{"stream": LABEL, "shards": {NUMBER: SEQUENCE}}`. The sequence is null for a shard that was read to
its end.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from typing import Any

from tablegate.gateway.model.commands.stream_commands import FindPosition, FindStream, ListShards, ReadChanges
from tablegate.gateway.model.commands.table_commands import AlterTable
from tablegate.gateway.model.errors import PositionExpired, StreamMissing
from tablegate.gateway.model.tables.changes import Latest, Oldest
from tablegate.gateway.model.tables.tables import Rules, StreamRule, Table
from tablegate.gateway.model.values.keys import Key, Position
from tablegate.transfer.endpoints.database.client import Client
from tablegate.transfer.endpoints.database.tables import dialect_of
from tablegate.transfer.endpoints.endpoint import JSON, ChangedKeys
from tablegate.transfer.errors import PositionLost

# Limits of changes for each shard and poll. A page counts as cut by bytes if more than half is used, since a change
# has two rows of at most 4 MB each.
_CHANGES, _CHANGES_BYTES = 500, 16 << 20
_STREAM_RETENTION_MS = 7 * 86_400_000


def capture(client: Client) -> JSON:
    """Return the current position. Enables the stream if necessary."""
    table = client.find(is_refreshed=True)
    if table.rules.stream is None or not table.rules.stream.enabled:
        table = client.alter(_with_stream)
    assert table.rules.stream is not None
    label = table.rules.stream.label
    stream = client.run([FindStream(client.namespace, client.name, label)])[0]
    shards = client.run([ListShards(stream)])[0]
    positions = client.run([FindPosition(stream, shard.number, Latest()) for shard in shards])
    return {
        "stream": label,
        "shards": {
            str(shard.number): None if shard.closed_at_ms is not None else sequence
            for shard, sequence in zip(shards, positions, strict=True)
        },
    }


def changes(client: Client, position: JSON) -> ChangedKeys:
    """Return the keys that changed after a position. Raises PositionLost."""
    try:
        return _changes(client, position["stream"], position["shards"])
    except (PositionExpired, StreamMissing):
        raise PositionLost(
            f"{client.shown}: changes after the stored position have been deleted. Copy the table again"
        ) from None


def _changes(client: Client, label: str, sequences: dict[str, int | None]) -> ChangedKeys:
    stream = client.run([FindStream(client.namespace, client.name, label)])[0]
    keys: dict[Position, Key] = {}
    after: dict[str, int | None] = {}
    at_ms, caught_up = None, True
    for shard in client.run([ListShards(stream)])[0]:
        name = str(shard.number)
        sequence = (
            sequences[name]
            if name in sequences
            else client.run([FindPosition(stream, shard.number, Oldest())])[0]
        )
        if sequence is not None:
            page = client.run([ReadChanges(stream, shard.number, sequence, _CHANGES, _CHANGES_BYTES)])[0]
            for change in page.changes:
                key = stream.key_schema.key(change.key_values)
                keys.pop(key.position, None)
                keys[key.position] = key
                at_ms = max(at_ms or 0, change.at_ms)
            caught_up = caught_up and not _is_cut(page.changes)
            sequence = page.next
        after[name] = sequence
    if stream.ended_at_ms is not None and not keys:
        raise PositionLost(
            f"{client.shown}: the stream {label} was disabled, so later changes are not recorded. Copy the table again"
        )
    return ChangedKeys(list(keys.values()), {"stream": label, "shards": after}, at_ms, caught_up)


def _with_stream(table: Table) -> AlterTable:
    """Enable a stream, with a label in the form that DynamoDB clients expect."""
    now = datetime.datetime.now(datetime.UTC)
    label = now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{now.microsecond // 1000:03}"
    rule = StreamRule(label, True, "KEYS_ONLY", _STREAM_RETENTION_MS, round(now.timestamp() * 1000))
    rules: Rules = dataclasses.replace(table.rules, stream=rule)
    return AlterTable(dialect_of(table), table, rules, instant=True)


def _is_cut(changes: Sequence[Any]) -> bool:
    """True if a page of changes may have ended at its limits."""
    weight = sum(len(row.body) for change in changes for row in (change.old, change.new) if row is not None)
    return len(changes) >= _CHANGES or weight > _CHANGES_BYTES // 2
