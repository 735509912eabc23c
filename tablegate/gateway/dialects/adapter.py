"""The objects that an adapter exports, its table of operations, and the adapters of the settings.

No other module under gateway/ imports adapters. A server imports `adapters/NAME/detection.py` at its start, and `dialect.py`
at the first request of the dialect. The operations of a capability are imported when a request first names one of them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from tablegate.gateway.configuration.settings import BadSetting, Settings
from tablegate.gateway.dialects.dialect import DescribeTable, Detection, Dialect, Gateway, UnloadedDialect
from tablegate.gateway.model.tables.tables import Table

if TYPE_CHECKING:
    from tablegate.gateway.dialects.administration_forms import Describe, Form, OperationRequest, Section
    from tablegate.gateway.engine.engine import Engine
    from tablegate.gateway.model.authorization.authorizations import Authorization
    from tablegate.gateway.model.authorization.permissions import Purpose
    from tablegate.gateway.model.commands.row_search import Endpoint, RowSearch, StatementPage
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
    - `write_of`: returns the write that puts a row with these attributes in place of an old one, or of None.
      It checks the limits of the service. The number is the current time in milliseconds. Raises ValueError.
    - `request_code`: returns a search as code of SDKs for a server: name of the SDK -> code. Raises NotExpressible.
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
    request_code: Callable[[RowSearch, Endpoint], dict[str, str]]
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
    register_views(gateway.engine)
    found: list[Dialect | UnloadedDialect] = []
    for detection in _detections(gateway.settings.dialects):
        unloaded = UnloadedDialect(detection, partial(_new_dialect, detection.name, gateway))
        found.append(unloaded.load() if detection.loads_at_start(gateway.settings) else unloaded)
    return found


def check_dialects(settings: Settings) -> None:
    """Raise BadSetting if a dialect of the settings does not exist."""
    _detections(settings.dialects)


def table_describers(settings: Settings) -> dict[str, DescribeTable]:
    """Return dialect -> the function that describes its tables."""
    return {name: adapter.listed for name, adapter in sorted(adapters(settings).items())}


def register_views(engine: Engine) -> None:
    """Register the views of all adapters on the columns of their indexes, also of those that the settings leave out.

    Their tables are in the same database, and each write adds the entries of all indexes.
    """
    for detection in _detections(_installed()):
        engine.register_view(detection.name, detection.index_view)


def console_parts(settings: Settings) -> dict[str, ConsolePart]:
    """Return dialect -> its part in the console, for dialects that have one."""
    return {name: adapter.console() for name, adapter in adapters(settings).items() if adapter.console}


def _new_dialect(name: str, gateway: Gateway) -> Dialect:
    return _adapter(name).dialect(gateway)


def _adapter(name: str) -> Adapter:
    adapter: Adapter = _module_of(name, "dialect").ADAPTER
    return adapter


def _detections(names: Iterable[str]) -> list[type[Detection]]:
    return [_module_of(name, "detection").DETECTION for name in dict.fromkeys(names)]


def _module_of(name: str, part: str) -> ModuleType:
    """Return a module of an adapter. Raises BadSetting if there is no such adapter."""
    module = f"tablegate.adapters.{name}.{part}"
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        names = ", ".join(_installed())
        raise BadSetting(f"{{}}: there is no adapter {name}. Adapters: {names}", "dialects") from None


def _installed() -> list[str]:
    folder = importlib.import_module("tablegate.adapters").__path__
    return [module.name for module in pkgutil.iter_modules(folder) if module.ispkg]


class _Operation(Protocol):
    @property
    def may_block(self) -> bool: ...


OperationT = TypeVar("OperationT", bound=_Operation)


class OperationTable(Mapping[str, OperationT], Generic[OperationT]):
    """The operations of a dialect, by name.

    - `common`: the operations that are always imported.
    - `groups`: module -> the names of the operations in its `OPERATIONS`. A look-up of one of them imports the module. So
      does a look at all operations. They replace common operations of the same names.
    - `extensions`: module of a capability -> the module in `groups` that it extends. They are imported together.
    """

    def __init__(
        self,
        common: Mapping[str, OperationT],
        groups: Mapping[str, tuple[str, ...]],
        extensions: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.groups = groups
        self._extensions = extensions
        self._modules = {name: module for module, names in groups.items() for name in names}
        self.loaded = {name: row for name, row in common.items() if name not in self._modules}
        """The operations whose modules are imported. Requests look here first, as a look-up in a dict calls no function."""
        self.blocking = {*self._modules, *(name for name, row in common.items() if row.may_block)}
        """The operations that may block: an import also does (Dialect.blocking_operations)."""

    def __getitem__(self, name: str) -> OperationT:
        if name not in self.loaded:
            self._load(self._modules[name])
        return self.loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self.loaded or name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.loaded, *self._modules)))

    def __len__(self) -> int:
        return len({*self.loaded, *self._modules})

    def _load(self, module: str) -> None:
        for extension, extended in self._extensions.items():
            if extended == module:
                importlib.import_module(extension)
        group: Mapping[str, OperationT] = importlib.import_module(module).OPERATIONS
        self.loaded.update(group)
        self.blocking.difference_update(name for name, row in group.items() if not row.may_block)
