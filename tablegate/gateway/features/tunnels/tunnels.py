"""Tunnels: deliveries of a table's rows and changes to clients, which share the work as channels.

A channel is a part of the rows (base data) or a shard of the change stream. Each channel is read by one client at a
time. The functions here are the transitions of a tunnel's state. They are pure: time and shards are arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum

from tablegate.gateway.model.tables.changes import Shard, Stream


class TunnelType(Enum):
    """The contents of a tunnel: the rows, the changes, or the rows and then the changes."""

    BASE_DATA = "BaseData"
    STREAM = "Stream"
    BASE_AND_STREAM = "BaseAndStream"

    @property
    def has_rows(self) -> bool:
        return self is not TunnelType.STREAM

    @property
    def has_changes(self) -> bool:
        return self is not TunnelType.BASE_DATA


class ChannelStatus(IntEnum):
    """The status of a channel. CLOSE: it waits for a client. CLOSING: its client is asked to release it."""

    OPEN = 1
    CLOSING = 2
    CLOSE = 3
    TERMINATED = 4


@dataclass(frozen=True, slots=True)
class ChannelPosition:
    """The progress within a channel.

    - `after`: the last row that was read, as the adapter writes it (rows only, "" at the beginning)
    - `sequence`: the next change to read (changes only)
    - `at_ms`, `count`: time of the last record that was read, and number of records so far
    """

    after: str = ""
    sequence: int = 0
    finished: bool = False
    at_ms: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of a tunnel.

    - `number`: of the part of the rows, or of the shard
    - `stream_id`: the stream of the shard, or 0 if the channel has rows
    - `parents`: ids of the channels that come first
    - `is_closed`: the shard gets no more changes
    - `version`: grows with each change of the status
    - `checkpoints`: number of saved checkpoints
    """

    id: str
    number: int
    stream_id: int = 0
    parents: tuple[str, ...] = ()
    is_closed: bool = False
    status: ChannelStatus = ChannelStatus.CLOSE
    version: int = 0
    client: str = ""
    checkpoints: int = 0
    position: ChannelPosition = ChannelPosition()

    @property
    def has_rows(self) -> bool:
        return not self.stream_id

    @property
    def is_terminated(self) -> bool:
        return self.status is ChannelStatus.TERMINATED


@dataclass(frozen=True, slots=True)
class TunnelClient:
    """A connected client. It is lost when it has sent no heartbeat for `timeout_ms`."""

    id: str
    timeout_ms: int
    seen_at_ms: int

    def is_lost(self, now_ms: int) -> bool:
        return now_ms > self.seen_at_ms + self.timeout_ms


@dataclass(frozen=True, slots=True)
class TunnelState:
    """The clients and channels of a tunnel.

    `stream_id`, `next_shard`: the stream that is being read, and its first shard without a channel.
    """

    clients: tuple[TunnelClient, ...] = ()
    channels: tuple[Channel, ...] = ()
    stream_id: int = 0
    next_shard: int = 0

    @property
    def reads_rows(self) -> bool:
        """True until all rows have been read."""
        return any(channel.has_rows and not channel.is_terminated for channel in self.channels)


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A tunnel of a table.

    - `public_id`: the id that clients use
    - `start_ms`, `end_ms`: only changes of this period. A start of 0 is the creation of the tunnel, an end of 0 never.
    - `from_oldest`: the changes begin with the oldest one that is retained
    - `stream_label`: the stream of the table when the tunnel was created, "" without one
    - `is_expired`: changes that it had not delivered were deleted after the retention
    """

    id: int
    public_id: str
    namespace: str
    table_id: int
    table_name: str
    name: str
    type: TunnelType
    created_at_ms: int
    state: TunnelState
    start_ms: int = 0
    end_ms: int = 0
    from_oldest: bool = False
    stream_label: str = ""
    is_expired: bool = False

    @property
    def row_channels(self) -> int:
        """The number of channels for the rows."""
        return sum(channel.has_rows for channel in self.state.channels)


@dataclass(frozen=True, slots=True)
class ChannelReport:
    """The status and version of a channel, as a client reports it."""

    id: str
    version: int
    status: ChannelStatus


@dataclass(frozen=True, slots=True)
class ChannelSource:
    """A channel and the stream of its shard, or None if the channel has rows."""

    channel: Channel
    stream: Stream | None


def new_row_channels(parts: int) -> tuple[Channel, ...]:
    """Return the channels for the rows of a table."""
    return tuple(Channel(f"BaseData_{number}", number) for number in range(parts))


def _shard_channel_id(stream_id: int, shard: int) -> str:
    return f"{stream_id}_{shard}"


def with_shards(
    state: TunnelState, stream_id: int, shards: Sequence[Shard], starts: Mapping[int, int]
) -> TunnelState:
    """Return a state with channels for new shards of the stream. `starts`: first sequences, if later than the oldest."""
    closed = {shard.number for shard in shards if shard.last_sequence is not None}
    channels = [
        replace(channel, is_closed=channel.is_closed or channel.number in closed)
        if channel.stream_id == stream_id
        else channel
        for channel in state.channels
    ]
    for shard in shards:
        start = starts.get(shard.number, shard.trimmed_sequence + 1)
        is_empty = shard.last_sequence is not None and start > shard.last_sequence
        if shard.number >= state.next_shard and not is_empty:
            position = ChannelPosition(sequence=start)
            parents = tuple(_shard_channel_id(stream_id, parent) for parent in shard.parents)
            channel_id = _shard_channel_id(stream_id, shard.number)
            is_closed = shard.number in closed
            channels.append(
                Channel(channel_id, shard.number, stream_id, parents, is_closed, position=position)
            )
    next_shard = max([state.next_shard, *(shard.number + 1 for shard in shards)])
    return replace(state, channels=tuple(channels), stream_id=stream_id, next_shard=next_shard)


# Clients


def without_lost_clients(state: TunnelState, now_ms: int) -> TunnelState:
    """Return a state without the clients that are lost. Their channels wait for other clients."""
    lost = {client.id for client in state.clients if client.is_lost(now_ms)}
    return without_clients(state, lost) if lost else state


def without_clients(state: TunnelState, ids: Iterable[str]) -> TunnelState:
    """Return a state without some clients. Their channels wait for other clients."""
    gone = set(ids)
    return replace(
        state,
        clients=tuple(client for client in state.clients if client.id not in gone),
        channels=tuple(
            _with_status(channel, ChannelStatus.CLOSE, "") if channel.client in gone else channel
            for channel in state.channels
        ),
    )


def after_heartbeat(
    state: TunnelState, client_id: str, reports: Iterable[ChannelReport], now_ms: int
) -> TunnelState:
    """Return the state after a heartbeat: with the client's reports, and with the channels shared among the clients.

    The client must be connected.
    """
    by_id = {report.id: report for report in reports}
    clients = tuple(
        replace(client, seen_at_ms=now_ms) if client.id == client_id else client for client in state.clients
    )
    channels = tuple(
        _after_report(channel, by_id[channel.id])
        if channel.client == client_id and channel.id in by_id
        else channel
        for channel in state.channels
    )
    return _shared(replace(state, clients=clients, channels=channels))


def _after_report(channel: Channel, report: ChannelReport) -> Channel:
    """Return a channel after the report of its client.

    A channel with more to come does not end, whatever the client reports: it waits for a client again.
    """
    if report.version <= channel.version or report.status not in (
        ChannelStatus.CLOSE,
        ChannelStatus.TERMINATED,
    ):
        return channel
    can_end = channel.has_rows or channel.is_closed or channel.position.finished
    if report.status is ChannelStatus.TERMINATED and can_end:
        position = replace(channel.position, finished=True)
        return replace(
            channel, status=ChannelStatus.TERMINATED, version=report.version, client="", position=position
        )
    return replace(channel, status=ChannelStatus.CLOSE, version=report.version, client="")


def _with_status(channel: Channel, status: ChannelStatus, client: str) -> Channel:
    return replace(channel, status=status, client=client, version=channel.version + 1)


# Sharing of channels


def _shared(state: TunnelState) -> TunnelState:
    """Return a state in which waiting channels are open, and clients with too many are asked to release some."""
    if not state.clients:
        return state
    counts = {client.id: 0 for client in state.clients}
    for channel in state.channels:
        if channel.client:
            counts[channel.client] += 1
    channels = []
    readable = _readable(state)
    for channel in state.channels:
        if channel.status is ChannelStatus.CLOSE and channel.id in readable:
            client = min(counts, key=lambda name: counts[name])
            counts[client] += 1
            channel = _with_status(channel, ChannelStatus.OPEN, client)
        channels.append(channel)
    return replace(state, channels=tuple(_with_surplus_closing(channels, counts)))


def _with_surplus_closing(channels: list[Channel], counts: Mapping[str, int]) -> Iterable[Channel]:
    """Yield the channels. Those above the equal share of their client are closing."""
    share, rest = divmod(sum(counts.values()), len(counts))
    by_count = sorted(counts, key=lambda name: -counts[name])
    left = {name: share + (at < rest) for at, name in enumerate(by_count)}
    for channel in channels:
        if channel.status is ChannelStatus.OPEN:
            left[channel.client] -= 1
            if left[channel.client] < 0:
                channel = _with_status(channel, ChannelStatus.CLOSING, channel.client)
        yield channel


def _readable(state: TunnelState) -> set[str]:
    """Return the ids of the channels that can be read now: rows first, then each shard after its parents."""
    if state.reads_rows:
        return {channel.id for channel in state.channels if channel.has_rows}
    waiting = {channel.id for channel in state.channels if not channel.is_terminated}
    return {channel.id for channel in state.channels if not waiting.intersection(channel.parents)}


def with_channel(state: TunnelState, new: Channel) -> TunnelState:
    """Return a state in which a channel is replaced by its new version."""
    return replace(
        state, channels=tuple(new if channel.id == new.id else channel for channel in state.channels)
    )


def without_terminated_shards(state: TunnelState, kept: int) -> TunnelState:
    """Return a state without the oldest shards that have been read, except for the last `kept` of them."""
    terminated = [channel.id for channel in state.channels if channel.stream_id and channel.is_terminated]
    forgotten = set(terminated[: max(0, len(terminated) - kept)])
    if not forgotten:
        return state
    return replace(
        state, channels=tuple(channel for channel in state.channels if channel.id not in forgotten)
    )
