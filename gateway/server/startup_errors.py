"""Errors at the start of a server. The command line prints them."""

from __future__ import annotations


class StartupError(Exception):
    """The server cannot start with these settings. The text says what to do."""


class PortTaken(StartupError):
    """A port that another process listens on."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"cannot listen on {host} port {port}: {reason}")
        self.host, self.port = host, port
