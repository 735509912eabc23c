"""The type of a command of the engine, with the type of its outcome."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Command(Protocol[R_co]):
    """A command with an outcome of type R.

    For the type checker only: no class inherits from it, and `outcome` is never called. A named tuple cannot have a
    generic base, so it declares the method itself. Every other command inherits the method from `BaseCommand`.
    """

    def outcome(self) -> R_co:
        """Never called. Its return type is the type of the outcome."""
        ...


class BaseCommand(Generic[R]):
    """Base class of commands that are dataclasses: a Command[R]."""

    __slots__ = ()

    def outcome(self) -> R:
        """Never called. Its return type is the type of the outcome."""
        raise NotImplementedError
