"""The fields of the settings: default, meaning and details of each, as metadata of a dataclass."""

from __future__ import annotations

import dataclasses
from typing import Any


def setting(
    group: str,
    default: Any,
    meaning: str,
    choices: tuple[str, ...] = (),
    **details: Any,
) -> Any:
    """Return a field of Settings, which is also a flag of `serve`. `details`:

    - `separator`: separates the members of a list that is given as one text (default: a comma).
    - `flag`: the name of the flag, if it differs from that of the setting.
    - `value`: the placeholder of the value in help texts. Default: the last word of the setting's name.
    - `most`: the maximum of a number.
    """
    metadata = {
        "group": group, "meaning": meaning, "choices": choices,
        "separator": ",", "flag": "", "value": "", "most": None, **details,
    }  # fmt: skip
    return dataclasses.field(default=default, metadata=metadata, repr=default != "")
