"""The rights of stored credentials on a table, as grants decide them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tablegate.gateway.console.sign_in import scope_of
from tablegate.gateway.dialect import Gateway
from tablegate.gateway.model.authorization.accesses import Access
from tablegate.gateway.model.authorization.authorizations import NamedResource, RequestSource
from tablegate.gateway.model.authorization.grants import Verdict
from tablegate.gateway.model.authorization.permissions import Permission, Purpose
from tablegate.gateway.model.authorization.quotas import covers
from tablegate.gateway.security.credentials import Credential

_P = Permission
GROUPS: Mapping[str, Sequence[Permission]] = {
    "Rows": (_P.READ, _P.QUERY, _P.SCAN, _P.PUT, _P.UPDATE, _P.DELETE),
    "Table": (_P.DESCRIBE, _P.CREATE, _P.ALTER, _P.DROP, _P.ALTER_EXPIRY, _P.TAG, _P.UNTAG),
    "Stream": (_P.DESCRIBE_STREAM, _P.READ_STREAM),
    "Backups and recovery": (_P.CREATE_BACKUP, _P.ALTER_RECOVERY, _P.RESTORE_MOMENT),
    "Transfer": (_P.EXPORT, _P.IMPORT, _P.LOAD),
}
"""The permissions that are shown."""
LABELS: Mapping[Permission, str] = {
    _P.ALTER_EXPIRY: "alter time to live",
    _P.RESTORE_MOMENT: "restore to a point in time",
    _P.LOAD: "bulk put",
}
"""The texts of permissions whose names are not those of an API."""
READING = (_P.READ, _P.QUERY, _P.SCAN)
YES, PARTLY, NO = "yes", "partly", "no"
_STREAMS = frozenset({_P.DESCRIBE_STREAM, _P.READ_STREAM})


def label(permission: Permission) -> str:
    """Return the text of a permission."""
    return LABELS.get(permission, permission.value.replace("-", " "))


def right(
    gateway: Gateway, credential: Credential, permission: Permission, namespace: str, table: str
) -> str:
    """Return YES, NO, or PARTLY: under conditions, or by the policy of the table."""
    scope = scope_of(credential, gateway.settings.namespaces)
    if not scope or not covers(scope, namespace):
        return NO
    source = RequestSource("127.0.0.1", True)
    authorization = gateway.credentials.authorization(
        credential.identity, credential.policy, source, gateway.real_now_ms()
    )
    if authorization is None:
        return YES
    authorization.purpose = purpose = Purpose((permission,))
    path = f"{table}/stream/" if permission in _STREAMS else table
    if authorization.refusal_of_named([NamedResource((permission,), namespace, path)]) is not None:
        return NO
    # A verdict without facts of a request is unconditional.
    decision = authorization.policy.decide(Access(permission, purpose.channel, namespace, path, None))
    return YES if decision.verdict is Verdict.ALLOWED else PARTLY
