"""The table of a dialect's operations. Those of a capability are imported when a request first names one of them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar


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
