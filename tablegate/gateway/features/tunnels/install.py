"""The installation of tunnels."""

from __future__ import annotations

from functools import partial

from tablegate.gateway.engine.engine import Engine, EngineOptions
from tablegate.gateway.engine.scheduler import MAINTENANCE_PERIOD_S, Work
from tablegate.gateway.engine.streams.follower_reads import oldest_of_kind
from tablegate.gateway.features.tunnels import tunnel_engine
from tablegate.gateway.features.tunnels.tunnel_engine import TUNNEL


def install(engine: Engine, options: EngineOptions) -> None:
    """Add tunnels to an engine."""
    engine.register(tunnel_engine.COMMANDS)
    engine.add_table_hook(tunnel_engine.TunnelHook())
    batch, oldest_ms = (
        partial(tunnel_engine.expire, engine.background.store),
        partial(oldest_of_kind, kind=TUNNEL),
    )
    engine.background.add(Work(TUNNEL, batch, period_s=MAINTENANCE_PERIOD_S, oldest_ms=oldest_ms))
