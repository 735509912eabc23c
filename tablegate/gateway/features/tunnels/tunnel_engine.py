"""Tunnels: followers of a table that clients drive.

A client reads a channel, and saves the position up to which it has processed the records. So each row and change is
delivered at least once. A channel belongs to one client at a time, and a shard is read after its parents, so the changes
of a row arrive in order. The rows come before the changes, which are recorded from the creation of the tunnel on.

The state of a tunnel is one row of SQL (`tunnels`). Each request of a client is one transaction, which locks that row. A
row of `followers` holds the saved positions, so that no change is trimmed before its tunnel has delivered it, for up to
the retention.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from tablegate.gateway.engine.attempts import Attempt, Runners
from tablegate.gateway.engine.streams import following, streaming
from tablegate.gateway.engine.streams.follower_reads import (
    lock_current,
    oldest_pending_ms,
    save_table,
    without_unused_log,
)
from tablegate.gateway.features.tunnels import tunnel_commands, tunnel_store
from tablegate.gateway.features.tunnels.tunnels import (
    Channel,
    ChannelSource,
    Tunnel,
    TunnelClient,
    TunnelState,
    after_heartbeat,
    new_row_channels,
    with_channel,
    with_shards,
    without_clients,
    without_lost_clients,
    without_terminated_shards,
)
from tablegate.gateway.model.errors import LimitExceeded, TunnelRefused
from tablegate.gateway.model.tables.changes import AtTime, Latest, Oldest, Shard
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.store.sql.databases import Session
from tablegate.gateway.store.store import Store
from tablegate.gateway.store.streams import changes, followers
from tablegate.gateway.store.streams.followers import Follower
from tablegate.gateway.store.tables.catalog import TableHook

TUNNEL = "tunnel"
"""The kind of followers that are tunnels. The target is the public id of the tunnel."""
ROW_CHANNELS = 4
"""Number of channels for the rows of a table."""
RETENTION_MS = 7 * 86_400_000
"""Time after which a tunnel expires that has not delivered a change ("Overview of Tunnel Service")."""
# Shards that have been read and are still described.
_TERMINATED_SHARDS_KEPT = 100


# Creation and deletion


def _create(attempt: Attempt, command: tunnel_commands.CreateTunnel) -> Tunnel:
    store, definer, now_ms = attempt.store, attempt.definer, attempt.now_ms
    with store.write() as session:
        table = lock_current(store, session, command.table)
        existing = tunnel_store.of_table(session, table.id)
        if any(tunnel.name == command.name for tunnel in existing):
            raise TunnelRefused("exists", name=command.name)
        if len(existing) >= command.tunnels_max:
            raise LimitExceeded("tunnels", command.tunnels_max, len(existing) + 1)
        tunnel = Tunnel(
            id=store.catalog.next_id(session),
            public_id=str(uuid4()),
            namespace=table.namespace,
            table_id=table.id,
            table_name=table.name,
            name=command.name,
            type=command.type,
            created_at_ms=now_ms,
            state=TunnelState(channels=new_row_channels(ROW_CHANNELS) if command.type.has_rows else ()),
            start_ms=command.start_ms,
            end_ms=command.end_ms,
            from_oldest=command.from_oldest,
            stream_label="" if table.rules.stream is None else table.rules.stream.label,
        )
        if command.type.has_changes:
            table = following.with_recording(definer, session, table, now_ms)
            tunnel = _following(session, table, tunnel)
            save_table(store, session, table)
        tunnel_store.add(session, tunnel)
    return tunnel


def _following(session: Session, table: Table, tunnel: Tunnel) -> Tunnel:
    """Return a new tunnel with the shards of the table's stream, after adding its follower."""
    rule = table.rules.recorder
    assert rule is not None
    shards = changes.shards_of(session, rule.id)
    at = Oldest() if tunnel.from_oldest else AtTime(tunnel.start_ms) if tunnel.start_ms else Latest()
    starts = {shard.number: streaming.position(session, (rule.id, shard.number), at) for shard in shards}
    followers.add(session, Follower(tunnel.id, table.id, TUNNEL, tunnel.public_id, rule.id, starts))
    return dataclasses.replace(tunnel, state=with_shards(tunnel.state, rule.id, shards, starts))


def _delete(attempt: Attempt, command: tunnel_commands.DeleteTunnel) -> None:
    store, known, name = attempt.store, command.table, command.name
    with store.write() as session:
        table = store.catalog.lock(session, known.id)
        tunnel = next((each for each in tunnel_store.of_table(session, known.id) if each.name == name), None)
        if table is None or tunnel is None:
            raise TunnelRefused("missing", name=name)
        tunnel_store.remove(session, tunnel.id)
        followers.remove(session, tunnel.id)
        save_table(store, session, without_unused_log(session, table, attempt.now_ms))


class TunnelHook(TableHook):
    """Removes the tunnels of a dropped table."""

    def detach(self, session: Session, table: Table, now_ms: int) -> None:
        tunnel_store.remove_all(session, table.id)


def expire(store: Store, now_ms: int, limit: int) -> None:
    """Expire all tunnels with a change that was not delivered within the retention. Its changes can then be trimmed."""
    follower_id = 0
    while True:
        with store.read() as session:
            follower = followers.of_kind(session, TUNNEL, follower_id)
            oldest_ms = None if follower is None else oldest_pending_ms(session, follower)
        if follower is None:
            return
        follower_id = follower.id
        if oldest_ms is not None and oldest_ms < now_ms - RETENTION_MS:
            with store.write() as session:
                table = store.catalog.lock(session, follower.table_id)
                followers.remove(session, follower.id)
                if table is not None:
                    save_table(store, session, without_unused_log(session, table, now_ms))


# Clients


def _find(attempt: Attempt, command: tunnel_commands.FindTunnel) -> Tunnel:
    with attempt.store.read() as session:
        tunnel = tunnel_store.by_public_id(session, command.namespace, command.tunnel_id)
    if tunnel is None:
        raise TunnelRefused("missing", name=command.tunnel_id)
    return tunnel


def _list(attempt: Attempt, command: tunnel_commands.ListTunnels) -> list[Tunnel]:
    with attempt.store.read() as session:
        return tunnel_store.of_table(session, command.table.id)


def _change(attempt: Attempt, command: tunnel_commands.ClientCommand[Any]) -> Tunnel | str | None:
    """Run a command that changes the state of a tunnel."""
    with attempt.store.write() as session:
        return _change_locked(session, command, attempt.now_ms)


def _change_locked(
    session: Session, command: tunnel_commands.ClientCommand[Any], now_ms: int
) -> Tunnel | str | None:
    tunnel = tunnel_store.lock(session, command.tunnel.id)
    if tunnel is None:
        raise TunnelRefused("missing", name=command.tunnel.public_id)
    if tunnel.is_expired:
        raise TunnelRefused("expired", name=tunnel.name)
    state = without_lost_clients(tunnel.state, now_ms)
    outcome: Tunnel | str | None = None
    match command:
        case tunnel_commands.ConnectTunnel(timeout_ms=timeout_ms, clients_max=clients_max):
            if len(state.clients) >= clients_max:
                raise LimitExceeded("tunnel-clients", clients_max, len(state.clients) + 1)
            outcome = str(uuid4())
            client = TunnelClient(outcome, timeout_ms, now_ms)
            state = dataclasses.replace(state, clients=(*state.clients, client))
        case tunnel_commands.LeaveTunnel(client=client_id):
            _require_client(state, client_id)
            state = without_clients(state, [client_id])
        case tunnel_commands.SaveCheckpoint():
            state = with_channel(state, _after_checkpoint(tunnel, state, command))
            _save_positions(session, tunnel.id, state)
        case tunnel_commands.HeartbeatTunnel(client=client_id, reports=reports):
            _require_client(state, client_id)
            state = after_heartbeat(_with_new_shards(session, tunnel, state), client_id, reports, now_ms)
            state = without_terminated_shards(state, _TERMINATED_SHARDS_KEPT)
            _save_positions(session, tunnel.id, state)
            outcome = dataclasses.replace(tunnel, state=state)
    if state != tunnel.state:
        tunnel_store.save_state(session, dataclasses.replace(tunnel, state=state))
    return outcome


def _require_client(state: TunnelState, client_id: str) -> None:
    if all(client.id != client_id for client in state.clients):
        raise TunnelRefused("client", name=client_id)


def _channel_of(state: TunnelState, client_id: str, channel_id: str) -> Channel:
    """Return a channel that a client holds, or that no client holds if the id of the client is empty."""
    for channel in state.channels:
        if channel.id == channel_id and channel.client == client_id:
            return channel
    raise TunnelRefused("channel", name=channel_id)


def _after_checkpoint(tunnel: Tunnel, state: TunnelState, command: tunnel_commands.SaveCheckpoint) -> Channel:
    _require_client(state, command.client)
    channel = _channel_of(state, command.client, command.channel)
    if command.number != channel.checkpoints + 1:
        raise TunnelRefused("checkpoint", name=command.channel)
    can_end = channel.has_rows or channel.is_closed or tunnel.end_ms
    if command.position.finished and not can_end:
        raise TunnelRefused("position", name=command.channel)
    position = command.position
    if position.finished:
        position = dataclasses.replace(channel.position, finished=True)
    return dataclasses.replace(channel, position=position, checkpoints=command.number)


def _source(attempt: Attempt, command: tunnel_commands.FindChannel) -> ChannelSource:
    with attempt.store.read() as session:
        tunnel = tunnel_store.by_public_id(session, command.tunnel.namespace, command.tunnel.public_id)
        if tunnel is None:
            raise TunnelRefused("missing", name=command.tunnel.public_id)
        if tunnel.is_expired:
            raise TunnelRefused("expired", name=tunnel.name)
        state = without_lost_clients(tunnel.state, attempt.now_ms)
        if command.client:
            _require_client(state, command.client)
        channel = _channel_of(state, command.client, command.channel)
        if channel.has_rows:
            return ChannelSource(channel, None)
        stream = changes.stream_by_id(session, channel.stream_id)
    if stream is None:
        raise TunnelRefused("expired", name=tunnel.name)
    # The log of followers has a namespace of its own. The caller is authorized for the table.
    return ChannelSource(channel, dataclasses.replace(stream, namespace=tunnel.namespace))


# Positions


def _with_new_shards(session: Session, tunnel: Tunnel, state: TunnelState) -> TunnelState:
    """Return a state with the current shards, and with the table's next stream if this one has been read to its end."""
    if not tunnel.type.has_changes:
        return state
    shards = changes.shards_of(session, state.stream_id)
    state = with_shards(state, state.stream_id, shards, {})
    is_read = all(shard.last_sequence is not None for shard in shards) and all(
        channel.position.finished for channel in state.channels if channel.stream_id == state.stream_id
    )
    next_stream = changes.next_stream(session, tunnel.table_id, state.stream_id) if is_read else None
    if next_stream is None:
        return state
    state = dataclasses.replace(state, next_shard=0)
    return with_shards(state, next_stream.id, changes.shards_of(session, next_stream.id), {})


def _save_positions(session: Session, tunnel_id: int, state: TunnelState) -> None:
    """Update the follower of a tunnel, so that changes before the saved positions can be trimmed."""
    follower = followers.by_id(session, tunnel_id)
    if follower is None:
        return
    shards = changes.shards_of(session, state.stream_id)
    is_same_stream = follower.stream_id == state.stream_id
    positions = {**(follower.positions if is_same_stream else {}), **_positions(state, shards)}
    new = follower._replace(stream_id=state.stream_id, positions=positions)
    if new != follower:
        followers.advance(session, follower, new)


def _positions(state: TunnelState, shards: Sequence[Shard]) -> Mapping[int, int]:
    ends = {shard.number: shard.last_sequence for shard in shards}
    positions = {}
    for channel in state.channels:
        if channel.stream_id == state.stream_id:
            end = ends.get(channel.number)
            is_read = channel.position.finished and end is not None
            positions[channel.number] = end + 1 if is_read and end is not None else channel.position.sequence
    return positions


COMMANDS: Runners = {
    tunnel_commands.CreateTunnel: _create,
    tunnel_commands.DeleteTunnel: _delete,
    tunnel_commands.ListTunnels: _list,
    tunnel_commands.FindTunnel: _find,
    tunnel_commands.FindChannel: _source,
    tunnel_commands.ConnectTunnel: _change,
    tunnel_commands.HeartbeatTunnel: _change,
    tunnel_commands.LeaveTunnel: _change,
    tunnel_commands.SaveCheckpoint: _change,
}
