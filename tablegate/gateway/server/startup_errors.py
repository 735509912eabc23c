"""Errors at the start of a server, which the command line prints."""

from __future__ import annotations


class StartupError(Exception):
    """The server cannot start with these settings. The text says how to correct them."""


class PortTaken(StartupError):
    """The server cannot listen on a port, usually because another process does. `flag` sets the port."""

    def __init__(self, host: str, port: int, reason: str, flag: str) -> None:
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        super().__init__(
            f"cannot listen on {address}: {reason}. Choose another address with --host or {flag}, "
            "or stop the process that uses it"
        )
        self.host, self.port = host, port
