"""The base class of the commands of the engine, with everything that the core asks of a command.

The modules beside this one define the commands of the core. Capabilities define their own. `engine.run` takes a list of commands
and returns a list of the same length. It has the outcome of each command, or its GatewayError. Commands of one list are
independent of each other.

The engine's part of a capability registers the function that runs a command (gateway/capabilities.py).
"""

from __future__ import annotations

from collections.abc import Container, Generator, Iterable
from typing import Any, ClassVar, Generic, Self, TypeVar

from tablegate.gateway.model.authorization.accesses import Access, Path, on_table
from tablegate.gateway.model.authorization.conditions import ConditionKey, FactValues
from tablegate.gateway.model.authorization.permissions import ACCOUNT_PERMISSIONS, Permission, Purpose
from tablegate.gateway.model.authorization.quotas import NO_COST, Cost, TableLimit
from tablegate.gateway.model.errors import GatewayError
from tablegate.gateway.model.tables.tables import Table

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Command(Generic[R_co]):
    """A command with an outcome of type R, which `await command` returns in a handler (gateway/dialects/coroutines.py).

    Most commands are frozen dataclasses. Those that are created for each request or row derive from a named tuple with
    their fields, which is immutable too and three times as fast to create.
    """

    __slots__ = ()

    only_reads: ClassVar[bool] = False
    """True if it reads rows in one snapshot with the other reads of its list, and changes nothing."""
    is_sliced: ClassVar[bool] = False
    """True if it only reads and can take long, so that other work is done between slices of it."""
    may_be_old: bool = False
    """True for an eventually consistent read, which a replica may answer."""
    is_look_up: ClassVar[bool] = False
    """True if what it found is authorized after it has run (`found_paths`)."""
    permission: ClassVar[Permission] = Permission.ADMINISTER
    """The permission that it needs on its `table`, or on the account if the permission concerns accounts."""
    rate: ClassVar[str | None] = None
    """The rate of quotas that admits it: READ_UNITS, WRITE_UNITS or None."""

    def __await__(self) -> Generator[list[Command[Any]], list[Any], R_co]:
        """Yield a list of this command, and return its outcome. Raises its GatewayError."""
        [outcome] = yield [self]
        if isinstance(outcome, GatewayError):
            raise outcome
        return outcome

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        """Return what it does to which resources, for a request with a purpose.

        A command that declares neither this method nor `permission` is only run for unrestricted callers.
        """
        if self.permission in ACCOUNT_PERMISSIONS:
            namespace = getattr(self, "namespace", None) or ""
            return (Access(self.permission, purpose.channel, namespace, "", self),)
        table: Table = self.table  # type: ignore[attr-defined]
        return (on_table(self, table, self.permission, purpose),)

    def found_paths(
        self, outcome: Any, purpose: Purpose, named: Container[tuple[str, str]]
    ) -> Iterable[Path]:
        """Return the resources that a look-up found or missed. The caller needs the purpose on one of them each.

        `named`: (namespace, name) of tables that the request has named and that are not forbidden.
        """
        return ()

    def fact(self, key: ConditionKey) -> FactValues:
        """Return a fact about the rows that it accesses: leading keys, attributes, Select or ReturnValues.

        None if the command has no such fact.
        """
        return None

    def min_added_bytes(self) -> int:
        """Return the minimum number of bytes that it adds, as far as known before it runs. 0 if it adds none."""
        return 0

    def cost(self, outcome: Any) -> Cost:
        """Return what it has taken of quotas, by its outcome. The outcome is no error."""
        return NO_COST

    def with_bounds(self, bounds: tuple[TableLimit, ...]) -> Self:
        """Return the command with bounds of quotas for the tables that it creates."""
        return self

    @property
    def copied_table(self) -> Table | None:
        """The table that it copies in the background. Its size is needed for quotas of bytes (`size_bytes`)."""
        return None


class ControlCommand(Command[R_co]):
    """A command of the control plane, which takes no units of quotas. All others declare their `rate`."""

    __slots__ = ()


class AccountRead(ControlCommand[R_co]):
    """A read of a namespace. It needs `permission` if it is the answer of the request.

    One that only finds a resource needs none, because the next command is checked.
    """

    __slots__ = ()

    def accesses(self, purpose: Purpose) -> Iterable[Access]:
        """Return the access to the account if the purpose has the permission."""
        return super().accesses(purpose) if self.permission in purpose.permissions else ()
