"""Adapters by their names in the settings, and their functions that display tables and rows.

An adapter is a folder of adapters/. Its `entry.py` has `create(gateway)`, which creates the dialect, and `listed(table)`. No
other module under gateway/ imports adapters.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.dialect import Dialect, Gateway
from tablegate.gateway.model.tables.indexes import IndexView
from tablegate.gateway.model.tables.tables import Table

if TYPE_CHECKING:
    from tablegate.gateway.model.commands.writes import Write
    from tablegate.gateway.model.values.rows import Row


def _module(name: str, part: str) -> ModuleType:
    """Return a module of an adapter. Raises BadSetting if there is no such adapter."""
    module = f"tablegate.adapters.{name}.{part}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise BadSetting(
            f"{{}}: there is no adapter {name}. Adapters: {', '.join(_adapters())}", "dialects"
        ) from None


def _adapters() -> list[str]:
    package = importlib.import_module("tablegate.adapters")
    return [module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg]


def create_dialect(name: str, gateway: Gateway) -> Dialect:
    """Create the dialect of an adapter. Raises BadSetting if there is no such adapter."""
    dialect: Dialect = _module(name, "entry").create(gateway)
    return dialect


def index_views(settings: Settings) -> dict[str, IndexView]:
    """Return dialect -> the function that reads the key columns of its indexes, for dialects that have one."""
    found = {name: getattr(_module(name, "values.keys"), "index_view", None) for name in settings.dialects}
    return {name: view for name, view in found.items() if view is not None}


DescribeTable = Callable[[Table], tuple[str, str, str]]
"""Returns the name, key and address of a table as a dialect's clients know them (`listed` in adapters/*/entry.py)."""


def table_describers(settings: Settings) -> dict[str, DescribeTable]:
    """Return dialect -> the function that describes its tables."""
    return {name: _module(name, "entry").listed for name in sorted(settings.dialects)}


class RowDisplay(NamedTuple):
    """The display functions of a dialect (adapters/*/display.py).

    form: the name of its form.
    shown_row: returns a row as a JSON document.
    snippet: returns lines of an SDK that read a table of a server at a URL.
    put_of: returns the write that puts the row of such a document. Raises ValueError. None if the form cannot be written.
    """

    form: str
    shown_row: Callable[[Table, Row], Any]
    snippet: Callable[[Table, str], str]
    put_of: Callable[[Table, Any], Write] | None


def displays(settings: Settings) -> dict[str, RowDisplay]:
    """Return dialect -> the functions that show its rows."""
    made = {}
    for name in settings.dialects:
        module = _module(name, "display")
        made[name] = RowDisplay(
            module.FORM, module.shown_row, module.snippet, getattr(module, "put_of", None)
        )
    return made
