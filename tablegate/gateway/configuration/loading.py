"""Loading of settings, and conversion of their values from texts.

Flags override the environment (`TABLEGATE_*`), which overrides a TOML file.
"""

from __future__ import annotations

import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from tablegate.gateway.configuration.checks import settings_of
from tablegate.gateway.configuration.secrets import UnreadableText, read_text
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


ENVIRONMENT_PREFIX = "TABLEGATE_"
# TABLEGATE_INHERITED is for the replacement of a worker. tablegate.testing sets TABLEGATE_URL for programs under test.
_OTHER_VARIABLES = frozenset(
    {"TABLEGATE_CONFIG", "TABLEGATE_FAST_PATHS", "TABLEGATE_INHERITED", "TABLEGATE_URL"}
)
# Variables of this prefix configure the tests of this project.
_TEST_PREFIX = "TABLEGATE_TEST_"
# Kubernetes sets variables for each Service with a name that begins with "tablegate" (kubernetes.io, "Environment variables").
_OF_KUBERNETES = re.compile(
    r"TABLEGATE_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT_\d+_(TCP|UDP|SCTP)(_.+)?)"
)
_KUBERNETES_PORT = re.compile(r"(tcp|udp|sctp)://")


class LoadedSettings(NamedTuple):
    """Settings and their sources.

    sources: name of a setting -> its name in its source, such as `--port` or `TABLEGATE_PORT`. Without those by default.
    """

    settings: Settings
    sources: Mapping[str, str]


def load(flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None) -> Settings:
    """Return the settings. Raises BadSetting. See load_with_sources."""
    return load_with_sources(flags, environment, file).settings


def load_with_sources(
    flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None
) -> LoadedSettings:
    """Return the settings and their sources. Raises BadSetting.

    A flag with the value None was not given. `file` overrides TABLEGATE_CONFIG.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}

    def add(source: Mapping[str, Any], spelling: Callable[[str], str]) -> None:
        for name, value in source.items():
            if name not in SETTINGS:
                similar = [spelling(each) for each in get_close_matches(name, SETTINGS, 1)]
                hint = f"Did you mean {similar[0]}? " if similar else ""
                raise BadSetting(
                    f"{spelling(name)}: there is no such setting. {hint}`tablegate config` lists all"
                )
            sources[name] = spelling(name)
            values[name] = convert(name, value)

    try:
        config = file or (
            Path(environment["TABLEGATE_CONFIG"]) if environment.get("TABLEGATE_CONFIG") else None
        )
        if config is not None:
            add(_read_file(config), f"{{}} in {config}".format)
        add(_from_environment(environment), _variable)
        add({name: value for name, value in flags.items() if value is not None}, flag_of)
        return LoadedSettings(settings_of(values), sources)
    except BadSetting as error:
        raise BadSetting(text_of(error, sources)) from None


def text_of(error: BadSetting, sources: Mapping[str, str]) -> str:
    """Return the text of an error with the names of settings as in their sources.

    Settings with their defaults are named as variables if the others in the text are, otherwise as flags.
    """
    names = [sources[name] for name in error.names if name in sources]
    of_default = _variable if names and names[0].startswith(ENVIRONMENT_PREFIX) else flag_of
    return error.spelled(lambda name: sources.get(name) or of_default(name))


def flag_of(name: str) -> str:
    """Return the flag of a setting ."""
    flag = SETTINGS[name].metadata["flag"] if name in SETTINGS else ""
    return "--" + (flag or name.replace("_", "-"))


def _variable(name: str) -> str:
    return ENVIRONMENT_PREFIX + name.upper()


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the environment, without the variables that Kubernetes sets for Services."""
    return {
        variable.removeprefix(ENVIRONMENT_PREFIX).lower(): text
        for variable, text in environment.items()
        if text
        and variable.startswith(ENVIRONMENT_PREFIX)
        and variable not in _OTHER_VARIABLES
        and not variable.startswith(_TEST_PREFIX)
        and not _OF_KUBERNETES.fullmatch(variable)
        and not (variable.endswith("PORT") and _KUBERNETES_PORT.match(text))
    }


def _read_file(path: Path) -> dict[str, Any]:
    import tomllib  # slow to import, and rarely needed

    try:
        return tomllib.loads(read_text(path))
    except UnreadableText as error:
        raise BadSetting(str(error)) from None
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"cannot read {path}: it is not valid TOML: {error}") from None
