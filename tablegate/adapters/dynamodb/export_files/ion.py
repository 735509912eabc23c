"""Conversion of Amazon Ion text, in the form of exports, to wire values and back.

amazon-ion parses it (ion_values.py), if it is installed. Writing needs no library. Numbers keep their digits and are
spelled as in the service's exports (`103.`).

Source: https://amazon-ion.github.io/ion-docs/docs/spec.html; "Data formats" in the guide to exports.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.gateway.model.errors import NotInstalled

Wire = Mapping[str, Any]

VERSION_MARKER = "$ion_1_0"
_SETS = {"SS": "$dynamodb_SS", "NS": "$dynamodb_NS", "BS": "$dynamodb_BS"}
_MEMBER_TAGS = {"SS": "S", "NS": "N", "BS": "B"}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset({"null", "true", "false", "nan"})


def reader() -> Callable[[str], dict[str, Any]]:
    """Return the function that reads Ion. Raises NotInstalled."""
    try:
        from tablegate.adapters.dynamodb.export_files.ion_values import read
    except ImportError:
        raise NotInstalled("ion") from None
    return read


def parse(text: str) -> dict[str, Any]:
    """Return the only struct of a line as a wire map: name -> attribute value. Raises UnreadableFile."""
    try:
        value = reader()(text)
    except NotInstalled:
        raise UnreadableFile("Ion needs amazon-ion: pip install 'tablegate[ion]'") from None
    if "M" not in value:
        raise UnreadableFile("no Ion struct: expected one in each line")
    return dict(value["M"])


def text_of(members: Wire) -> str:
    """Return the struct of attribute values by name."""
    return "{" + ",".join([f"{_name(name)}:{_value_text(member)}" for name, member in members.items()]) + "}"


def _name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name not in _KEYWORDS:
        return name
    return "'" + _quoted(name)[1:-1].replace("'", "\\'") + "'"


def _quoted(text: str) -> str:
    """Return the text with JSON's escapes, which are valid in Ion."""
    return orjson.dumps(text).decode()


def _value_text(member: Wire) -> str:
    [(tag, data)] = member.items()
    match tag:
        case "S":
            return _quoted(data)
        case "N":
            return data if "." in data else data + "."
        case "B":
            return "{{" + data + "}}"
        case "BOOL":
            return "true" if data else "false"
        case "NULL":
            return "null"
        case "L":
            return "[" + ",".join(map(_value_text, data)) + "]"
        case "M":
            return text_of(data)
    elements = ",".join([_value_text({_MEMBER_TAGS[tag]: element}) for element in data])
    return f"{_SETS[tag]}::[{elements}]"
