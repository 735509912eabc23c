"""Loading of settings. Flags override the environment (`TABLEGATE_*`), which overrides a TOML file.

A deprecated name works in each source. A warning on standard error names the new one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tablegate.gateway.configuration.checks import checked
from tablegate.gateway.configuration.settings import FORMER_NAMES, SETTINGS, BadSetting, Settings
from tablegate.gateway.configuration.values import converted

ENVIRONMENT_PREFIX = "TABLEGATE_"


def load(
    flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None
) -> Settings:  # fmt: skip
    """Return the settings. Raises BadSetting.

    A flag with the value None was not given. `file` overrides TABLEGATE_CONFIG.
    """
    values: dict[str, Any] = {}
    config = file or (Path(environment["TABLEGATE_CONFIG"]) if environment.get("TABLEGATE_CONFIG") else None)
    if config is not None:
        in_file = _with_current_names(_read_file(config), str, f"{config}: ")
        values |= {name: converted(name, value, f"{config}: ") for name, value in in_file.items()}
    texts = {name: environment.get(_variable(name)) for name in (*SETTINGS, *FORMER_NAMES)}
    in_environment = _with_current_names({name: text for name, text in texts.items() if text}, _variable)
    values |= {name: converted(name, text, ENVIRONMENT_PREFIX) for name, text in in_environment.items()}
    given = _with_current_names({name: value for name, value in flags.items() if value is not None}, _flag)
    values |= {name: converted(name, value, "--") for name, value in given.items()}
    return checked(values)


def _variable(name: str) -> str:
    return ENVIRONMENT_PREFIX + name.upper()


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _with_current_names(
    given: Mapping[str, Any], spelling: Callable[[str], str], place: str = ""
) -> dict[str, Any]:
    """Return the values of one source by current names, and warn of deprecated ones.

    If both names are given, the value of the current one counts.
    """
    values = dict(given)
    for former, name in FORMER_NAMES.items():
        if former in values:
            value = values.pop(former)
            values.setdefault(name, value)
            print(
                f"warning: {place}{spelling(former)} is deprecated and will be removed in the next release."
                f" Use {spelling(name)}.",
                file=sys.stderr,
            )
    return values


def _read_file(path: Path) -> dict[str, Any]:
    import tomllib  # slow to import, and rarely needed

    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise BadSetting(f"cannot read {path}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"cannot read {path}: it is not valid TOML: {error}") from None
