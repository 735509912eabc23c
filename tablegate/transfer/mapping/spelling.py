"""The names of attributes in each service and in the gateway.

Names that a service does not allow are escaped as `_xHHHH_`. Azure's rules for property names are those of its
adapter. Names of Table Store columns must not begin with `#`. Both directions are inverse to each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tablegate.adapters.azuretable.values import names
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.mapping.escapes import EscapeRules

_COLUMNS = EscapeRules(r"\A#", takes_empty=False)


class NameMapping(NamedTuple):
    """A pair of functions: `spelled` converts a gateway name to the service's, `unspelled` converts it back."""

    spelled: Callable[[str], str]
    unspelled: Callable[[str], str]


UNCHANGED = NameMapping(str, str)

SPELLINGS = {
    Service.DYNAMODB: UNCHANGED,
    Service.AZURE_TABLE: NameMapping(names.spelled, names.unspelled),
    Service.TABLE_STORE: NameMapping(_COLUMNS.spelled, _COLUMNS.unspelled),
    Service.TABLEGATE: UNCHANGED,
}


def spelling_of(definition: Definition) -> NameMapping:
    """Return the name mapping of a table's rows."""
    return UNCHANGED if definition.is_stored else SPELLINGS[definition.service]
