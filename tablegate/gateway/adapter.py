"""The objects that an adapter exports, and the adapters of the settings. No other module under gateway/ imports adapters.

A server imports `adapters/NAME/detection.py` at its start, and `dialect.py` at the first request of the dialect.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.dialect import DescribeTable, Detection, Dialect, Gateway, UnloadedDialect
from tablegate.gateway.model.tables.tables import Table

if TYPE_CHECKING:
    from tablegate.gateway.administration_forms import Describe, Form, OperationRequest, Section
    from tablegate.gateway.engine.engine import Engine
    from tablegate.gateway.model.authorization.authorizations import Authorization
    from tablegate.gateway.model.authorization.permissions import Purpose
    from tablegate.gateway.model.commands.row_search import RowSearch, StatementPage
    from tablegate.gateway.model.commands.writes import Write
    from tablegate.gateway.model.expressions.predicates import View
    from tablegate.gateway.model.values.rows import Row
    from tablegate.gateway.model.values.values import Kind, Value

    RunStatement = Callable[
        [Gateway, str, Authorization | None, str, str], Coroutine[Any, Any, StatementPage]
    ]


class RowDisplay(NamedTuple):
    """Rows and searches in the form of a dialect, for the console.

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


class DialectAdministration(NamedTuple):
    """The administration of tables by the console in the terms of a dialect.

    title: the name of the service.
    default_namespace: the namespace of callers without a place, if namespaces are separate.
    forms: key -> form. `create` makes a table.
    purposes: operation -> the permissions that it needs.
    sections: returns the settings of a table.
    execute: carries out an operation. Raises any exception.
    answer_of: returns the answer of an operation as a JSON document.
    text_of: returns the service's text for an exception, None for an error of the server.
    backups: returns the backups of a namespace. None if the dialect has no backups.
    """

    dialect: str
    title: str
    default_namespace: str
    forms: Mapping[str, Form]
    purposes: Mapping[str, Purpose]
    sections: Callable[[Table, Describe], list[Section]]
    execute: Callable[[Gateway, OperationRequest], Coroutine[Any, Any, Any]]
    answer_of: Callable[[Any], Any]
    text_of: Callable[[Exception, str], str | None]
    backups: Callable[[Describe], Section | None] | None = None


class ConsolePart(NamedTuple):
    """The part of a dialect in the console."""

    display: RowDisplay
    administration: DialectAdministration


class Adapter(NamedTuple):
    """All that the gateway needs of a dialect for its requests: `ADAPTER` of adapters/NAME/dialect.py.

    `console` imports and returns the part of the dialect in the console. None if there is none.
    """

    dialect: type[Dialect]
    listed: DescribeTable
    console: Callable[[], ConsolePart] | None = None


def adapters(settings: Settings) -> dict[str, Adapter]:
    """Return dialect -> its adapter, in the order of the settings. Raises BadSetting if there is no such adapter."""
    return {name: _adapter(name) for name in settings.dialects}


def dialects(gateway: Gateway) -> list[Dialect | UnloadedDialect]:
    """Return the dialects of the settings, in their order. Raises BadSetting.

    All views on columns of indexes are registered, because background work reads tables of all dialects.
    """
    register_views(gateway.engine, gateway.settings)
    found: list[Dialect | UnloadedDialect] = []
    for detection in _detections(gateway.settings):
        unloaded = UnloadedDialect(detection, partial(_new_dialect, detection.name, gateway))
        found.append(unloaded.load() if detection.loads_at_start(gateway.settings) else unloaded)
    return found


def table_describers(settings: Settings) -> dict[str, DescribeTable]:
    """Return dialect -> the function that describes its tables."""
    return {name: adapter.listed for name, adapter in sorted(adapters(settings).items())}


def register_views(engine: Engine, settings: Settings) -> None:
    """Register the views of all dialects on the columns of their indexes. Work without a server needs them too."""
    for detection in _detections(settings):
        engine.register_view(detection.name, detection.index_view)


def console_parts(settings: Settings) -> dict[str, ConsolePart]:
    """Return dialect -> its part in the console, for dialects that have one."""
    return {name: adapter.console() for name, adapter in adapters(settings).items() if adapter.console}


def _new_dialect(name: str, gateway: Gateway) -> Dialect:
    return _adapter(name).dialect(gateway)


def _adapter(name: str) -> Adapter:
    adapter: Adapter = _module_of(name, "dialect").ADAPTER
    return adapter


def _detections(settings: Settings) -> list[type[Detection]]:
    return [_module_of(name, "detection").DETECTION for name in settings.dialects]


def _module_of(name: str, part: str) -> ModuleType:
    """Return a module of an adapter. Raises BadSetting if there is no such adapter."""
    module = f"tablegate.adapters.{name}.{part}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        folder = importlib.import_module("tablegate.adapters").__path__
        names = ", ".join(found.name for found in pkgutil.iter_modules(folder) if found.ispkg)
        raise BadSetting(f"{{}}: there is no adapter {name}. Adapters: {names}", "dialects") from None
