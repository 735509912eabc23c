"""A client of a tunnel, as the workers of the Go and Java SDKs: heartbeats, reads and checkpoints."""

from __future__ import annotations

from typing import Any

from tablegate.adapters.tablestore.wire.plainbuffer import WireRow, decode_row
from tablegate.adapters.tablestore.wire.protocol import tunnel_pb2
from tests.adapters.tablestore.client import TableStoreCalls

OPEN, CLOSING, CLOSE, TERMINATED = (
    tunnel_pb2.OPEN,
    tunnel_pb2.CLOSING,
    tunnel_pb2.CLOSE,
    tunnel_pb2.TERMINATED,
)
FINISHED = "finished"


def create_tunnel(
    service: TableStoreCalls, kind: int, table: str = "t", name: str = "u", **config: int
) -> str:
    """Create a tunnel and return its id."""
    wanted = tunnel_pb2.Tunnel(table_name=table, tunnel_name=name, tunnel_type=kind)  # type: ignore[arg-type]
    if config:
        wanted.stream_tunnel_config.CopyFrom(tunnel_pb2.StreamTunnelConfig(**config))  # type: ignore[arg-type]
    found: str = service.call("tunnel/create", tunnel=wanted).tunnel_id
    return found


def describe(service: TableStoreCalls, table: str = "t", name: str = "u") -> Any:
    return service.call("tunnel/describe", table_name=table, tunnel_name=name)


class TunnelWorker:
    """A worker. `records` are (channel, action, row) in the order in which they were read."""

    def __init__(self, service: TableStoreCalls, tunnel: str, timeout_s: int = 300) -> None:
        self.service = service
        self.tunnel = tunnel
        config = tunnel_pb2.ClientConfig(timeout=timeout_s, client_tag="test")
        self.client = service.call("tunnel/connect", tunnel_id=tunnel, client_config=config).client_id
        self.channels: dict[str, Any] = {}
        self.tokens: dict[str, tuple[str, int]] = {}
        self.records: list[tuple[str, int, WireRow]] = []

    def ask(self, operation: str, **members: Any) -> Any:
        return self.service.call(
            f"tunnel/{operation}", tunnel_id=self.tunnel, client_id=self.client, **members
        )

    def beat(self) -> dict[str, int]:
        """Send a heartbeat. Return the status of each channel that the worker holds."""
        answer = self.ask("heartbeat", channels=list(self.channels.values()))
        current = {channel.channel_id: channel for channel in answer.channels}
        for name, old in self.channels.items():
            if name in current and old.version > current[name].version:
                current[name] = old
        self.channels = current
        self.tokens = {name: token for name, token in self.tokens.items() if name in current}
        statuses = {name: channel.status for name, channel in current.items()}
        for name, status in statuses.items():
            if status == CLOSING:
                self.set_status(name, CLOSE)
        return statuses

    def set_status(self, name: str, status: int) -> None:
        channel = self.channels[name]
        channel.status = status
        channel.version += 1

    def read(self, name: str) -> Any:
        """Read a page of a channel, process its records, and save the position."""
        if name not in self.tokens:
            saved = self.ask("getcheckpoint", channel_id=name)
            self.tokens[name] = saved.checkpoint, saved.sequence_number
        token, number = self.tokens[name]
        answer = self.ask("readrecords", channel_id=name, token=token)
        for record in answer.records:
            self.process(name, record.action_type, decode_row(record.record))
        self.ask("checkpoint", channel_id=name, checkpoint=answer.next_token, sequence_number=number + 1)
        self.tokens[name] = answer.next_token, number + 1
        if answer.next_token == FINISHED:
            self.set_status(name, TERMINATED)
        return answer

    def process(self, name: str, action: int, row: WireRow) -> None:
        self.records.append((name, action, row))

    def work(self) -> bool:
        """Read a page of each open channel. Return True if there was anything."""
        found = False
        for name, status in self.beat().items():
            if status == OPEN:
                answer = self.read(name)
                found = found or bool(answer.records) or answer.next_token == FINISHED
        return found

    def drain(self) -> None:
        """Work until there is nothing new."""
        while self.work():
            pass
        self.beat()
