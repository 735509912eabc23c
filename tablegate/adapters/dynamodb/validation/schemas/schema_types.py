"""Shapes of request members: their JSON types and constraints.

The modules beside this one describe operations with these shapes. fast_validator.py and full_validator.py check
requests against them.
"""

from __future__ import annotations

from dataclasses import dataclass

# Types of members


@dataclass(frozen=True, slots=True)
class Text:
    """A JSON string. Lengths are in characters.

    - `pattern`: the regular expression in the error text.
    - `accepts`: if given, the expression that is applied instead of `pattern`.
    - `linear`: an expression that matches the same texts as `pattern` in linear time.
    - `instead`: texts that match it completely skip all other constraints, such as an ARN in place of a name.
    - `empty_minimum`: the minimum in the error for an empty text, if it is not `minimum`.
    - `sentence`: the whole error text for a wrong length, which is then the only error.
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
        """The regular expression for texts. "" if there is none."""
        return self.accepts or self.linear or self.pattern


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
    """A value with its type tag. Only JSON types are checked here. values.measure checks the rest."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """A JSON array."""

    of: Shape
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Mapping:
    """A JSON object from free keys to members of one shape.

    `lengths`: allowed lengths of each member (a list). Violations of `lengths` and of `keys` are reported as one
    constraint on the map.
    """

    of: Shape
    minimum: int | None = None
    maximum: int | None = None
    keys: Text | None = None
    lengths: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Structure:
    """A JSON object with known members. Others are dropped. `java`: the class in type errors.

    `printed`: the members that the Java object prints when it is echoed, if they differ from `members` or their
    order.
    """

    java: str
    members: dict[str, Shape]
    required: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()


Shape = Text | Number | Boolean | AttributeValue | Sequence | Mapping | Structure

ITEM = Mapping(AttributeValue())
"""A map of attribute values: an item, a key, values of placeholders."""


@dataclass(frozen=True, slots=True)
class Request:
    """The input of an operation.

    - `named`: the member that is reported first and alone if it is missing ("The parameter 'TableName' is
      required ...").
    - `alone`: the member with constraints that are reported before all others.
    """

    shape: Structure
    named: str = ""
    alone: str = ""


WIDTHS = {"Integer": (-(2**31), 2**31 - 1), "Long": (-(2**63), 2**63 - 1)}
"""Smallest and largest number of a Java type."""
