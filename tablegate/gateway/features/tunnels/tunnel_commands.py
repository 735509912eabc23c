"""Commands for the tunnels of a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tablegate.gateway.features.tunnels.tunnels import (
    ChannelPosition,
    ChannelReport,
    ChannelSource,
    Tunnel,
    TunnelType,
)
from tablegate.gateway.model.authorization.accesses import ANYWHERE, Access, any_rows
from tablegate.gateway.model.authorization.conditions import ConditionKey, FactValues
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.commands.command import ControlCommand, R_co
from tablegate.gateway.model.tables.tables import Table


@dataclass(frozen=True, slots=True)
class CreateTunnel(ControlCommand[Tunnel]):
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

    permission = Permission.ALTER_DELIVERIES


@dataclass(frozen=True, slots=True)
class DeleteTunnel(ControlCommand[None]):
    """Delete a tunnel by its name. Error: TunnelRefused."""

    table: Table
    name: str

    permission = Permission.ALTER_DELIVERIES


@dataclass(frozen=True, slots=True)
class ListTunnels(ControlCommand[list[Tunnel]]):
    """List the tunnels of a table by name. Outcome: list of Tunnel."""

    table: Table

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        table = self.table
        path = f"{table.name}/stream/{ANYWHERE}"
        yield Access(Permission.DESCRIBE_STREAM, purpose.channel, table.namespace, path, self, table)


@dataclass(frozen=True, slots=True)
class FindTunnel(ControlCommand[Tunnel]):
    """Look a tunnel up by its id. Outcome: Tunnel. Error: TunnelRefused."""

    namespace: str
    tunnel_id: str

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        """Return none. The tunnel is authorized when it is used."""
        return ()


@dataclass(frozen=True, slots=True)
class ClientCommand(ControlCommand[R_co]):
    """A command of a client that reads a tunnel."""

    tunnel: Tunnel

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        """Return the accesses to all rows, all changes, or both."""
        tunnel = self.tunnel
        if tunnel.type.has_rows:
            yield Access(Permission.SCAN, purpose.channel, tunnel.namespace, tunnel.table_name, self)
        if tunnel.type.has_changes:
            path = f"{tunnel.table_name}/stream/{ANYWHERE}"
            yield Access(Permission.READ_STREAM, purpose.channel, tunnel.namespace, path, self)

    def fact(self, key: ConditionKey) -> FactValues:
        return any_rows(key)


@dataclass(frozen=True, slots=True)
class ConnectTunnel(ClientCommand[str]):
    """Connect a client. Outcome: the id of the client. Errors: TunnelRefused, LimitExceeded."""

    timeout_ms: int
    clients_max: int


@dataclass(frozen=True, slots=True)
class HeartbeatTunnel(ClientCommand[Tunnel]):
    """Renew a client, take over its reports, and share the channels. Outcome: the Tunnel. Error: TunnelRefused."""

    client: str
    reports: tuple[ChannelReport, ...]


@dataclass(frozen=True, slots=True)
class LeaveTunnel(ClientCommand[None]):
    """Disconnect a client, so that others get its channels. Error: TunnelRefused."""

    client: str


@dataclass(frozen=True, slots=True)
class FindChannel(ClientCommand[ChannelSource]):
    """Look up a channel that a client holds. Outcome: ChannelSource. Error: TunnelRefused."""

    client: str
    channel: str


@dataclass(frozen=True, slots=True)
class SaveCheckpoint(ClientCommand[None]):
    """Save the position of a channel that a client holds. Error: TunnelRefused.

    `number`: the number of the checkpoint within the channel. It must follow the last one.
    """

    client: str
    channel: str
    position: ChannelPosition
    number: int
