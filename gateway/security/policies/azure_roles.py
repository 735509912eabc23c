"""Azure's roles for data in tables -> policies (model/authorization/grants.py).

Built-in roles by name and id: "Azure built-in roles for Storage" (Microsoft Learn). What they may do, operation by
operation: "Authorize with Microsoft Entra ID", permissions for calling data operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tablegate.gateway.model.authorization.globs import EVERY
from tablegate.gateway.model.authorization.grants import Effect, Policy, Resources, Statement
from tablegate.gateway.model.authorization.permissions import Channel, Permission

_P = Permission
_READER = frozenset({_P.READ, _P.QUERY, _P.SCAN, _P.LIST, _P.DESCRIBE})
_CONTRIBUTOR = _READER | {_P.PUT, _P.UPDATE, _P.DELETE, _P.CHECK, _P.CREATE, _P.DROP}

ROLES: Mapping[str, frozenset[Permission]] = {
    "Storage Table Data Reader": _READER,
    "76199698-9eea-4c19-bc75-cec21354c6b6": _READER,
    "Storage Table Data Contributor": _CONTRIBUTOR,
    "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3": _CONTRIBUTOR,
}
"""Role, by name or id -> what it may do to all tables of an account."""


def policy_of_roles(roles: Iterable[str]) -> Policy:
    """What somebody with these roles may do; of roles that are not built in, nothing."""
    permissions = frozenset().union(*(ROLES.get(role, frozenset()) for role in roles))
    doors = frozenset((permission, way) for permission in permissions for way in Channel)
    return Policy((Statement(Effect.ALLOW, doors, (Resources(EVERY),)),) if doors else ())
