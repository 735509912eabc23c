"""What attributes are called in rows of each service, and what they are called in the gateway.

A name that a service does not take is written there with `_xHHHH_`: by Azure's rules for property names, which are the adapter's,
and for Table Store, whose columns begin with no `#`, in the same manner. Both directions are each other's inverse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tablegate.adapters.azuretable.values import names
from tablegate.transfer.endpoints.endpoint import Definition, Service
from tablegate.transfer.mapping.escapes import EscapeRules

_COLUMNS = EscapeRules(r"\A#", takes_empty=False)


class NameMapping(NamedTuple):
    """`spelled`: a name of the gateway as the service has it; `unspelled`: the way back."""

    spelled: Callable[[str], str]
    unspelled: Callable[[str], str]


AS_IT_IS = NameMapping(str, str)

SPELLINGS = {
    Service.DYNAMODB: AS_IT_IS,
    Service.AZURE_TABLE: NameMapping(names.spelled, names.unspelled),
    Service.TABLE_STORE: NameMapping(_COLUMNS.spelled, _COLUMNS.unspelled),
    Service.TABLEGATE: AS_IT_IS,
}


def spelling_of(definition: Definition) -> NameMapping:
    """How attributes are called in the rows of a table."""
    return AS_IT_IS if definition.is_stored else SPELLINGS[definition.service]
