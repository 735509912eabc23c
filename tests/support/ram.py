"""The RAM actions of Table Store's operations."""

from __future__ import annotations

_OF_TUNNELS = {
    "tunnel/create": "CreateTunnel", "tunnel/delete": "DeleteTunnel", "tunnel/list": "ListTunnel",
    "tunnel/describe": "DescribeTunnel", "tunnel/getrpo": "DescribeTunnel",
}  # fmt: skip


def action_of(operation: str) -> str:
    """Return the action of an operation: its name, except for tunnels and SQL ("Custom RAM policy", Tablestore)."""
    if operation == "SQLQuery":
        return "SQL_Select"
    return _OF_TUNNELS.get(operation, "ConsumeTunnel") if operation.startswith("tunnel/") else operation
