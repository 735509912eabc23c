"""The operations on tunnels."""

from __future__ import annotations

from collections.abc import Mapping

from tablegate.adapters.tablestore.operation import Operation
from tablegate.adapters.tablestore.tunnels import clients, tunnels
from tablegate.adapters.tablestore.wire.protocol import tunnel_pb2 as messages
from tablegate.gateway.model.authorization.permissions import Channel as AccessChannel
from tablegate.gateway.model.authorization.permissions import Permission, Purpose

_P = Permission
_DEFINING = Purpose((_P.ALTER_DELIVERIES,), AccessChannel.TUNNEL)
_DESCRIBING = Purpose((_P.DESCRIBE_STREAM,), AccessChannel.TUNNEL)
_READING = Purpose((_P.READ_STREAM, _P.SCAN), AccessChannel.TUNNEL)
OPERATIONS: Mapping[str, Operation] = {
    "tunnel/create": Operation(messages.CreateTunnelRequest, tunnels.create_tunnel, _DEFINING),
    "tunnel/delete": Operation(messages.DeleteTunnelRequest, tunnels.delete_tunnel, _DEFINING),
    "tunnel/list": Operation(messages.ListTunnelRequest, tunnels.list_tunnel, _DESCRIBING),
    "tunnel/describe": Operation(messages.DescribeTunnelRequest, tunnels.describe_tunnel, _DESCRIBING),
    "tunnel/getrpo": Operation(messages.GetRpoRequest, tunnels.get_rpo, _DESCRIBING),
    "tunnel/connect": Operation(messages.ConnectRequest, clients.connect, _READING),
    "tunnel/heartbeat": Operation(messages.HeartbeatRequest, clients.heartbeat, _READING),
    "tunnel/shutdown": Operation(messages.ShutdownRequest, clients.shutdown, _READING),
    "tunnel/getcheckpoint": Operation(messages.GetCheckpointRequest, clients.get_checkpoint, _READING),
    "tunnel/checkpoint": Operation(messages.CheckpointRequest, clients.checkpoint, _READING),
    "tunnel/readrecords": Operation(messages.ReadRecordsRequest, clients.read_records, _READING),
}  # fmt: skip
