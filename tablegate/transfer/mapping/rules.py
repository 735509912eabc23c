"""The rules of the mapping between services: name, fidelity and meaning.

The table in docs/migrate/mapping.md is generated from here (`python -m tablegate.transfer.mapping.rules`), which a
test checks. Each rule names its source. The limits are in each adapter's `limits.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple


class Fidelity(Enum):
    """The fidelity of a conversion, from best to worst."""

    LOSSLESS = "lossless"
    """The value is written in another form and compares equal."""
    RENDERED = "rendered"
    """The value gets another kind and can be restored exactly."""
    LOSSY = "lossy"
    """Information is lost."""
    IMPOSSIBLE = "impossible"
    """The target cannot hold the row, which is rejected."""

    @property
    def severity(self) -> int:
        """The position in that order: 0 for lossless."""
        return list(Fidelity).index(self)


@dataclass(frozen=True, slots=True)
class MappingRule:
    """A rule with a stable name, a fidelity, and a sentence. `page`: a page of docs with its source, "" if none is needed."""

    name: str
    fidelity: Fidelity
    meaning: str
    page: str = ""


class MappingFinding(NamedTuple):
    """A rule that applied to an attribute or key column. "" stands for the row as a whole."""

    rule: MappingRule
    attribute: str


_LOSSLESS, _RENDERED, _LOSSY, _IMPOSSIBLE = Fidelity

# Values

NUMBER_KIND = MappingRule(
    "number-kind",
    _LOSSLESS,
    "A number is of the target's narrowest kind that holds it exactly: N in DynamoDB, Int32, Int64 or Double in Azure Table,"
    " INTEGER or DOUBLE in Table Store. A Double is its exact value if it is whole and N can hold it, otherwise its shortest"
    " decimal.",
    "explain/semantics",
)
NUMBER_AS_TEXT = MappingRule(
    "number-as-text",
    _RENDERED,
    "A number that no kind of the target holds exactly is text in decimal digits: 38 digits of DynamoDB's N, or a Double beyond"
    " 1E126.",
    "explain/differences",
)
NAN_AS_TEXT = MappingRule(
    "nan-as-text",
    _RENDERED,
    "NaN and the infinities are the texts NaN, Infinity and -Infinity, since DynamoDB's N has none.",
    "protocols/dynamodb",
)
NEGATIVE_ZERO = MappingRule(
    "negative-zero",
    _LOSSY,
    "The Double -0.0 is 0: DynamoDB's N has no sign of zero.",
    "protocols/dynamodb",
)
DATETIME_AS_TEXT = MappingRule(
    "datetime-as-text",
    _RENDERED,
    "A DateTime is text of ISO 8601 with seven digits of a second.",
    "explain/differences",
)
GUID_AS_TEXT = MappingRule(
    "guid-as-text",
    _RENDERED,
    "A Guid is its text in lower case.",
    "explain/differences",
)
DOCUMENT_AS_TEXT = MappingRule(
    "document-as-text",
    _RENDERED,
    "A list or a map is text of DynamoDB's typed JSON: the others have none.",
    "explain/differences",
)
SET_AS_TEXT = MappingRule(
    "set-as-text",
    _RENDERED,
    "A set is text of DynamoDB's typed JSON, members in order.",
    "explain/differences",
)
NULL_ABSENT = MappingRule(
    "null-absent",
    _LOSSY,
    "A NULL is omitted, because Azure Table and Table Store have none. A missing attribute has the same meaning.",
    "explain/differences",
)
OLDER_VERSIONS = MappingRule(
    "older-versions",
    _LOSSY,
    "Only the newest versions of a cell are kept, as many as the target allows. Outside Table Store that is one."
    ' (Table Store, "Data versions and TTL")',
)
VALUE_TOO_LONG = MappingRule(
    "value-too-long",
    _IMPOSSIBLE,
    "A text or binary value exceeds the target's limit: 64 KiB in Azure Table (text as UTF-16),"
    ' 2 MiB in Table Store. ("Understanding the Table service data model" and Table Store, "Limits")',
)
NUMBER_OUT_OF_RANGE = MappingRule(
    "number-out-of-range",
    _IMPOSSIBLE,
    "A number in a list, a map or a set, or an N, has more than 38 digits or is beyond DynamoDB's range. (developer guide,"
    ' "Supported data types")',
)
DATETIME_OUT_OF_RANGE = MappingRule(
    "datetime-out-of-range",
    _IMPOSSIBLE,
    'A DateTime is before the year 1601. ("Understanding the Table service data model")',
)
EMPTY_SET = MappingRule(
    "empty-set",
    _IMPOSSIBLE,
    'A set is empty, which DynamoDB does not allow. (developer guide, "Supported data types")',
)
TOO_DEEP = MappingRule(
    "too-deep",
    _IMPOSSIBLE,
    'A document is nested deeper than DynamoDB\'s 32 levels. (developer guide, "Quotas in Amazon DynamoDB")',
)
DEFINED_KIND = MappingRule(
    "defined-kind",
    _IMPOSSIBLE,
    "A value is of another kind than the defined column of that name in the target's table. (Table Store, CreateTable)",
)
INDEX_KEY = MappingRule(
    "index-key",
    _IMPOSSIBLE,
    "An attribute is a key of an index of the target's table, and is empty, too long, or of another type. (developer guide,"
    ' "Using Global Secondary Indexes")',
)
STAMP_OUT_OF_RANGE = MappingRule(
    "stamp-out-of-range",
    _IMPOSSIBLE,
    'A cell has a version that Table Store does not allow. (Table Store, "Data versions and TTL")',
)

# Names

NAME_ESCAPED = MappingRule(
    "name-escaped",
    _RENDERED,
    "Characters that the target forbids in attribute names are written _xHHHH_ with their code and restored on the way back:"
    " Azure's names are identifiers of C# other than Timestamp, Table Store's do not begin with #.",
    "explain/differences",
)
NAME_UNESCAPED = MappingRule(
    "name-unescaped",
    _RENDERED,
    "Characters that the source has as _xHHHH_ in an attribute's name are restored.",
    "explain/differences",
)
NAME_NOT_ALLOWED = MappingRule(
    "name-not-allowed",
    _IMPOSSIBLE,
    "An attribute's name, or one inside a document, is longer than the target's names may be (255 characters in Azure Table, 255"
    " bytes in Table Store, 65,535 bytes in DynamoDB), or is empty.",
)
NAME_CLASH = MappingRule(
    "name-clash",
    _IMPOSSIBLE,
    "An attribute has the same name as a key column of the target or another attribute of the row.",
)

# Rows

TOO_MANY_ATTRIBUTES = MappingRule(
    "too-many-attributes",
    _IMPOSSIBLE,
    "The row has more attributes than the target allows: 252 in Azure Table, 1,024 cells, with older versions, in one write"
    ' of Table Store. ("Understanding the Table service data model" and Table Store, "Limits")',
)
ROW_TOO_LARGE = MappingRule(
    "row-too-large",
    _IMPOSSIBLE,
    "The row exceeds the target's size limit as the target measures it: 400 KB in DynamoDB, 1 MiB in Azure Table, 4 MiB in one"
    " write of Table Store.",
)
ROW_EXPIRED = MappingRule(
    "row-expired",
    _LOSSY,
    "The row has expired and its service has not deleted it yet. It is copied unchanged. Either end may delete it at any time."
    ' (developer guide, "Using time to live")',
)

# Keys

KEY_KIND = MappingRule(
    "key-kind",
    _LOSSLESS,
    "A whole number of a key is N in DynamoDB, INTEGER in Table Store, by value.",
    "explain/differences",
)
KEY_AS_TEXT = MappingRule(
    "key-as-text",
    _RENDERED,
    "A number in a key is text in plain digits, bytes are lower-case hexadecimal. Such keys sort as texts do.",
    "explain/differences",
)
KEY_JOINED = MappingRule(
    "key-joined",
    _RENDERED,
    "Second and later key columns are one text, joined by |, with %25 and %7C for % and | inside.",
    "explain/differences",
)
KEY_SPLIT = MappingRule(
    "key-split",
    _RENDERED,
    "A key's text is split into the values of the target's key columns.",
    "explain/differences",
)
KEY_ESCAPED = MappingRule(
    "key-escaped",
    _RENDERED,
    "With --escape-keys, characters that the target forbids in keys are written _xHHHH_ with their code, and an empty key _x_."
    " A copy in the other direction restores them.",
)
KEY_UNESCAPED = MappingRule(
    "key-unescaped",
    _RENDERED,
    "With --escape-keys, characters that an earlier copy wrote as _xHHHH_ are restored.",
)
KEY_EMPTY = MappingRule(
    "key-empty",
    _IMPOSSIBLE,
    "A key is empty, which DynamoDB does not allow. --escape-keys writes _x_.",
    "protocols/dynamodb",
)
KEY_FORBIDDEN = MappingRule(
    "key-forbidden",
    _IMPOSSIBLE,
    "A key has a character that Azure does not allow in keys (/ \\ # ? and control characters). --escape-keys writes its code."
    ' ("Understanding the Table service data model")',
)
KEY_TOO_LONG = MappingRule(
    "key-too-long",
    _IMPOSSIBLE,
    "A key exceeds the target's limit: 2,048 bytes for a partition key and 1,024 for a sort key in DynamoDB, 512 units of"
    " UTF-16 each in Azure Table, 1,024 bytes a column in Table Store.",
)
KEY_UNREADABLE = MappingRule(
    "key-unreadable",
    _IMPOSSIBLE,
    "A key's text is not in the canonical form of the target's column, such as 07 for a number.",
    "explain/differences",
)
KEY_REPEATED = MappingRule(
    "key-repeated",
    _LOSSY,
    "Several rows have one key in the target, such as lines of a file with the numbers 007 and 7.0. A copy fails, or keeps"
    " the last row with --duplicates last. The rows after the first one are counted.",
)
ROW_UNREADABLE = MappingRule(
    "row-unreadable",
    _IMPOSSIBLE,
    "A row is invalid for its own service, such as an item with an empty attribute name that an emulator accepted. It cannot be"
    " read. The file of rejects has it as the service sent it.",
)

# Definitions

TABLE_RENAMED = MappingRule(
    "table-renamed",
    _RENDERED,
    "The target does not allow the table's name, or it differs only in case from another one in Azure Table. The new name has"
    " its letters and digits and a digest.",
    "explain/differences",
)
KEY_RENAMED = MappingRule(
    "key-renamed",
    _RENDERED,
    "A key column has another name: Azure's are PartitionKey and RowKey, Table Store's have letters, digits and _ only. Several"
    " sort columns are one attribute c2/c3/c4 in DynamoDB.",
)
KEY_ORDER = MappingRule(
    "key-order",
    _LOSSY,
    "Rows are sorted by the key's text and no longer by its numbers, so that 10 is before 9.",
)
INDEX_NOT_KEPT = MappingRule(
    "index-not-kept",
    _LOSSY,
    "An index that the target does not support is not created. Azure Table has none. Table Store's have columns of one type"
    " with plain names. DynamoDB's have no parts of a joined key. Vector indexes are DynamoDB's alone.",
)
INDEX_PROJECTION = MappingRule(
    "index-projection",
    _LOSSY,
    "An index shows key columns only: its other columns need defined types in Table Store.",
)
EXPIRY_NOT_KEPT = MappingRule(
    "expiry-not-kept",
    _LOSSY,
    "Rows do not expire in the target: DynamoDB has a time to live by attribute, Table Store by table, and Azure Table has none.",
)
STREAM_NOT_KEPT = MappingRule(
    "stream-not-kept", _LOSSY, "The table's change stream is not copied: Azure Table has none."
)
STAMPS_NOT_KEPT = MappingRule(
    "stamps-not-kept",
    _LOSSY,
    'The versions (times) of cells are not copied: only Table Store has them. (Table Store, "Data versions and TTL")',
)
TIMESTAMP_NOT_KEPT = MappingRule(
    "timestamp-not-kept",
    _LOSSY,
    "Timestamp, which the Table service sets itself, is the time of the copy in Azure Table, and absent elsewhere."
    ' ("Understanding the Table service data model")',
)
AUTO_INCREMENT_NOT_KEPT = MappingRule(
    "auto-increment-not-kept",
    _LOSSY,
    "Numbers of an auto-increment key column are copied. Only Table Store generates new ones.",
)

RULES: tuple[MappingRule, ...] = tuple(
    found for found in list(globals().values()) if isinstance(found, MappingRule)
)
"""All rules in the order of the documentation."""

BY_NAME = {rule.name: rule for rule in RULES}


def markdown() -> str:
    """Return the table of docs/migrate/mapping.md."""
    lines = ["| rule | class | meaning |", "|---|---|---|"]
    for rule in RULES:
        meaning = rule.meaning.replace("|", "\\|")
        source = f" ([{Path(rule.page).name}](../{rule.page}.md))" if rule.page else ""
        lines.append(f"| `{rule.name}` | {rule.fidelity.value} | {meaning}{source} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
