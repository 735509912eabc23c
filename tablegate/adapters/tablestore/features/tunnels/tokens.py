"""Tokens: positions in a channel as clients see them.

A token is the base64 text of a protobuf message, from which the SDKs read the phase (wire/protocol/tunnel.proto). The
position of rows in it is the last key as bytes, that of changes the next sequence.
"""

from __future__ import annotations

import base64
import binascii
import struct

from google.protobuf.message import DecodeError

from tablegate.adapters.tablestore.wire import limits
from tablegate.adapters.tablestore.wire.errors import ServiceError, invalid
from tablegate.adapters.tablestore.wire.protocol import tunnel_pb2 as messages
from tablegate.gateway.features.tunnels.tunnels import Channel, ChannelPosition
from tablegate.gateway.model.values.keys import Position

FINISHED = "finished"
"""The token at the end of a channel."""
_VERSION = 2
_LENGTH = struct.Struct(">I")


def token_of(channel: Channel, position: ChannelPosition) -> str:
    """Return the token of a position."""
    if position.finished:
        return FINISHED
    content = messages.TokenContent(timestamp=position.at_ms * 1_000_000, total_count=position.count)
    if channel.has_rows:
        content.primary_key = bytes.fromhex(position.after)
    else:
        content.iterator = str(position.sequence)
    token = messages.Token(version=_VERSION, content=content.SerializeToString())
    return base64.b64encode(token.SerializeToString()).decode()


def parse_token(channel: Channel, text: str) -> ChannelPosition:
    """Return the position of a token. Raises ServiceError."""
    if text == FINISHED:
        return ChannelPosition(finished=True)
    try:
        if len(text) > limits.TUNNEL_TOKEN_MAX:
            raise _invalid()
        token = messages.Token.FromString(base64.b64decode(text.encode(), validate=True))
        content = messages.TokenContent.FromString(token.content)
    except (binascii.Error, DecodeError, UnicodeEncodeError):
        raise _invalid() from None
    iterator, after = content.iterator, content.primary_key
    at_ms, count = max(0, content.timestamp // 1_000_000), max(0, content.total_count)
    if count > limits.TUNNEL_COUNT_MAX:
        raise _invalid()
    if channel.has_rows:
        if iterator or (after and _split(after) is None):
            raise _invalid()
        return ChannelPosition(after=after.hex(), at_ms=at_ms, count=count)
    if after or not (iterator.isascii() and iterator.isdigit() and len(iterator) < 19):
        raise _invalid()
    return ChannelPosition(sequence=int(iterator), at_ms=at_ms, count=count)


def _invalid() -> ServiceError:
    return invalid("Invalid token.")


def key_text(position: Position) -> str:
    """Return the key of a row as ChannelPosition stores it."""
    return (_LENGTH.pack(len(position.partition)) + position.partition + position.sort).hex()


def key_position(text: str) -> Position | None:
    """Return the key of a text of `key_text`. None at the beginning."""
    return _split(bytes.fromhex(text)) if text else None


def _split(data: bytes) -> Position | None:
    if len(data) < _LENGTH.size:
        return None
    [length] = _LENGTH.unpack_from(data)
    rest = data[_LENGTH.size :]
    return Position(rest[:length], rest[length:]) if length <= len(rest) else None
