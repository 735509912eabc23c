"""A server in the hand of a test: `Server`, what it is told (`ControlClient`), and a pytest plugin.

    with Server() as server:
        client = server.dynamodb_client()

Runs `tablegate serve` in a process of its own, which ends with this one. Nothing of the server is imported here.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tablegate.testing.control import ControlClient, ControlError
    from tablegate.testing.server import Server, ServerFailed

__all__ = ["ControlClient", "ControlError", "Server", "ServerFailed"]

_MODULES = {
    "ControlClient": "control",
    "ControlError": "control",
    "Server": "server",
    "ServerFailed": "server",
}


def __getattr__(name: str) -> Any:
    """What is imported from here, once it is: the plugin is loaded by every run of pytest, and mostly for nothing."""
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(importlib.import_module(f"tablegate.testing.{_MODULES[name]}"), name)
