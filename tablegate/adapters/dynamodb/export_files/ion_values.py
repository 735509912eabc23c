"""Conversion of values of Amazon's Ion library to DynamoDB's wire values.

Importing it needs amazon-ion (`tablegate[ion]`).

Structs, lists, strings, numbers, blobs, booleans, null and the annotations of sets are values of DynamoDB. Timestamps,
symbols, clobs and s-expressions are not, and are rejected.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from amazon.ion.core import IonType
from amazon.ion.exceptions import IonException
from amazon.ion.simple_types import IonPyNull
from amazon.ion.simpleion import IonPyValueModel, loads

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.gateway.model.values.values import number_of_double

# Annotation -> tag of the set, tag of its members
_SETS = {"$dynamodb_SS": ("SS", "S"), "$dynamodb_NS": ("NS", "N"), "$dynamodb_BS": ("BS", "B")}
_TEXT_BYTES_MIN = 1 << 12
_DEEPEST = 64  # far more than an item may have, to bound recursion


def read(text: str) -> dict[str, Any]:
    """Return the attribute value of a text. Raises UnreadableFile."""
    try:
        data = text.encode()
        # The default limit of the C extension for the length of a text is much smaller than an item.
        value = loads(
            data,
            value_model=IonPyValueModel.MAY_BE_BARE,
            text_buffer_size_limit=max(_TEXT_BYTES_MIN, len(data)),
        )
    except (IonException, ValueError) as error:
        raise UnreadableFile(f"not Ion: {error}") from None
    return _wire(value, 0)


def _wire(value: Any, depth: int) -> dict[str, Any]:
    """Return the attribute value of an Ion value. Plain Python values have no annotations and no `ion_type`."""
    if depth > _DEEPEST:
        raise UnreadableFile("Ion is nested too deep")
    if getattr(value, "ion_annotations", ()):
        return _set(value, depth)
    kind = getattr(value, "ion_type", None)
    match value:
        case str():
            return {"S": value}
        case bool():
            return {"BOOL": value}
        case int() | Decimal():
            return {"N": str(value)}
        case float() if math.isfinite(value):
            return {"N": str(number_of_double(value))}
        case None | IonPyNull():
            return {"NULL": True}
        case bytes() if kind is not IonType.CLOB:
            return {"B": b64encode(value).decode()}
        case list() if kind is not IonType.SEXP:
            return {"L": [_wire(element, depth + 1) for element in value]}
        case Mapping():
            return {"M": _members(value, depth)}
    raise UnreadableFile("a value that DynamoDB has not")


def _members(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, member in value.items():
        if name in members:
            raise UnreadableFile(f"the field {name!r} twice")
        if not isinstance(name, str):
            raise UnreadableFile("a field without a name")
        members[name] = _wire(member, depth + 1)
    return members


def _set(value: Any, depth: int) -> dict[str, Any]:
    [annotation, *others] = [token.text for token in value.ion_annotations]
    tag, member_tag = _SETS.get(annotation, ("", ""))
    if not tag or others or not isinstance(value, list):
        raise UnreadableFile(f"the annotation {annotation} of no set")
    elements = [_wire(element, depth + 1) for element in value]
    if any(member_tag not in element for element in elements):
        raise UnreadableFile(f"a member that a {tag} cannot have")
    return {tag: [element[member_tag] for element in elements]}
