"""Azure's built-in roles for data in tables, as policies (model/authorization/grants.py).

Names and ids of the roles: "Azure built-in roles for Storage" (Microsoft Learn). Their permissions for each operation:
"Authorize with Microsoft Entra ID", permissions for calling data operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tablegate.gateway.model.authorization.globs import EVERY
from tablegate.gateway.model.authorization.grants import Effect, Policy, Resources, Statement
from tablegate.gateway.model.authorization.permissions import Channel, Permission

_READER = frozenset(
    {Permission.READ, Permission.QUERY, Permission.SCAN, Permission.LIST, Permission.DESCRIBE}
)
_CONTRIBUTOR = _READER | {
    Permission.PUT, Permission.UPDATE, Permission.DELETE, Permission.CHECK, Permission.CREATE, Permission.DROP,
}  # fmt: skip

ROLES: Mapping[str, frozenset[Permission]] = {
    "Storage Table Data Reader": _READER,
    "76199698-9eea-4c19-bc75-cec21354c6b6": _READER,
    "Storage Table Data Contributor": _CONTRIBUTOR,
    "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3": _CONTRIBUTOR,
}
"""Permissions on all tables of an account, by name or id of the role."""


def policy_of_roles(roles: Iterable[str]) -> Policy:
    """Return the policy of these roles. Roles that are not built in allow nothing."""
    permissions = frozenset().union(*(ROLES.get(role, frozenset()) for role in roles))
    pairs = frozenset((permission, channel) for permission in permissions for channel in Channel)
    return Policy((Statement(Effect.ALLOW, pairs, (Resources(EVERY),)),) if pairs else ())
