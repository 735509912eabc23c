"""`dataclass`: that of the standard library, but made so that a program with many of them starts quickly.

`dataclasses.dataclass` writes the text of six methods and compiles each, half a millisecond a class, and a start makes 150
classes of which it uses a few. Here `__init__`, `__eq__` and `__hash__` have the same text, and are compiled when somebody looks
at them first; the other methods are closures, which need no compiler. What a class can do and says of itself is the same.

This is a fast path (fast_paths.py): switched off, the standard library's takes its place. Type checkers see that one alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NamedTuple

from gateway.model.fast_paths import choose

_set = object.__setattr__


def fast_dataclass(
    cls: type | None = None,
    /,
    *,
    init: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
) -> Any:
    """The class as a dataclass, or the decorator that makes it one. Takes the options that are used here."""

    def made_of(plain: type) -> type:
        plain.__doc__ = plain.__doc__ or plain.__name__  # or else the library would work out a signature
        defined = {*vars(plain)}
        takes_hash = "__hash__" not in defined or (plain.__hash__ is None and "__eq__" in defined)
        made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(
            plain
        )
        methods: dict[str, Any] = {"__repr__": _repr_of(made)}
        if init:
            methods["__init__"] = _LateMethod(made, "__init__", lambda: _init_of(made, frozen))
        if eq:
            methods["__eq__"] = _LateMethod(made, "__eq__", lambda: _eq_of(made))
        if frozen:
            methods |= _frozen(made)
        for name in methods.keys() - defined:
            setattr(made, name, methods[name])
        if eq and takes_hash:
            made.__hash__ = _LateMethod(made, "__hash__", lambda: _hash_of(made)) if frozen else None
        return made

    return made_of if cls is None else made_of(cls)


class _LateMethod:
    """Stands for a method of a class until somebody looks at it: then it is compiled and put in this one's place."""

    def __init__(self, made: type, name: str, written: Callable[[], _Written]) -> None:
        self._made = made
        self._name = name
        self._written = written

    def __get__(self, instance: object | None, owner: type) -> Any:
        parameters, lines, scope = self._written()
        text = f"def {self._name}({', '.join(parameters)}):\n  " + "\n  ".join(lines)
        exec(compile(text, f"<{self._name} of {self._made.__qualname__}>", "exec"), scope)
        method = scope[self._name]
        method.__qualname__ = f"{self._made.__qualname__}.{self._name}"
        setattr(self._made, self._name, method)
        return method if instance is None else method.__get__(instance, owner)


class _Written(NamedTuple):
    """A method's text, and what the names in it stand for."""

    parameters: list[str]
    lines: list[str]
    scope: dict[str, Any]


def _init_of(made: type, is_frozen: bool) -> _Written:
    """A parameter for each field, and a line that keeps it."""
    scope: dict[str, Any] = {"_set": _set, "MISSING": MISSING}
    places: list[str] = []
    keywords: list[str] = []
    lines: list[str] = []
    for field in _fields(made):
        name = value = parameter = field.name
        if field.default is not MISSING:
            scope[f"default_{name}"] = field.default
            parameter = f"{name}=default_{name}"
        elif field.default_factory is not MISSING:
            scope[f"make_{name}"] = field.default_factory
            parameter, value = f"{name}=MISSING", f"make_{name}() if {name} is MISSING else {name}"
        if field.init:
            (keywords if field.kw_only else places).append(parameter)
        elif field.default_factory is not MISSING:
            value = f"make_{name}()"
        elif field.default is not MISSING and "__slots__" in vars(made):
            value = f"default_{name}"
        else:
            continue  # __post_init__ gives it, or the class has it
        lines.append(f"_set(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    return _Written(["self", *places, *(["*", *keywords] if keywords else [])], lines or ["pass"], scope)


def _eq_of(made: type) -> _Written:
    """Instances of one class are equal if their fields are, in order."""
    names = [field.name for field in _fields(made) if field.compare]
    lines = [
        "if other.__class__ is self.__class__:",
        f"  return {_tuple('self', names)} == {_tuple('other', names)}",
        "return NotImplemented",
    ]
    return _Written(["self", "other"], lines, {})


def _hash_of(made: type) -> _Written:
    fields = _fields(made)
    names = [each.name for each in fields if (each.compare if each.hash is None else each.hash)]
    return _Written(["self"], [f"return hash({_tuple('self', names)})"], {})


def _tuple(thing: str, names: list[str]) -> str:
    return f"({''.join(f'{thing}.{name}, ' for name in names)})"


def _fields(made: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(made)


def _repr_of(made: type) -> Callable[[Any], str]:
    names = [field.name for field in _fields(made) if field.repr]

    @recursive_repr()
    def shown(self: Any) -> str:
        members = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({members})"

    return shown


def _frozen(made: type) -> dict[str, Any]:
    """Nothing is assigned or deleted. A copy is made of the fields' values."""
    names = [field.name for field in _fields(made)]

    def refuse_value(self: Any, name: str, value: Any) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        _set(self, name, value)

    def refuse_deletion(self: Any, name: str) -> None:
        if type(self) is made or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    def state(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def restore(self: Any, values: list[Any]) -> None:
        for name, value in zip(names, values, strict=True):
            _set(self, name, value)

    return {
        "__setattr__": refuse_value,
        "__delattr__": refuse_deletion,
        "__getstate__": state,
        "__setstate__": restore,
    }


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = choose(fast_dataclass, dataclasses.dataclass)
