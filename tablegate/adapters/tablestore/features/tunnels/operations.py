"""The operations of the tunnel service: on tunnels, and the requests of their clients.

CreateTunnel, DeleteTunnel, ListTunnel, DescribeTunnel and GetRpo are about tunnels. Connect, Heartbeat, Shutdown,
GetCheckpoint, Checkpoint and ReadRecords come from clients of a tunnel.

Clients see a position in a channel as a token. A token is the base64 text of a protobuf message, from which the SDKs read
the phase (wire/protocol/tunnel.proto). The position of rows in it is the last key as bytes, that of changes the next
sequence.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import struct
from collections.abc import Mapping
from typing import Any

import orjson
from google.protobuf.message import DecodeError, Message

from tablegate.adapters.tablestore.call import CallContext, find_table
from tablegate.adapters.tablestore.features.streams.operations import put_record, stream_record
from tablegate.adapters.tablestore.operation_table import Operation
from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.adapters.tablestore.wire.names import is_name
from tablegate.adapters.tablestore.wire.protocol import tunnel_pb2 as messages
from tablegate.gateway.features.tunnels import tunnel_commands
from tablegate.gateway.features.tunnels.tunnels import (
    Channel,
    ChannelPosition,
    ChannelReport,
    ChannelSource,
    ChannelStatus,
    Tunnel,
    TunnelType,
)
from tablegate.gateway.model.authorization.permissions import Channel as AccessChannel
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.commands.row_commands import Read
from tablegate.gateway.model.commands.stream_commands import ReadChanges
from tablegate.gateway.model.errors import PositionExpired, StreamMissing, TableMissing, TunnelRefused
from tablegate.gateway.model.expressions.ranges import EVERYTHING
from tablegate.gateway.model.tables.changes import Change, Stream
from tablegate.gateway.model.tables.pages import PageLimits, Segment
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.values.keys import Position

FINISHED = "finished"
"""The token at the end of a channel."""
_VERSION = 2
_LENGTH = struct.Struct(">I")


def token_of(channel: Channel, position: ChannelPosition) -> str:
    """Return the token of a position."""
    if position.finished:
        return FINISHED
    content = messages.TokenContent(timestamp=position.at_ms * 1_000_000, total_count=position.count)
    if channel.has_rows:
        content.primary_key = bytes.fromhex(position.after)
    else:
        content.iterator = str(position.sequence)
    token = messages.Token(version=_VERSION, content=content.SerializeToString())
    return base64.b64encode(token.SerializeToString()).decode()


def parse_token(channel: Channel, text: str) -> ChannelPosition:
    """Return the position of a token. Raises ServiceError."""
    if text == FINISHED:
        return ChannelPosition(finished=True)
    try:
        if len(text) > limits.TUNNEL_TOKEN_MAX:
            raise _invalid()
        token = messages.Token.FromString(base64.b64decode(text.encode(), validate=True))
        content = messages.TokenContent.FromString(token.content)
    except (binascii.Error, DecodeError, UnicodeEncodeError):
        raise _invalid() from None
    iterator, after = content.iterator, content.primary_key
    at_ms, count = max(0, content.timestamp // 1_000_000), max(0, content.total_count)
    if count > limits.TUNNEL_COUNT_MAX:
        raise _invalid()
    if channel.has_rows:
        if iterator or (after and _split(after) is None):
            raise _invalid()
        return ChannelPosition(after=after.hex(), at_ms=at_ms, count=count)
    if after or not (iterator.isascii() and iterator.isdigit() and len(iterator) < 19):
        raise _invalid()
    return ChannelPosition(sequence=int(iterator), at_ms=at_ms, count=count)


def _invalid() -> ServiceError:
    return invalid("Invalid token.")


def key_text(position: Position) -> str:
    """Return the key of a row as ChannelPosition stores it."""
    return (_LENGTH.pack(len(position.partition)) + position.partition + position.sort).hex()


def key_position(text: str) -> Position | None:
    """Return the key of a text of `key_text`. None at the beginning."""
    return _split(bytes.fromhex(text)) if text else None


def _split(data: bytes) -> Position | None:
    if len(data) < _LENGTH.size:
        return None
    [length] = _LENGTH.unpack_from(data)
    rest = data[_LENGTH.size :]
    return Position(rest[:length], rest[length:]) if length <= len(rest) else None


_TYPES = {
    messages.BaseData: TunnelType.BASE_DATA,
    messages.Stream: TunnelType.STREAM,
    messages.BaseAndStream: TunnelType.BASE_AND_STREAM,
}
_NS_PER_MS = 1_000_000


async def create_tunnel(call: CallContext) -> Message:
    """tunnel/create: a new tunnel of a table. Raises ServiceError, TunnelRefused, LimitExceeded."""
    wanted = call.message.tunnel
    table = await _find_table(call, wanted.table_name)
    if not is_name(wanted.tunnel_name):
        raise invalid(f"Invalid tunnel name: '{wanted.tunnel_name[: limits.NAME_MAX_BYTES]}'.")
    config = wanted.stream_tunnel_config
    start_ms, end_ms = config.start_offset // _NS_PER_MS, config.end_offset // _NS_PER_MS
    if end_ms and end_ms <= start_ms:
        raise invalid("The end offset must be greater than the start offset.")
    tunnel = await tunnel_commands.CreateTunnel(
        table,
        wanted.tunnel_name,
        _TYPES[wanted.tunnel_type],
        limits.TUNNELS_MAX,
        start_ms,
        end_ms,
        config.flag == messages.EARLIEST,
    )
    return messages.CreateTunnelResponse(tunnel_id=tunnel.public_id)


async def delete_tunnel(call: CallContext) -> Message:
    """tunnel/delete: delete a tunnel by its name. Raises ServiceError, TunnelRefused."""
    table = await _find_table(call, call.message.table_name)
    await tunnel_commands.DeleteTunnel(table, call.message.tunnel_name)
    return messages.DeleteTunnelResponse()


async def list_tunnel(call: CallContext) -> Message:
    """tunnel/list: the tunnels of a table. Raises ServiceError."""
    table = await _find_table(call, call.message.table_name)
    tunnels = await tunnel_commands.ListTunnels(table)
    return messages.ListTunnelResponse(tunnels=[_info(call, tunnel) for tunnel in tunnels])


async def describe_tunnel(call: CallContext) -> Message:
    """tunnel/describe: a tunnel with its channels. Raises ServiceError, TunnelRefused."""
    table = await _find_table(call, call.message.table_name)
    tunnels = await tunnel_commands.ListTunnels(table)
    name = call.message.tunnel_name
    tunnel = next((each for each in tunnels if each.name == name), None)
    if tunnel is None:
        raise TunnelRefused("missing", name=name)
    channels = [_channel_info(tunnel, channel) for channel in tunnel.state.channels]
    rpo = min((channel.channel_rpo for channel in channels), default=tunnel.created_at_ms * _NS_PER_MS)
    return messages.DescribeTunnelResponse(tunnel=_info(call, tunnel), channels=channels, tunnel_rpo=rpo)


async def get_rpo(call: CallContext) -> Message:
    """tunnel/getrpo: the progress of a tunnel and of its channels, as JSON. Raises ServiceError, TunnelRefused."""
    tunnel = await find_tunnel(call, call.message.tunnel_id)
    table = await _find_table(call, tunnel.table_name)
    tunnels = await tunnel_commands.ListTunnels(table)
    tunnel = next((each for each in tunnels if each.id == tunnel.id), tunnel)
    channels = {channel.id: _progress(tunnel, [channel]) for channel in tunnel.state.channels}
    of_channels = {
        channel.id: {"ChannelTyp": _type_of(channel), **channels[channel.id]}
        for channel in tunnel.state.channels
    }
    return messages.GetRpoResponse(
        rpo_infos=orjson.dumps({tunnel.public_id: of_channels}),
        tunnel_rpo_infos=orjson.dumps({tunnel.public_id: _progress(tunnel, tunnel.state.channels)}),
        tunnel_id=tunnel.public_id,
    )


async def find_tunnel(call: CallContext, tunnel_id: str) -> Tunnel:
    """Look up a tunnel of the caller's instance by its id. Raises TunnelRefused."""
    return await tunnel_commands.FindTunnel(call.caller.namespace, tunnel_id)


async def _find_table(call: CallContext, name: str) -> Table:
    """Look up a table. The tunnel service reports an absent one as an invalid parameter."""
    try:
        return await find_table(call, name)
    except TableMissing:
        raise invalid("Requested table does not exist.") from None


def _info(call: CallContext, tunnel: Tunnel) -> messages.TunnelInfo:
    info = messages.TunnelInfo(
        tunnel_id=tunnel.public_id,
        tunnel_type=tunnel.type.value,
        table_name=tunnel.table_name,
        instance_name=call.caller.instance,
        stream_id=f"{tunnel.table_name}_{tunnel.stream_label}" if tunnel.type.has_changes else "",
        stage="ProcessBaseData" if tunnel.state.reads_rows else "ProcessStream",
        expired=tunnel.is_expired,
        tunnel_name=tunnel.name,
        public=True,
        create_time=tunnel.created_at_ms * _NS_PER_MS,
    )
    if tunnel.type.has_changes:
        info.stream_tunnel_config.flag = messages.EARLIEST if tunnel.from_oldest else messages.LATEST
        info.stream_tunnel_config.start_offset = tunnel.start_ms * _NS_PER_MS
        info.stream_tunnel_config.end_offset = tunnel.end_ms * _NS_PER_MS
    return info


def _channel_info(tunnel: Tunnel, channel: Channel) -> messages.ChannelInfo:
    return messages.ChannelInfo(
        channel_id=channel.id,
        channel_type=_type_of(channel),
        channel_status=_status_of(channel),
        client_id=channel.client,
        channel_rpo=_read_up_to_ms(tunnel, channel) * _NS_PER_MS,
        channel_count=channel.position.count,
    )


def _type_of(channel: Channel) -> str:
    return "BaseData" if channel.has_rows else "Stream"


def _status_of(channel: Channel) -> str:
    is_new = channel.status is ChannelStatus.CLOSE and not channel.version
    return "WAIT" if is_new else channel.status.name


def _read_up_to_ms(tunnel: Tunnel, channel: Channel) -> int:
    return channel.position.at_ms or tunnel.created_at_ms


def _progress(tunnel: Tunnel, channels: Any) -> dict[str, Any]:
    """Return the members that channels and tunnels have in GetRpo. Times are in nanoseconds."""
    is_read = all(channel.is_terminated for channel in channels)
    times_ms = [_read_up_to_ms(tunnel, channel) for channel in channels] or [tunnel.created_at_ms]
    seen_ms = [client.seen_at_ms for client in tunnel.state.clients]
    return {
        "Status": ChannelStatus.TERMINATED.name if is_read else ChannelStatus.OPEN.name,
        "TotalCount": sum(channel.position.count for channel in channels),
        "AccessTime": max(seen_ms, default=tunnel.created_at_ms) * _NS_PER_MS,
        "RpoTime": min(times_ms) * _NS_PER_MS,
    }


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


_P = Permission
_DEFINING = Purpose((_P.ALTER_DELIVERIES,), AccessChannel.TUNNEL)
_DESCRIBING = Purpose((_P.DESCRIBE_STREAM,), AccessChannel.TUNNEL)
_READING = Purpose((_P.READ_STREAM, _P.SCAN), AccessChannel.TUNNEL)
OPERATIONS: Mapping[str, Operation] = {
    "tunnel/create": Operation(messages.CreateTunnelRequest, create_tunnel, _DEFINING),
    "tunnel/delete": Operation(messages.DeleteTunnelRequest, delete_tunnel, _DEFINING),
    "tunnel/list": Operation(messages.ListTunnelRequest, list_tunnel, _DESCRIBING),
    "tunnel/describe": Operation(messages.DescribeTunnelRequest, describe_tunnel, _DESCRIBING),
    "tunnel/getrpo": Operation(messages.GetRpoRequest, get_rpo, _DESCRIBING),
    "tunnel/connect": Operation(messages.ConnectRequest, connect, _READING),
    "tunnel/heartbeat": Operation(messages.HeartbeatRequest, heartbeat, _READING),
    "tunnel/shutdown": Operation(messages.ShutdownRequest, shutdown, _READING),
    "tunnel/getcheckpoint": Operation(messages.GetCheckpointRequest, get_checkpoint, _READING),
    "tunnel/checkpoint": Operation(messages.CheckpointRequest, checkpoint, _READING),
    "tunnel/readrecords": Operation(messages.ReadRecordsRequest, read_records, _READING),
}  # fmt: skip
