"""Bytes -> protobuf messages, whole or not at all: all required fields there, every string a string."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from adapters.tablestore.errors import invalid

MessageT = TypeVar("MessageT", bound=Message)

_STRING, _MESSAGE = FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE


def parse(kind: type[MessageT], data: bytes, what: str) -> MessageT:
    """The message in `data`. Raises ServiceError, in which it is called `what`."""
    message = kind()
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise invalid(f"Failed to parse {what}.") from None
    if not message.IsInitialized():
        missing = ", ".join(message.FindInitializationErrors())  # type: ignore[attr-defined]
        raise invalid(f"Failed to parse {what}, missing required fields: {missing}.")
    if not _has_only_text(message):
        raise invalid(f"Failed to parse {what}, a string is not UTF-8.")
    return message


def _has_only_text(message: Message) -> bool:
    """Whether every string is one. The runtime lets bytes that are not UTF-8 pass, and gives them out as `bytes`."""
    for field, value in message.ListFields():
        kind = field.type
        if kind == _STRING:
            if isinstance(value, bytes):
                return False
            if not isinstance(value, str) and any(isinstance(each, bytes) for each in value):
                return False
        elif kind == _MESSAGE:
            parts = (value,) if isinstance(value, Message) else value
            if not all(_has_only_text(part) for part in parts):
                return False
    return True
