"""Conversion of values from flags, the environment or a file to the type of their setting."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tablegate.gateway.configuration.settings import SETTINGS, BadSetting, Settings

_TYPES = typing.get_type_hints(Settings)


def convert(name: str, value: Any) -> Any:
    """Return a value convert to the type of its setting. Raises BadSetting."""
    field = SETTINGS[name]
    try:
        kind = _plain_type(name)
        result = _read_names(value, field.metadata["separator"]) if kind is tuple else _READERS[kind](value)
    except (ValueError, TypeError, KeyError):
        raise BadSetting(f"{{}}: {value!r} is not {_NAMES[_plain_type(name)]}", name) from None
    choices = field.metadata["choices"]
    if choices and result not in choices:
        raise BadSetting(f"{{}}: {value!r} is not one of {', '.join(choices)}", name)
    if isinstance(result, int | float) and result < 0:
        raise BadSetting(f"{{}}: {value!r} must not be negative", name)
    maximum = field.metadata["most"]
    if maximum is not None and result > maximum:
        raise BadSetting(f"{{}}: {value!r} is more than the maximum {maximum}", name)
    return result


def _plain_type(name: str) -> type:
    """Return the type of a setting without `| None` and type arguments."""
    hint = _TYPES[name]
    if isinstance(hint, types.UnionType):
        hint = typing.get_args(hint)[0]
    plain: type = typing.get_origin(hint) or hint
    return plain


def _read_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    return {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }[str(value).lower()]


def _read_names(value: Any, separator: str) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    return tuple(name.strip() for text in texts for name in text.split(separator) if name.strip())


def _read_int(value: Any) -> int:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise TypeError(value)
    return int(value)


def _read_float(value: Any) -> float:
    if isinstance(value, bool) or not math.isfinite(float(value)):
        raise ValueError(value)
    return float(value)


_READERS: Mapping[type, Callable[[Any], Any]] = {
    str: str, int: _read_int, float: _read_float, bool: _read_bool,
    Path: lambda value: Path(value).expanduser(),
}  # fmt: skip
_NAMES: Mapping[type, str] = {
    str: "a text", int: "a whole number", float: "a number", bool: "yes or no", Path: "a path", tuple: "a list of names",
}  # fmt: skip
