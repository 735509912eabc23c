"""Formats of lines of data files: items, or changes of an incremental export, as DynamoDB JSON or Ion, and back.

The function that requests use (values.py) checks values and brings them into canonical form. The first line determines
the form of a file. A later line of another form is an error.

Binary values may stand as Node writes them to JSON: a Buffer, or a Uint8Array as an object with an index for each byte.

    {"B":{"type":"Buffer","data":[0,1]}}      {"B":{"0":0,"1":1}}

amazon-ion parses the text of Ion (ion_values.py), if it is installed. Writing needs no library. Numbers keep their digits
and are spelled as in the service's exports (`103.`).

Sources: JSON.stringify of items of the SDKs for JavaScript, version 2 and 3 (Buffer.toJSON in the documentation of Node);
https://amazon-ion.github.io/ion-docs/docs/spec.html; "Data formats" in the guide to exports.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Set
from enum import Enum
from itertools import islice
from typing import Any, NamedTuple

import orjson

from tablegate.adapters.dynamodb.export_files.compression import UnreadableFile
from tablegate.adapters.dynamodb.values import values
from tablegate.adapters.dynamodb.values.values import ParsedItem
from tablegate.adapters.dynamodb.wire.errors import ServiceError
from tablegate.gateway.model.errors import NotInstalled
from tablegate.gateway.model.values.row_lines import json_object
from tablegate.gateway.model.values.rows import Row

Wire = Mapping[str, Any]

ION_VERSION_MARKER = "$ion_1_0"
_ION_SETS = {"SS": "$dynamodb_SS", "NS": "$dynamodb_NS", "BS": "$dynamodb_BS"}
_MEMBER_TAGS = {"SS": "S", "NS": "N", "BS": "B"}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ION_KEYWORDS = frozenset({"null", "true", "false", "nan"})


def ion_reader() -> Callable[[str], dict[str, Any]]:
    """Return the function that reads Ion. Raises NotInstalled."""
    try:
        from tablegate.adapters.dynamodb.export_files.ion_values import read
    except ImportError:
        raise NotInstalled("ion") from None
    return read


def parse_ion(text: str) -> dict[str, Any]:
    """Return the only struct of a line as a wire map: name -> attribute value. Raises UnreadableFile."""
    try:
        value = ion_reader()(text)
    except NotInstalled:
        raise UnreadableFile("Ion needs amazon-ion: pip install 'tablegate[ion]'") from None
    if "M" not in value:
        raise UnreadableFile("no Ion struct: expected one in each line")
    return dict(value["M"])


def ion_text(members: Wire) -> str:
    """Return the struct of attribute values by name."""
    return (
        "{"
        + ",".join([f"{_ion_name(name)}:{_ion_value_text(member)}" for name, member in members.items()])
        + "}"
    )


def _ion_name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name not in _ION_KEYWORDS:
        return name
    return "'" + _ion_quoted(name)[1:-1].replace("'", "\\'") + "'"


def _ion_quoted(text: str) -> str:
    """Return the text with JSON's escapes, which are valid in Ion."""
    return orjson.dumps(text).decode()


def _ion_value_text(member: Wire) -> str:
    [(tag, data)] = member.items()
    match tag:
        case "S":
            return _ion_quoted(data)
        case "N":
            return data if "." in data else data + "."
        case "B":
            return "{{" + data + "}}"
        case "BOOL":
            return "true" if data else "false"
        case "NULL":
            return "null"
        case "L":
            return "[" + ",".join(map(_ion_value_text, data)) + "]"
        case "M":
            return ion_text(data)
    elements = ",".join([_ion_value_text({_MEMBER_TAGS[tag]: element}) for element in data])
    return f"{_ION_SETS[tag]}::[{elements}]"


# Binary values of Node


def has_buffers(wire: Any) -> bool:
    """Return True if a typed value, or one in it, is a binary of Node. Recursion ends at other values."""
    if isinstance(wire, list):
        return any(map(has_buffers, wire))
    if not isinstance(wire, dict):
        return False
    return any(
        _bytes_of(data) is not None
        if tag == "B"
        else tag == "BS" and isinstance(data, list) and any(_bytes_of(each) is not None for each in data)
        for tag, data in wire.items()
    ) or any(map(has_buffers, wire.values()))


def without_buffers(wire: Any) -> Any:
    """Return a copy with base64 in place of binaries of Node."""
    if isinstance(wire, list):
        return [without_buffers(element) for element in wire]
    if not isinstance(wire, dict):
        return wire
    copy = {}
    for tag, data in wire.items():
        if tag == "B":
            copy[tag] = _text(data)
        elif tag == "BS" and isinstance(data, list):
            copy[tag] = [_text(element) for element in data]
        else:
            copy[tag] = without_buffers(data)
    return copy


def _text(data: Any) -> Any:
    """Return base64 for a binary of Node. Other data may be an attribute with the name of a type."""
    found = _bytes_of(data)
    return without_buffers(data) if found is None else base64.b64encode(found).decode()


def _bytes_of(data: Any) -> bytes | None:
    if not isinstance(data, dict):
        return None
    if data.keys() == {"type", "data"} and data["type"] == "Buffer":
        elements = data["data"]
    elif list(data) == [str(index) for index in range(len(data))]:
        elements = list(data.values())
    else:
        return None
    if not isinstance(elements, list) or not all(type(byte) is int and 0 <= byte < 256 for byte in elements):
        return None
    return bytes(elements)


# Lines


class LineFormat(Enum):
    """The form of lines."""

    ITEM = '{"Item":{...}}, as exports, GetItem and PutItem have it'
    BARE = "an item without a wrapper"
    LOWER_CASE = "an item whose types are in lower case, as EMR wrote it"
    ION = "Ion text"
    CHANGE = "a change of an incremental export"
    ION_CHANGE = "a change of an incremental export in Ion text"


class ItemChange(NamedTuple):
    """The change of an item in a window of time. `new` is None if it was deleted."""

    keys: ParsedItem
    new: ParsedItem | None


_TAGS = frozenset({"S", "N", "B", "BOOL", "NULL", "L", "M", "SS", "NS", "BS"})
# In the notation of the Java SDK's fields: s, sS, bOOL, nULLValue.
_LOWER_CASE_TAGS = {tag.lower(): tag for tag in _TAGS} | {"nullvalue": "NULL"}
_WRAPPER = frozenset(
    {
        "Item", "TableName", "ConsumedCapacity", "ResponseMetadata", "$metadata",
        "ReturnConsumedCapacity", "ReturnItemCollectionMetrics", "ReturnValues",
    }
)  # fmt: skip
"""Members of a wrapped item: a line of an export, the answer of GetItem, or a request of PutItem without conditions."""
_CHANGE = frozenset({"Metadata", "Keys", "NewImage", "OldImage"})
_NAMES, _NAME_CHARACTERS = 5, 40
_UNQUOTED_NAME = re.compile(rb"\s*\{\s*['A-Za-z_$]")  # never valid in JSON


def form_of(line: bytes) -> LineFormat:
    """Return the form of a file with this first line. Raises UnreadableFile."""
    if is_ion(line):
        return LineFormat.ION_CHANGE if "Keys" in _ion_record(line) else LineFormat.ION
    record = json_object(line)
    if "Keys" in record and "Metadata" in record:
        return LineFormat.CHANGE
    if "Item" in record and _WRAPPER.issuperset(record) and _is_wrapped(line):
        return LineFormat.ITEM
    if _has_tags(record, _TAGS):
        return LineFormat.BARE
    lower = _with_lower_case(record)
    if len(lower) == len(record) and _has_tags(lower, _LOWER_CASE_TAGS.keys()):
        return LineFormat.LOWER_CASE
    raise UnreadableFile(
        "no typed item: its values have no types of DynamoDB (plain JSON cannot be read back exactly)."
        f' Expected {{"id":{{"S":"a"}}}} or {{"Item":{{...}}}}, found the members {shown_names(record)}. boto3\'s resource,'
        " the document client and Cosmos DB write JSON without types. Write it again with types (TypeSerializer of boto3,"
        " marshall of @aws-sdk/util-dynamodb)"
    )


def read_item(line: bytes, form: LineFormat) -> ParsedItem:
    """Return the item of a line. Raises UnreadableFile."""
    match form:
        case LineFormat.ION:
            return _item(_wrapped(_ion_record(line)))
        case LineFormat.ITEM:
            return _item(_wrapped(json_object(line)))
        case LineFormat.BARE:
            return _item(json_object(line))
        case LineFormat.LOWER_CASE:
            return _item(_with_upper_case(json_object(line)))
        case _:
            raise UnreadableFile(f"{form.value} is no item")


def read_change(line: bytes, form: LineFormat) -> ItemChange:
    """Return the change of a line. Raises UnreadableFile."""
    if form not in (LineFormat.CHANGE, LineFormat.ION_CHANGE):
        raise UnreadableFile(f"{form.value} is no change")
    record = json_object(line) if form is LineFormat.CHANGE else _ion_record(line)
    if not _CHANGE.issuperset(record):
        raise UnreadableFile(f"unexpected members beside Keys: {shown_names(record.keys() - _CHANGE)}")
    new = _item(_member(record, "NewImage")) if "NewImage" in record else None
    return ItemChange(_item(_member(record, "Keys")), new)


def line_of(row: Row, as_ion: bool = False) -> bytes:
    """Return the line of a full export for a row of DynamoDB's kinds."""
    return item_line(values.render_row(row), as_ion)


def item_line(item: bytes, as_ion: bool) -> bytes:
    """Return the line of a full export for an item given as JSON."""
    if as_ion:
        return f"{ION_VERSION_MARKER} {{Item:{ion_text(orjson.loads(item))}}}\n".encode()
    return b'{"Item":' + item + b"}\n"


def change_line(written_at_us: int, images: Mapping[str, bytes], as_ion: bool) -> bytes:
    """Return the line of an incremental export for a change.

    `images`: Keys, OldImage and NewImage as JSON, if selected.
    """
    if as_ion:
        members = "".join([f",{name}:{ion_text(orjson.loads(image))}" for name, image in images.items()])
        metadata = f"Metadata:{{WriteTimestampMicros:{written_at_us}.}}"
        return f"{ION_VERSION_MARKER} {{Record:{{{metadata}{members}}}}}\n".encode()
    metadata_json = b'{"Metadata":{"WriteTimestampMicros":{"N":"%d"}}' % written_at_us
    return (
        metadata_json
        + b"".join([b',"%s":%s' % (name.encode(), image) for name, image in images.items()])
        + b"}\n"
    )


def _is_wrapped(line: bytes) -> bool:
    """Return True if `Item` is a wrapper, False if it is the name of an item's only attribute."""
    try:
        read_item(line, LineFormat.ITEM)
    except UnreadableFile:
        return not _has_tags(json_object(line), _TAGS)
    return True


def is_ion(line: bytes) -> bool:
    """Return True if a file with this first line is Ion."""
    return line.lstrip().startswith(ION_VERSION_MARKER.encode()) or _UNQUOTED_NAME.match(line) is not None


def _ion_record(line: bytes) -> dict[str, Any]:
    """Return the fields of a line in the shape of JSON. A struct named Record may wrap those of a change."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise UnreadableFile("not UTF-8") from None
    fields = parse_ion(text)
    if set(fields) == {"Record"}:
        fields = fields["Record"].get("M", {})
    structs = {name: field.get("M") for name, field in fields.items()}
    if None in structs.values():
        names = ", ".join(name for name, field in structs.items() if field is None)
        raise UnreadableFile(f"expected a struct in {names}")
    return structs


def _wrapped(record: Mapping[str, Any]) -> dict[str, Any]:
    item = _member(record, "Item")
    if not _WRAPPER.issuperset(record):
        raise UnreadableFile(f"unexpected members beside Item: {shown_names(record.keys() - _WRAPPER)}")
    return item


def shown_names(names: Iterable[str]) -> str:
    """Return the first names for a message."""
    first = [name[:_NAME_CHARACTERS] for name in islice(names, _NAMES + 1)]
    return ", ".join([*first[:_NAMES], "..."] if len(first) > _NAMES else first)


def _member(record: Mapping[str, Any], name: str) -> dict[str, Any]:
    member = record.get(name)
    if not isinstance(member, dict):
        raise UnreadableFile(f"no {name}")
    return member


def _with_lower_case(record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {tag.lower(): data for tag, data in member.items()}
        for name, member in record.items()
        if isinstance(member, dict)
    }


def _has_tags(record: Mapping[str, Any], tags: Set[str]) -> bool:
    return all(
        isinstance(member, dict) and len(member) == 1 and next(iter(member)) in tags
        for member in record.values()
    )


def _item(wire: Any) -> ParsedItem:
    try:
        return values.item_of(wire)
    except ServiceError as error:
        if has_buffers(wire):
            return _item(without_buffers(wire))
        raise UnreadableFile(error.message or "not a value of DynamoDB") from None


def _with_upper_case(wire: Any) -> dict[str, Any]:
    members = {}
    for name, member in wire.items():
        if not isinstance(member, dict) or len(member) != 1:
            raise UnreadableFile(f"{name!r} is no typed value")
        members[name] = _upper_case(member)
    return members


def _upper_case(member: Any) -> dict[str, Any]:
    [(tag, data)] = member.items() if isinstance(member, dict) and len(member) == 1 else [("", None)]
    tag = _LOWER_CASE_TAGS.get(tag.lower(), "")
    if tag == "M" and isinstance(data, dict):
        data = {name: _upper_case(element) for name, element in data.items()}
    elif tag == "L" and isinstance(data, list):
        data = [_upper_case(element) for element in data]
    elif tag not in _TAGS:
        raise UnreadableFile("a member without a type")
    return {tag: data}
