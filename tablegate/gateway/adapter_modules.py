"""Adapters by their names in the settings, and their functions that display tables and rows.

An adapter is a folder of adapters/. Its `entry.py` has `create(gateway)`, which creates the dialect, and `listed(table)`. No
other module under gateway/ imports adapters.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.dialect import Dialect, Gateway
from tablegate.gateway.model.tables.indexes import IndexView
from tablegate.gateway.model.tables.tables import Table

if TYPE_CHECKING:
    from tablegate.gateway.administration_forms import Describe, Form, OperationRequest, Section
    from tablegate.gateway.exchanges import Steps
    from tablegate.gateway.model.authorization.authorizations import Authorization
    from tablegate.gateway.model.authorization.permissions import Purpose
    from tablegate.gateway.model.commands.commands import Exchange
    from tablegate.gateway.model.commands.row_search import RowSearch, StatementPage
    from tablegate.gateway.model.commands.writes import Write
    from tablegate.gateway.model.expressions.predicates import View
    from tablegate.gateway.model.search.index_search import IndexSearch
    from tablegate.gateway.model.values.rows import Row
    from tablegate.gateway.model.values.values import Kind, Value

    RunStatement = Callable[[Gateway, str, Authorization | None, str, str], Exchange[StatementPage]]


def _entry(name: str) -> ModuleType:
    """Return the entry of an adapter. Raises BadSetting if there is no such adapter."""
    entry = _module(name, "entry")
    if entry is None:
        raise BadSetting(f"{{}}: there is no adapter {name}. Adapters: {', '.join(_adapters())}", "dialects")
    return entry


def _modules(settings: Settings, part: str) -> dict[str, ModuleType]:
    """Return dialect -> this module of its adapter, for adapters that have it."""
    modules = {name: _module(name, part) for name in settings.dialects}
    return {name: module for name, module in modules.items() if module is not None}


def _module(name: str, part: str) -> ModuleType | None:
    module = f"tablegate.adapters.{name}.{part}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        return None


def _adapters() -> list[str]:
    package = importlib.import_module("tablegate.adapters")
    return [module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg]


def create_dialect(name: str, gateway: Gateway) -> Dialect:
    """Create the dialect of an adapter. Raises BadSetting if there is no such adapter."""
    dialect: Dialect = _entry(name).create(gateway)
    return dialect


def index_views(settings: Settings) -> dict[str, IndexView]:
    """Return dialect -> the function that reads the key columns of its indexes, for dialects that have one."""
    modules = _modules(settings, "values.keys")
    return {name: module.index_view for name, module in modules.items() if hasattr(module, "index_view")}


DescribeTable = Callable[[Table], tuple[str, str, str]]
"""Returns the name, key and address of a table as a dialect's clients know them (`listed` in adapters/*/entry.py)."""


def table_describers(settings: Settings) -> dict[str, DescribeTable]:
    """Return dialect -> the function that describes its tables."""
    return {name: _entry(name).listed for name in sorted(settings.dialects)}


class RowDisplay(NamedTuple):
    """Rows and searches in the form of a dialect, for the console (adapters/*/display.py).

    - `form`: the name of its JSON form.
    - `type_names`: the names of its types. Only these kinds can be typed into forms.
    - `view`: the view of the dialect on stored values. It returns values of the kinds in `type_names`, and of NULL.
    - `is_own`: True if the dialect created the table.
    - `shown_row`: returns a row as a JSON document.
    - `document_of`: returns attributes as a JSON document that can be edited.
    - `values_of`: returns the attributes of such a document. Raises ValueError.
    - `write_of`: returns the write that puts a row with these attributes in place of an old one (None: there is none).
      It checks the limits of the service. The number is the current time in milliseconds. Raises ValueError.
    - `request_code`: returns a search of a server at a URL as code of SDKs: name of the SDK -> code. Raises
      NotExpressible.
    - `statement_of`: returns a search as a statement. Raises NotExpressible. None if the dialect has no statements.
    - `run_statement`: reads a page of a statement: (gateway, namespace, authorization, statement, token of the page or
      ""). Raises ValueError.
    - `search_code`: returns a search of a search index of a server at a URL as code of SDKs: name of the SDK -> code.
      None if the dialect has no search indexes.
    """

    form: str
    type_names: Mapping[Kind, str]
    view: View
    is_own: Callable[[Table], bool]
    shown_row: Callable[[Table, Row], Any]
    document_of: Callable[[Table, Mapping[str, Value]], Any]
    values_of: Callable[[Table, Any], dict[str, Value]]
    write_of: Callable[[Table, Mapping[str, Value], Row | None, int], Write]
    request_code: Callable[[RowSearch, str], dict[str, str]]
    statement_of: Callable[[RowSearch], str] | None = None
    run_statement: RunStatement | None = None
    search_code: Callable[[IndexSearch, str], dict[str, str]] | None = None


def displays(settings: Settings) -> dict[str, RowDisplay]:
    """Return dialect -> the functions that show its rows, for dialects that have them."""
    row_displays = {}
    for name, module in _modules(settings, "display").items():
        row_displays[name] = RowDisplay(
            module.FORM, module.TYPE_NAMES, module.view, module.is_own, module.shown_row, module.document_of,
            module.values_of, module.write_of, module.request_code,
            getattr(module, "statement_of", None), getattr(module, "run_statement", None),
            getattr(module, "search_code", None),
        )  # fmt: skip
    return row_displays


class DialectAdministration(NamedTuple):
    """The administration of tables by the console in the terms of a dialect (adapters/*/administration.py).

    title: the name of the service.
    default_namespace: the namespace of callers without a place, if namespaces are separate.
    forms: key -> form. `create` makes a table.
    purposes: operation -> the permissions that it needs.
    sections: returns the settings of a table.
    backups: returns the backups of a namespace. None if the dialect has no backups.
    steps: begins an operation. Raises any exception.
    answer_of: returns the answer of an operation as a JSON document.
    text_of: returns the service's text for an exception, None for an error of the server.
    """

    dialect: str
    title: str
    default_namespace: str
    forms: Mapping[str, Form]
    purposes: Mapping[str, Purpose]
    sections: Callable[[Table, Describe], list[Section]]
    backups: Callable[[Describe], Section | None] | None
    steps: Callable[[Gateway, OperationRequest], Steps[Any]]
    answer_of: Callable[[Any], Any]
    text_of: Callable[[Exception, str], str | None]


def administrations(settings: Settings) -> dict[str, DialectAdministration]:
    """Return dialect -> its administration, for dialects that have one."""
    dialect_administrations = {}
    for name, module in _modules(settings, "administration").items():
        dialect_administrations[name] = DialectAdministration(
            name, module.TITLE, module.DEFAULT_NAMESPACE, module.FORMS, module.PURPOSES, module.sections,
            getattr(module, "backups", None), module.steps, module.answer_of, module.text_of,
        )  # fmt: skip
    return dialect_administrations
