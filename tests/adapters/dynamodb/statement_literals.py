"""Literals of PartiQL."""

from __future__ import annotations

from typing import Any


def literal(value: dict[str, Any]) -> str:
    """Return an attribute value of the wire as a literal. Bytes have none."""
    [(tag, data)] = value.items()
    match tag:
        case "S":
            return "'" + data.replace("'", "''") + "'"
        case "BOOL":
            return str(data).lower()
        case "NULL":
            return "null"
        case "L":
            return f"[{', '.join(map(literal, data))}]"
        case "M":
            members = (f"{literal({'S': name})}: {literal(member)}" for name, member in data.items())
            return "{" + ", ".join(members) + "}"
        case "SS" | "NS":
            return f"<<{', '.join(literal({tag[0]: member}) for member in data)}>>"
    return str(data)
