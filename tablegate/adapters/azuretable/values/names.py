"""Conversion of attribute names to Azure property names and back.

Azure accepts names in the form of C# identifiers. Other dialects have no such rule. A name that is invalid here
(`my-attr`, `1st`), or equal to a system name (`PartitionKey`, `odata.etag`), is escaped. Each such character becomes
`_xHHHH_` with its hexadecimal code point, as in .NET's XmlConvert.EncodeName for XML:

    my-attr -> my_x002D_attr      1st -> _x0031_st      Timestamp -> _x0054_imestamp

Both directions are total and each other's inverse for all names: see tests/adapters/azuretable/values/test_names.py.
"""

from __future__ import annotations

import re
from functools import lru_cache

SYSTEM_NAMES = frozenset({"PartitionKey", "RowKey", "Timestamp"})

_ESCAPE = re.compile(r"_x([0-9A-F]{4}|[0-9A-F]{8})_")
# Followed by an escape, which begins with "_", this would be parsed as an escape.
_BEGINNING = re.compile(r"_x[0-9A-F]{4}")


@lru_cache(maxsize=8192)
def spelled(attribute: str) -> str:
    """Return the Azure property name of an attribute."""
    if not _is_plain(attribute):
        return _escaped(attribute)
    inner = _unescaped(attribute)
    if (
        inner != attribute and spelled(inner) == attribute
    ):  # it would be parsed as the name of another attribute
        return _escaped(attribute)
    return attribute


@lru_cache(maxsize=8192)
def unspelled(name: str) -> str:
    """Return the attribute of an Azure property name."""
    if "_x" not in name:
        return name
    attribute = _unescaped(name)
    return attribute if attribute != name and spelled(attribute) == name else name


def _is_plain(attribute: str) -> bool:
    return is_legal(attribute) and attribute not in SYSTEM_NAMES


def is_legal(name: str) -> bool:
    """Return True for a valid property name: a C# identifier (letters, digits, underscores, no digit first)."""
    return name.isidentifier()


def _escaped(attribute: str) -> str:
    if not attribute:
        return "_x_"  # the empty name, since no escape lacks digits
    if attribute in SYSTEM_NAMES:
        return _escape(attribute[0]) + attribute[1:]
    parts = []
    for at, character in enumerate(attribute):
        if character == "_" and _BEGINNING.match(attribute, at):
            parts.append(_escape("_"))
        elif character.isidentifier() or (at and ("a" + character).isidentifier()):
            parts.append(character)
        else:
            parts.append(_escape(character))
    spelling = "".join(parts)
    return spelling if spelling != attribute else _escape(attribute[0]) + attribute[1:]


def _escape(character: str) -> str:
    code = ord(character)
    return f"_x{code:04X}_" if code <= 0xFFFF else f"_x{code:08X}_"


def _unescaped(name: str) -> str:
    if name == "_x_":
        return ""
    return _ESCAPE.sub(_character, name)


def _character(match: re.Match[str]) -> str:
    code = int(match.group(1), 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else match.group(0)
