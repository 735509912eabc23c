"""IP addresses as values of search indexes: 32 hexadecimal digits, in the order of addresses.

An IPv4 address has the digits of its IPv4-mapped IPv6 address, so both texts find each other.
"""

from __future__ import annotations

import ipaddress

_BITS = 128
_MAPPED = 0xFFFF << 32
_IPV4_BITS = 32


def digits_of(text: str) -> str | None:
    """Return the digits of an address. None if the text is no address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv4Address):
        return _digits(_MAPPED | int(address))
    return None if address.scope_id else _digits(int(address))


def block_of(text: str) -> tuple[str, str] | None:
    """Return the first and the last address of a block in CIDR notation. None if the text is no block."""
    address, slash, length = text.partition("/")
    first = digits_of(address)
    if not slash or first is None or not length.isascii() or not length.isdigit() or len(length) > 3:
        return None
    free_bits = (_BITS if ":" in address else _IPV4_BITS) - int(length)
    if free_bits < 0:
        return None
    low = int(first, 16) >> free_bits << free_bits
    return _digits(low), _digits(low | ((1 << free_bits) - 1))


def _digits(number: int) -> str:
    return f"{number:032x}"
