"""Two sides that attack each other: their data, the identifiers they have seen, and their answers.

A side is one tenant with keys of all three dialects. Its bag holds every identifier in its answers: tables, ARNs,
streams, iterators, page tokens, transactions. The other side picks from that bag. Every value of a row, policy or tag
that a side writes contains its secret. An answer leaks if its bytes contain the other side's secret. Keys, names and
identifiers have no secret, because both sides may see them.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

MOST_OF_A_KIND = 40
KEPT_WHOLE = frozenset({"LastEvaluatedKey", "Keys", "continuation", "next_start_primary_key"})
"""Members that are an identifier as a whole, and not what is in them."""


class Bag:
    """Identifiers by member name: for each kind the latest and some older ones."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._kinds: dict[str, list[Any]] = defaultdict(list)

    def collect(self, answer: Any, without: tuple[str, ...] = ()) -> None:
        """Keep the identifiers of an answer, except texts that contain one of `without`."""
        for kind, value in _identifiers(answer, ""):
            if not any(each in str(value) for each in without):
                self.keep(kind, value)

    def keep(self, kind: str, value: Any) -> None:
        """Keep one identifier."""
        known = self._kinds[kind]
        if value in known:
            return
        if len(known) < MOST_OF_A_KIND:
            known.append(value)
        else:
            known[self._chance.randrange(MOST_OF_A_KIND)] = value

    def pick(self, chance: random.Random, *kinds: str) -> Any:
        """Return an identifier of one of these kinds.

        Sometimes, or if there is none, any identifier. None if the bag is empty.
        """
        known = [value for kind in kinds for value in self._kinds.get(kind, ())]
        if not KEPT_WHOLE.isdisjoint(kinds):
            return chance.choice(known) if known else None
        if not known or chance.random() < 0.05:
            known = [
                value for values in list(self._kinds.values()) for value in values if isinstance(value, str)
            ]
        return chance.choice(known) if known else None

    def counts(self) -> dict[str, int]:
        """Return the number of identifiers of each kind."""
        return {kind: len(values) for kind, values in self._kinds.items()}


def _identifiers(answer: Any, name: str) -> Iterator[tuple[str, Any]]:
    if name in KEPT_WHOLE:
        if answer:
            yield name, answer
    elif isinstance(answer, dict):
        for member, value in answer.items():
            if member not in ("ResponseMetadata", "Item", "Items", "NewImage", "OldImage", "Attributes"):
                yield from _identifiers(value, str(member))
    elif isinstance(answer, list | tuple):
        for value in answer:
            yield from _identifiers(value, name)
    elif isinstance(answer, str) and name and answer:
        yield name, answer


@dataclass
class Side:
    """One of the two sides. `place` is its account and region. `secret` is in each of its rows."""

    url: str
    name: str
    account: str
    instance: str
    chance: random.Random
    secret: str
    other: Side = field(init=False)
    bag: Bag = field(init=False)
    results: Counter[str] = field(default_factory=Counter)
    crossings: list[str] = field(default_factory=list)
    doing: str = ""
    """The next request, for the report."""
    held: list[str] = field(default_factory=list)
    """Transactions of Table Store that it has open."""
    _made: int = 0

    def __post_init__(self) -> None:
        self.bag = Bag(random.Random(self.name))

    @property
    def vault(self) -> str:
        """The table that this side only reads and that the other side tries to read."""
        return f"{self.name}vault"

    def new_name(self) -> str:
        """Return a name for another table of this side."""
        self._made += 1
        return f"{self.name}{self._made % 4}"

    def foreign(self, *kinds: str) -> Any:
        """Return an identifier of the other side that does not name this side's vault, because access to its own data
        is no attack.
        """
        for _ in range(20):
            found = self.other.bag.pick(self.chance, *kinds)
            if found is None:
                return None if kinds[0] in KEPT_WHOLE else self.other.vault
            if isinstance(found, str) and ":" in found and self.chance.random() < 0.15:
                found = found.replace(self.other.account, self.account)
            if self.vault not in str(found).lower():
                return found
        return self.other.vault

    def seen(self, wire: bytes | str) -> None:
        """Check the bytes received."""
        text = wire if isinstance(wire, str) else wire.decode("utf-8", "replace")
        if self.other.secret in text:
            self.crossings.append(f"{self.name} was told the other's secret by {self.doing}: {text[:2000]}")

    def answered(self, operation: str, status: int, code: str) -> None:
        """Note how a request ended."""
        self.results[f"{operation} {code or status}"] += 1
        if status >= 500 and status != 503:  # it may be busy
            self.crossings.append(f"{self.name} was answered {status} {code} by {self.doing}")


Ask = Callable[[Any], Any]
