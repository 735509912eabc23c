"""Reachability of a server's address from other machines."""

from __future__ import annotations

import ipaddress
import socket

from tablegate.gateway.configuration.settings import Settings


def is_exposed(settings: Settings) -> bool:
    """Return True if auth `dev` is reachable from other machines and --insecure is not set."""
    return settings.auth == "dev" and not settings.insecure and not is_loopback(settings.host)


def is_loopback(host: str) -> bool:
    """Return True if an address or host name is reachable from this machine only. Names are resolved."""
    try:
        addresses = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return all(is_loopback_address(address) for address in addresses)


def is_loopback_address(text: str) -> bool:
    """Return True if a text is a loopback address. Names are not resolved."""
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_loopback
    except ValueError:
        return False
