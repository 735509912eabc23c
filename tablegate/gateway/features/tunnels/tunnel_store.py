"""SQL for tunnels and their state."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import orjson

from tablegate.gateway.features.tunnels.tunnels import (
    Channel,
    ChannelPosition,
    ChannelStatus,
    Tunnel,
    TunnelClient,
    TunnelState,
    TunnelType,
)
from tablegate.gateway.store.sql.databases import Session

_SELECT = (
    "SELECT u.id, u.public_id, t.namespace, u.table_id, t.name, u.name, u.definition, u.state, f.id"
    " FROM tunnels u JOIN tables t ON t.id = u.table_id LEFT JOIN followers f ON f.id = u.id"
)


def add(session: Session, tunnel: Tunnel) -> None:
    """Insert a new tunnel."""
    definition = [
        tunnel.type.value, tunnel.created_at_ms, tunnel.start_ms, tunnel.end_ms, tunnel.from_oldest, tunnel.stream_label
    ]  # fmt: skip
    session.execute(
        "INSERT INTO tunnels (id, public_id, table_id, name, definition, state) VALUES (?, ?, ?, ?, ?, ?)",
        (
            tunnel.id,
            tunnel.public_id,
            tunnel.table_id,
            tunnel.name,
            orjson.dumps(definition).decode(),
            _state_json(tunnel.state),
        ),
    )


def of_table(session: Session, table_id: int) -> list[Tunnel]:
    """Return the tunnels of a table by name."""
    return _tunnels(session, "u.table_id = ? ORDER BY u.name", (table_id,))


def by_public_id(session: Session, namespace: str, public_id: str) -> Tunnel | None:
    """Return the tunnel of a namespace with this id, or None."""
    if "\0" in public_id:  # PostgreSQL accepts no text with one
        return None
    found = _tunnels(session, "u.public_id = ? AND t.namespace = ?", (public_id, namespace))
    return found[0] if found else None


def lock(session: Session, tunnel_id: int) -> Tunnel | None:
    """Return the current tunnel, locked exclusively until the transaction ends, or None."""
    session.statements.lock_rows(session, "tunnels", "id", [tunnel_id])
    found = _tunnels(session, "u.id = ?", (tunnel_id,))
    return found[0] if found else None


def save_state(session: Session, tunnel: Tunnel) -> None:
    """Store the state of a locked tunnel."""
    session.execute("UPDATE tunnels SET state = ? WHERE id = ?", (_state_json(tunnel.state), tunnel.id))


def remove(session: Session, tunnel_id: int) -> None:
    """Delete a tunnel."""
    session.execute("DELETE FROM tunnels WHERE id = ?", (tunnel_id,))


def remove_all(session: Session, table_id: int) -> None:
    """Delete the tunnels of a table and their followers, without a round trip."""
    session.send("DELETE FROM followers WHERE id IN (SELECT id FROM tunnels WHERE table_id = ?)", (table_id,))
    session.send("DELETE FROM tunnels WHERE table_id = ?", (table_id,))


def _tunnels(session: Session, where: str, parameters: Sequence[Any]) -> list[Tunnel]:
    return [_tunnel(*columns) for columns in session.query(f"{_SELECT} WHERE {where}", parameters)]


def _tunnel(
    tunnel_id: int, public_id: str, namespace: str, table_id: int, table_name: str, name: str, *rest: Any
) -> Tunnel:
    definition, state, follower_id = rest
    kind, created_at_ms, start_ms, end_ms, from_oldest, stream_label = orjson.loads(definition)
    tunnel_type = TunnelType(kind)
    return Tunnel(
        id=tunnel_id,
        public_id=public_id,
        namespace=namespace,
        table_id=table_id,
        table_name=table_name,
        name=name,
        type=tunnel_type,
        created_at_ms=created_at_ms,
        state=_state(orjson.loads(state)),
        start_ms=start_ms,
        end_ms=end_ms,
        from_oldest=from_oldest,
        stream_label=stream_label,
        is_expired=tunnel_type.has_changes and follower_id is None,
    )


def _state_json(state: TunnelState) -> str:
    return orjson.dumps(dataclasses.asdict(state)).decode()


def _state(document: dict[str, Any]) -> TunnelState:
    return TunnelState(
        clients=tuple(TunnelClient(**client) for client in document["clients"]),
        channels=tuple(_channel(**channel) for channel in document["channels"]),
        stream_id=document["stream_id"],
        next_shard=document["next_shard"],
    )


def _channel(status: int, parents: list[str], position: dict[str, Any], **rest: Any) -> Channel:
    return Channel(
        **rest, status=ChannelStatus(status), parents=tuple(parents), position=ChannelPosition(**position)
    )
