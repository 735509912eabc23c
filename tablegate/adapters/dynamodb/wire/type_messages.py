"""The service's texts about JSON values of the wrong type (SerializationException).

Source: dynalite validations/index.js, captured from the service.
"""

from __future__ import annotations

from typing import Any

_MODEL = "com.amazonaws.dynamodb.v20120810."
_NO_CLASS = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class "
    "(sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base "
    "of loader 'bootstrap')"
)
_STRUCTURE_FOUND = "Start of structure or map found where not expected"


def json_type(kind: str, data: Any, java: str = "", nested: bool = False) -> str:
    """Return the text of the service's deserializer for a JSON value of the wrong type.

    `kind`: String, Blob, Boolean, Integer, Long, Double, List, Map or structure. `java`: the class of a
    structure or of a map's values. `nested`: the member is inside a list or map.
    """
    if kind in _SCALARS:
        return _scalar_type(kind, data)
    if isinstance(data, dict):
        return _STRUCTURE_FOUND
    if not isinstance(data, list):
        if nested:
            return "Unexpected value type in payload" if kind == "structure" else _NO_CLASS
        return "Unexpected field type"
    if kind == "structure":
        return f"Unrecognized collection type class {_MODEL}{java}"
    member = java if "." in java else _MODEL + java
    return f"Unrecognized collection type java.util.Map<java.lang.String, {member}>"


_SCALARS = frozenset({"String", "Blob", "Boolean", "Short", "Integer", "Long", "Double"})


def _scalar_type(kind: str, data: Any) -> str:
    if isinstance(data, dict):
        return _STRUCTURE_FOUND
    if isinstance(data, list):
        return f"Unrecognized collection type class java.{'nio.ByteBuffer' if kind == 'Blob' else 'lang.' + kind}"
    if kind == "Blob":
        return "only base-64-encoded strings are convertible to bytes"
    if isinstance(data, str):
        return (
            "Unexpected token received from parser"
            if kind == "Boolean"
            else f"STRING_VALUE cannot be converted to {kind}"
        )
    if isinstance(data, bool):
        return f"{'TRUE' if data else 'FALSE'}_VALUE cannot be converted to {kind}"
    number_kind = "NUMBER" if isinstance(data, int) or data.is_integer() else "DECIMAL"
    return f"{number_kind}_VALUE cannot be converted to {kind}"
