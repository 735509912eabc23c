"""Names of tables and attributes in each service, and the escape `_xHHHH_` for characters that a service forbids.

The scheme of the escape is that of Azure's property names (adapters/azuretable/keys.py, after .NET's
XmlConvert.EncodeName), with other forbidden characters. Both directions are total and inverse to each other, so that
different texts stay different. A text without forbidden characters that does not look like an escape stays unchanged.

Azure's rules for property names are those of its adapter. Names of Table Store columns must not begin with `#`. The name of a
table in another service is the same, or derived from it if the service does not allow it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tablegate.adapters.azuretable import keys
from tablegate.adapters.azuretable.wire.addresses import check_table_name
from tablegate.adapters.azuretable.wire.errors import ServiceError
from tablegate.adapters.dynamodb.wire import limits as dynamodb_limits
from tablegate.adapters.tablestore.wire.names import is_name
from tablegate.gateway.model.tables.tables import azure_name_for
from tablegate.transfer.endpoints.endpoint import Definition, Service

_ESCAPE = re.compile(r"_x([0-9A-F]{4}|[0-9A-F]{8})_")
# The start of a text that would look like an escape if an escape followed.
_BEGINNING = re.compile(r"_x(?=[0-9A-F]{4})")
_EMPTY = "_x_"


class EscapeRules:
    """The escapes of one service's texts."""

    def __init__(self, forbidden: str, takes_empty: bool) -> None:
        """Set up the escapes. `forbidden` is a regular expression that matches each forbidden character."""
        self._forbidden = re.compile(forbidden)
        self._takes_empty = takes_empty

    def spelled(self, text: str) -> str:
        """Return the escaped text."""
        if not self._is_plain(text):
            return self._escaped(text)
        if "_x" in text:
            inner = self._unescaped(text)
            if (
                inner != text and self.spelled(inner) == text
            ):  # it would be read as the escape of another text
                return self._escaped(text)
        return text

    def unspelled(self, text: str) -> str:
        """Return the original of an escaped text."""
        if "_x" not in text:
            return text
        inner = self._unescaped(text)
        return inner if inner != text and self.spelled(inner) == text else text

    def _is_plain(self, text: str) -> bool:
        return (self._takes_empty or text != "") and self._forbidden.search(text) is None

    def _escaped(self, text: str) -> str:
        if not text:
            return _EMPTY
        forbidden = {match.start() for match in self._forbidden.finditer(text)}
        forbidden |= {match.start() for match in _BEGINNING.finditer(text)}
        if not forbidden:
            forbidden = {0}
        return "".join(
            [_code_of(character) if at in forbidden else character for at, character in enumerate(text)]
        )

    def _unescaped(self, text: str) -> str:
        if text == _EMPTY and not self._takes_empty:
            return ""
        return _ESCAPE.sub(_character, text)


def _code_of(character: str) -> str:
    code = ord(character)
    return f"_x{code:04X}_" if code <= 0xFFFF else f"_x{code:08X}_"


def _character(match: re.Match[str]) -> str:
    code = int(match.group(1), 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else match.group(0)


_COLUMNS = EscapeRules(r"\A#", takes_empty=False)


class NameMapping(NamedTuple):
    """A pair of functions: `spelled` converts a gateway name to the service's, `unspelled` converts it back."""

    spelled: Callable[[str], str]
    unspelled: Callable[[str], str]


UNCHANGED = NameMapping(str, str)

SPELLINGS = {
    Service.DYNAMODB: UNCHANGED,
    Service.AZURE_TABLE: NameMapping(keys.spelled, keys.unspelled),
    Service.TABLE_STORE: NameMapping(_COLUMNS.spelled, _COLUMNS.unspelled),
    Service.TABLEGATE: UNCHANGED,
}


def spelling_of(definition: Definition) -> NameMapping:
    """Return the name mapping of a table's rows."""
    return UNCHANGED if definition.is_stored else SPELLINGS[definition.service]


_DYNAMODB_NAME = re.compile(r"[a-zA-Z0-9_.-]+")


def is_table_name(service: Service, name: str) -> bool:
    match service:
        case Service.DYNAMODB:
            characters_min, characters_max = (
                dynamodb_limits.TABLE_NAME_MIN_CHARACTERS,
                dynamodb_limits.TABLE_NAME_CHARACTERS,
            )
            return (
                characters_min <= len(name) <= characters_max and _DYNAMODB_NAME.fullmatch(name) is not None
            )
        case Service.AZURE_TABLE:
            try:
                check_table_name(name)
            except ServiceError:
                return False
            return name.lower() != "tables"
        case Service.TABLE_STORE:
            return is_name(name)
        case _:
            return True


def table_name(service: Service, name: str) -> str:
    return table_names(service, [name])[name]


def table_names(service: Service, names: Iterable[str]) -> dict[str, str]:
    """Return a distinct name for each table in a service, without regard to case in Azure Table.

    The result does not depend on the order of `names`.
    """
    names_by_table: dict[str, str] = {}
    used_names: set[str] = set()

    def folded(name: str) -> str:
        return name.lower() if service is Service.AZURE_TABLE else name

    ordered = sorted({*names})
    # Names that can stay are assigned first.
    for name in ordered:
        if is_table_name(service, name) and folded(name) not in used_names:
            names_by_table[name] = name
            used_names.add(folded(name))
    for name in ordered:
        if name not in names_by_table:
            names_by_table[name] = azure_name_for(
                name, lambda lowered: lowered in {used_name.lower() for used_name in used_names}
            )
            used_names.add(folded(names_by_table[name]))
    return names_by_table
