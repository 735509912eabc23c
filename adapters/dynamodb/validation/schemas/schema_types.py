"""Shapes of request members as values: what JSON type a member is, and the constraints on it.

Which members an operation has is data in the modules beside this one; fast_validator.py and full_validator.py judge
requests by these shapes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """A JSON string. Lengths are in characters.

    `pattern` is the regular expression that is told; `accepts`, if given, the one that is applied in its stead. `linear`:
    an expression that matches the same texts as `pattern` and takes linear time, where `pattern` does not. A text that
    `instead` matches whole (an ARN where a name is wanted) passes all other constraints by. `empty_minimum`: the minimum
    that is told of an empty text, where it is not `minimum`. `sentence`: the whole error text for a wrong length, told
    alone.
    """

    enum: tuple[str, ...] = ()
    pattern: str = ""
    minimum: int | None = None
    maximum: int | None = None
    accepts: str = ""
    linear: str = ""
    instead: str = ""
    empty_minimum: int | None = None
    sentence: str = ""

    @property
    def applied(self) -> str:
        """The regular expression that texts must match, "" if there is none."""
        return self.accepts or self.applied_once

    @property
    def applied_once(self) -> str:
        """The regular expression that texts had to match in the first decade."""
        return self.linear or self.pattern


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number: an Integer or Long (fractions are cut off) or a Double."""

    java: str = "Integer"
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Boolean:
    """A JSON boolean."""


@dataclass(frozen=True, slots=True)
class AttributeValue:
    """A value with its type tag. Only JSON types are looked at here; the rest is values.measure."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """A JSON array."""

    of: Shape
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Mapping:
    """A JSON object from free keys to members of one shape.

    `lengths`: allowed lengths of each member (a list), told as one constraint on the map, as is `keys`.
    """

    of: Shape
    minimum: int | None = None
    maximum: int | None = None
    keys: Text | None = None
    lengths: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Structure:
    """A JSON object with known members; others are dropped. `java` is the class that type errors name.

    `once_required`: members that the first decade's service missed as well, where it had something to miss. `printed`: what
    the Java object shows when it is echoed, as far as that is not its members in their order.
    """

    java: str
    members: dict[str, Shape]
    required: frozenset[str] = frozenset()
    once_required: frozenset[str] = frozenset()
    printed: tuple[str, ...] = ()


Shape = Text | Number | Boolean | AttributeValue | Sequence | Mapping | Structure

ITEM = Mapping(AttributeValue())
"""A map of attribute values: an item, a key, values of placeholders."""


@dataclass(frozen=True, slots=True)
class Request:
    """What an operation takes.

    `named`: the member whose absence is told alone and before everything else ("The parameter 'TableName' is required
    ..."), with its length if `tells_length`. `alone`: a member whose constraints are told before those of the others; the
    sentence about its length is then for requests that lack something.
    """

    shape: Structure
    named: str = ""
    tells_length: bool = False
    alone: str = ""


WIDTHS = {"Integer": (-(2**31), 2**31 - 1), "Long": (-(2**63), 2**63 - 1)}
"""Smallest and largest number of a Java type."""
