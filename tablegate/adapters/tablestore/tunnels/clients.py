"""Connect, Heartbeat, Shutdown, GetCheckpoint, Checkpoint and ReadRecords: the requests of a tunnel's clients."""

from __future__ import annotations

import dataclasses

from google.protobuf.message import Message

from tablegate.adapters.tablestore.streams.streams import put_record, stream_record
from tablegate.adapters.tablestore.tunnels.tokens import key_position, key_text, parse_token, token_of
from tablegate.adapters.tablestore.tunnels.tunnels import find_tunnel
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.call_context import CallContext, find_table
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.protocol import tunnel_pb2 as messages
from tablegate.gateway.features.tunnels import tunnel_commands
from tablegate.gateway.features.tunnels.tunnels import (
    Channel,
    ChannelPosition,
    ChannelReport,
    ChannelSource,
    ChannelStatus,
    Tunnel,
)
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.commands.stream_commands import ReadChanges
from tablegate.gateway.model.errors import PositionExpired, StreamMissing, TunnelRefused
from tablegate.gateway.model.expressions.ranges import EVERYTHING
from tablegate.gateway.model.tables.changes import Change, Stream
from tablegate.gateway.model.tables.pages import PageLimits, Segment

_TIMEOUT_DEFAULT_S = 300
# Time after the end of a tunnel's period until which changes of the period may still be committed.
_LATE_COMMITS_MS = 60_000


async def connect(call: CallContext) -> Message:
    """tunnel/connect: connect a client. Raises ServiceError, TunnelRefused, LimitExceeded."""
    message = call.message
    tunnel = await find_tunnel(call, message.tunnel_id)
    config = message.client_config
    timeout_s = config.timeout if config.HasField("timeout") else _TIMEOUT_DEFAULT_S
    if not 1 <= timeout_s <= limits.TUNNEL_CLIENT_TIMEOUT_MAX_S:
        raise invalid(f"Invalid client timeout: {timeout_s}.")
    client = await tunnel_commands.ConnectTunnel(tunnel, timeout_s * 1000, limits.TUNNEL_CLIENTS_MAX)
    return messages.ConnectResponse(client_id=client)


async def heartbeat(call: CallContext) -> Message:
    """tunnel/heartbeat: report the channels of a client, and return those that it holds. Raises TunnelRefused."""
    message = call.message
    tunnel = await find_tunnel(call, message.tunnel_id)
    reports = tuple(
        ChannelReport(channel.channel_id, channel.version, ChannelStatus(channel.status))
        for channel in message.channels
        if channel.version < limits.TUNNEL_VERSION_END
    )
    tunnel = await tunnel_commands.HeartbeatTunnel(tunnel, message.client_id, reports)
    held = [channel for channel in tunnel.state.channels if channel.client == message.client_id]
    return messages.HeartbeatResponse(
        channels=[
            messages.Channel(channel_id=channel.id, version=channel.version, status=channel.status.value)  # type: ignore[arg-type]
            for channel in held
        ]
    )


async def shutdown(call: CallContext) -> Message:
    """tunnel/shutdown: disconnect a client. Raises TunnelRefused."""
    tunnel = await find_tunnel(call, call.message.tunnel_id)
    await tunnel_commands.LeaveTunnel(tunnel, call.message.client_id)
    return messages.ShutdownResponse()


async def get_checkpoint(call: CallContext) -> Message:
    """tunnel/getcheckpoint: the saved position of a channel. Raises TunnelRefused."""
    _, source = await _find_channel(call)
    channel = source.channel
    return messages.GetCheckpointResponse(
        checkpoint=token_of(channel, channel.position), sequence_number=channel.checkpoints
    )


async def checkpoint(call: CallContext) -> Message:
    """tunnel/checkpoint: save the position of a channel. Raises ServiceError, TunnelRefused."""
    message = call.message
    tunnel, source = await _find_channel(call)
    position = parse_token(source.channel, message.checkpoint)
    await tunnel_commands.SaveCheckpoint(
        tunnel, message.client_id, message.channel_id, position, message.sequence_number
    )
    return messages.CheckpointResponse()


async def read_records(call: CallContext) -> Message:
    """tunnel/readrecords: the records after a token, and the next token. Raises ServiceError, TunnelRefused."""
    tunnel, source = await _find_channel(call)
    channel = source.channel
    position = parse_token(channel, call.message.token)
    if position.finished:
        return messages.ReadRecordsResponse(next_token=call.message.token, may_more_record=False)
    if source.stream is None:
        return await _read_rows(call, tunnel, channel, position)
    return await _read_changes(call, tunnel, channel, source.stream, position)


async def _find_channel(call: CallContext) -> tuple[Tunnel, ChannelSource]:
    """Look up a channel that the client holds, and its tunnel. Raises TunnelRefused."""
    message = call.message
    tunnel = await find_tunnel(call, message.tunnel_id)
    command = tunnel_commands.FindChannel(tunnel, message.client_id, message.channel_id)
    return tunnel, await command


# Records


async def _read_rows(
    call: CallContext, tunnel: Tunnel, channel: Channel, position: ChannelPosition
) -> Message:
    """Return a page of the rows of a channel."""
    table = await find_table(call, tunnel.table_name)
    page_limits = PageLimits(
        scanned=limits.TUNNEL_RECORDS_MAX,
        filled_bytes=limits.STREAM_MAX_BYTES,
        seconds=limits.RANGE_SECONDS,
    )
    segment = Segment(channel.number, tunnel.row_channels)
    command = Read(table, EVERYTHING, page_limits, segment=segment, after=key_position(position.after))
    page = await command
    is_end = page.last is None
    after = dataclasses.replace(
        position,
        after=position.after if page.last is None else key_text(page.last.position),
        finished=is_end,
        at_ms=call.now_ms,
        count=position.count + len(page.rows),
    )
    names = table.key_schema.names
    return messages.ReadRecordsResponse(
        records=[
            messages.Record(action_type=messages.PUT_ROW, record=put_record(names, row)) for row in page.rows
        ],
        next_token=token_of(channel, after),
        may_more_record=not is_end,
    )


async def _read_changes(
    call: CallContext, tunnel: Tunnel, channel: Channel, stream: Stream, position: ChannelPosition
) -> Message:
    """Return a page of the changes of a channel."""
    command = ReadChanges(
        stream, channel.number, position.sequence, limits.TUNNEL_RECORDS_MAX, limits.STREAM_MAX_BYTES
    )
    try:
        page = await command
    except (PositionExpired, StreamMissing):
        raise TunnelRefused("expired", name=tunnel.name) from None
    changes = [change for change in page.changes if not tunnel.end_ms or change.at_ms < tunnel.end_ms]
    is_over = bool(tunnel.end_ms) and (
        len(changes) < len(page.changes)
        or (not page.changes and call.now_ms > tunnel.end_ms + _LATE_COMMITS_MS)
    )
    after = dataclasses.replace(
        position,
        sequence=position.sequence if page.next is None else page.next,
        finished=page.next is None or is_over,
        at_ms=changes[-1].at_ms if changes else position.at_ms,
        count=position.count + len(changes),
    )
    return messages.ReadRecordsResponse(
        records=[_record(stream, change) for change in changes],
        next_token=token_of(channel, after),
        may_more_record=bool(changes) and not after.finished,
    )


def _record(stream: Stream, change: Change) -> messages.Record:
    record = stream_record(stream, change)
    origin = record.origin_record if record.HasField("origin_record") else None
    return messages.Record(
        action_type=record.action_type,  # type: ignore[arg-type]
        record=record.record,
        origin_record=origin,
    )
