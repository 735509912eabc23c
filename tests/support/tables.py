"""Tables of inputs that one case checks row by row.

A case of pytest costs some milliseconds. That is more than a row of a pure function costs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def each_row(names: str, rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator as `pytest.mark.parametrize` does, for one case that checks all rows.

    The fixtures of the case are made once for all rows. All rows are checked, and the failure names each wrong one.
    `names`: the parameters of a row, separated by commas. A row is a tuple, or a value if there is one name.
    """
    columns = [name.strip() for name in names.split(",")]
    listed = list(rows)
    assert listed, "a table without rows checks nothing"

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(check)
        def check_all(**fixtures: Any) -> None:
            wrong = []
            for row in listed:
                values = row if len(columns) > 1 else (row,)
                try:
                    check(**dict(zip(columns, values, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    wrong.append(f"{values!r:.500}: {type(error).__name__}: {error}")
            assert not wrong, f"{len(wrong)} rows are wrong:\n" + "\n".join(wrong)

        signature = inspect.signature(check)
        kept = [each for name, each in signature.parameters.items() if name not in columns]
        check_all.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return check_all

    return decorate
