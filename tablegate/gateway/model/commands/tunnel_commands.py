"""Commands for the tunnels of a table."""

from __future__ import annotations

from dataclasses import dataclass

from tablegate.gateway.model.commands.command import BaseCommand
from tablegate.gateway.model.tables.tables import Table
from tablegate.gateway.model.tables.tunnels import (
    ChannelPosition,
    ChannelReport,
    ChannelSource,
    Tunnel,
    TunnelType,
)


@dataclass(frozen=True, slots=True)
class CreateTunnel(BaseCommand[Tunnel]):
    """Create a tunnel. Outcome: the Tunnel. Errors: StaleTable, TunnelRefused, LimitExceeded.

    `start_ms`, `end_ms`, `from_oldest`: as in Tunnel. `tunnels_max`: maximum number of tunnels of the table.
    """

    table: Table
    name: str
    type: TunnelType
    tunnels_max: int
    start_ms: int = 0
    end_ms: int = 0
    from_oldest: bool = False


@dataclass(frozen=True, slots=True)
class DeleteTunnel(BaseCommand[None]):
    """Delete a tunnel by its name. Error: TunnelRefused."""

    table: Table
    name: str


@dataclass(frozen=True, slots=True)
class ListTunnels(BaseCommand[list[Tunnel]]):
    """List the tunnels of a table by name. Outcome: list of Tunnel."""

    table: Table


@dataclass(frozen=True, slots=True)
class FindTunnel(BaseCommand[Tunnel]):
    """Look a tunnel up by its id. Outcome: Tunnel. Error: TunnelRefused."""

    namespace: str
    tunnel_id: str


@dataclass(frozen=True, slots=True)
class ConnectTunnel(BaseCommand[str]):
    """Connect a client. Outcome: the id of the client. Errors: TunnelRefused, LimitExceeded."""

    tunnel: Tunnel
    timeout_ms: int
    clients_max: int


@dataclass(frozen=True, slots=True)
class HeartbeatTunnel(BaseCommand[Tunnel]):
    """Renew a client, take over its reports, and share the channels. Outcome: the Tunnel. Error: TunnelRefused."""

    tunnel: Tunnel
    client: str
    reports: tuple[ChannelReport, ...]


@dataclass(frozen=True, slots=True)
class LeaveTunnel(BaseCommand[None]):
    """Disconnect a client, so that others get its channels. Error: TunnelRefused."""

    tunnel: Tunnel
    client: str


@dataclass(frozen=True, slots=True)
class FindChannel(BaseCommand[ChannelSource]):
    """Look up a channel that a client holds. Outcome: ChannelSource. Error: TunnelRefused."""

    tunnel: Tunnel
    client: str
    channel: str


@dataclass(frozen=True, slots=True)
class SaveCheckpoint(BaseCommand[None]):
    """Save the position of a channel that a client holds. Error: TunnelRefused.

    `number`: the number of the checkpoint within the channel. It must follow the last one.
    """

    tunnel: Tunnel
    client: str
    channel: str
    position: ChannelPosition
    number: int


ClientCommand = ConnectTunnel | HeartbeatTunnel | LeaveTunnel | FindChannel | SaveCheckpoint
"""Commands of the clients that read a tunnel."""

TunnelCommand = CreateTunnel | DeleteTunnel | ListTunnels | FindTunnel | ClientCommand
