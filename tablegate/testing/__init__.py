"""A server for tests: `Server`, its control API (`ControlClient`), `mock_aws`, and a pytest plugin.

    with Server() as server:
        client = server.dynamodb_client()

Runs `tablegate serve` in a child process that ends with this one. Nothing of the server is imported here.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tablegate.testing.control import ControlClient, ControlError
    from tablegate.testing.mock import mock_aws
    from tablegate.testing.server import Server, ServerFailed

__all__ = ["ControlClient", "ControlError", "Server", "ServerFailed", "mock_aws"]

_MODULES = {
    "ControlClient": "control",
    "ControlError": "control",
    "Server": "server",
    "ServerFailed": "server",
    "mock_aws": "mock",
}


def __getattr__(name: str) -> Any:
    """Import a name at its first use. Every run of pytest loads the plugin, and most runs do not use it."""
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(importlib.import_module(f"tablegate.testing.{_MODULES[name]}"), name)
