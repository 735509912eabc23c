"""Parts of requests that several groups of operations share: names, capacity, placeholders, indexes."""

from __future__ import annotations

from tablegate.adapters.dynamodb.validation.schemas.schema_types import (
    ITEM,
    Mapping,
    Number,
    Request,
    Shape,
    Structure,
    Text,
)

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
