"""CreateTunnel, DeleteTunnel, ListTunnel, DescribeTunnel and GetRpo."""

from __future__ import annotations

from typing import Any

import orjson
from google.protobuf.message import Message

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.call_context import CallContext, find_table
from tablegate.adapters.tablestore.wire.errors import invalid
from tablegate.adapters.tablestore.wire.names import is_name
from tablegate.adapters.tablestore.wire.protocol import tunnel_pb2 as messages
from tablegate.gateway.features.tunnels import tunnel_commands
from tablegate.gateway.features.tunnels.tunnels import Channel, ChannelStatus, Tunnel, TunnelType
from tablegate.gateway.model.errors import TableMissing, TunnelRefused
from tablegate.gateway.model.tables.tables import Table

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
