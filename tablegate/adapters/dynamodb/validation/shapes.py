"""Shapes of request members: their JSON types and constraints, and the members that several groups of operations share.

table_schemas.py, item_schemas.py and the capabilities describe operations with these shapes. fast_validator.py and
full_validator.py check requests against them.
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


# Common members


Members = dict[str, Shape]
Shapes = dict[str, tuple[Members, tuple[str, ...]]]
"""Operation -> its members, and the names of the required ones."""

NAME_PATTERN = "[a-zA-Z0-9_.-]+"
TABLE_ARN = r"arn:[a-z-]+:dynamodb:[^:/]*:[0-9]*:table/[a-zA-Z0-9_.-]{3,255}"


def one_of(*values: str) -> Text:
    """Return a text of a closed set, in the order in which the service lists it."""
    return Text(enum=values)


TEXT = Text()
INTEGER_FROM_1 = Number("Integer", 1)
CAPACITY = one_of("INDEXES", "TOTAL", "NONE")
COLLECTION_METRICS = one_of("SIZE", "NONE")
ON_FAILURE = one_of("ALL_OLD", "NONE")
NAMES = Mapping(TEXT)
PLACEHOLDERS: Members = {"ExpressionAttributeValues": ITEM, "ExpressionAttributeNames": NAMES}

NAME = Text(pattern=NAME_PATTERN, minimum=3, maximum=255)
"""The name of a table that need not exist, of an index or of a backup."""
# The name or ARN of a table that must exist.
NAME_OR_ARN = Text(pattern=NAME_PATTERN, minimum=3, maximum=255, instead=TABLE_ARN)
# The table's name in item operations. Since 2024 an ARN is allowed, and the error for an empty name has the ARN's
# minimum. Two characters are rejected as before (test_item.py test_item_operations_improper_named_table).
TABLE_NAME = Text(
    pattern=NAME_PATTERN,
    minimum=3,
    maximum=255,
    accepts="[a-zA-Z0-9_.-]*",
    instead=TABLE_ARN,
    empty_minimum=1,
)


def named(subject: str, instead: str = "") -> Text:
    """Return a name with its own error text for a wrong length, which calls it `subject` (ack-api-quirks 457, October
    2026).
    """
    sentence = f"{subject} must be at least 3 characters long and at most 255 characters long"
    return Text(pattern=NAME_PATTERN, minimum=3, maximum=255, instead=instead, sentence=sentence)


def requests_of(shapes: Shapes) -> dict[str, Request]:
    """Return the inputs of operations. Type errors name the class after the operation."""
    return {
        operation: Request(Structure(f"{operation}Input", members, required))
        for operation, (members, required) in shapes.items()
    }
