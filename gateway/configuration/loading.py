"""Loading of settings: flags > environment (`TABLEGATE_*`) > a TOML file > the default."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tablegate.gateway.configuration.checks import checked
from tablegate.gateway.configuration.settings import SETTINGS, BadSetting, Settings
from tablegate.gateway.configuration.values import converted

ENVIRONMENT_PREFIX = "TABLEGATE_"


def load(
    flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None
) -> Settings:  # fmt: skip
    """Return the settings. Raises BadSetting.

    A flag that is None was not given. The file is `file`, else TABLEGATE_CONFIG, else none.
    """
    values: dict[str, Any] = {}
    config = file or (Path(environment["TABLEGATE_CONFIG"]) if environment.get("TABLEGATE_CONFIG") else None)
    if config is not None:
        values |= {name: converted(name, value, f"{config}: ") for name, value in _read_file(config).items()}
    for name in SETTINGS:
        text = environment.get(ENVIRONMENT_PREFIX + name.upper())
        if text:
            values[name] = converted(name, text, ENVIRONMENT_PREFIX)
    values |= {name: converted(name, value, "--") for name, value in flags.items() if value is not None}
    return checked(values)


def _read_file(path: Path) -> dict[str, Any]:
    import tomllib  # slow to import, and rarely needed

    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise BadSetting(f"cannot read {path}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"{path} is not TOML: {error}") from None
