"""Administration of credentials, grants, quotas and background work, by documents.

The command line calls the operations on a database that it opens, or by the control API of a running server (--url).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tablegate.gateway.configuration.settings import Settings
from tablegate.gateway.control.documents import (
    AdministratorOperation,
    BadRequest,
    OperationRejected,
    members_of,
    only,
    required,
)
from tablegate.gateway.control.table_administration import TableAdministration
from tablegate.gateway.dialects.dialect import DescribeTable
from tablegate.gateway.engine.engine import Engine
from tablegate.gateway.model.authorization.quotas import RATES, Quota, credential_owner, namespace_owner
from tablegate.gateway.model.tables.tables import Table, is_reserved_namespace
from tablegate.gateway.observability import audit
from tablegate.gateway.observability.audit_sinks import newest_lines
from tablegate.gateway.security.credential_store import BadCredential, CredentialStore, new_secret
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL, NAMED_BY_TOKENS, WrittenGrant
from tablegate.gateway.security.identities import ROLE, split_account
from tablegate.gateway.security.secret_cipher import WrongKey
from tablegate.gateway.store import accounts
from tablegate.gateway.store.sql import progress
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store

_NUMBER = (int, float)
_LIMITS = tuple(field.name for field in dataclasses.fields(Quota))
_LIMIT_MAX = 2**63 - 1


class Administration:
    """The operations on one open database. `describers` returns dialect -> the function that describes its tables.

    It is called for a list of tables only, because it loads the dialects. Each operation takes a document and returns one.
    They raise BadRequest and OperationRejected.
    """

    def __init__(
        self,
        store: Store,
        engine: Engine,
        credential_store: CredentialStore,
        describers: Callable[[], Mapping[str, DescribeTable]],
    ) -> None:
        self._store = store
        self._engine = engine
        self._credentials = credential_store
        self._describers = describers

    @property
    def database(self) -> Database:
        return self._store.database

    def operations(self) -> Sequence[AdministratorOperation]:
        """Return (method, path, operation) of each operation."""
        return (
            ("GET", "/tables", self._list_tables),
            ("POST", "/sweep", self._sweep),
            ("GET", "/credentials", self._list_credentials),
            ("POST", "/credentials", _checked(self._add_credential)),
            ("PUT", "/credentials", _checked(self._change_credential)),
            ("DELETE", "/credentials", _checked(self._remove_credential)),
            ("GET", "/grants", _checked(self._list_grants)),
            ("POST", "/grants", _checked(self._add_grant)),
            ("DELETE", "/grants", _checked(self._remove_grant)),
            ("GET", "/quotas", self._list_quotas),
            ("PUT", "/quotas", self._set_quota),
            ("DELETE", "/quotas", self._remove_quota),
            *TableAdministration(self._engine).operations(),
        )

    # Tables

    def _list_tables(self, given: dict[str, Any]) -> dict[str, Any]:
        only(given)
        tables = self._tables()
        describers = self._describers()
        now_ms = time.time_ns() // 1_000_000
        return {
            "tables": [
                {
                    "name": table.name,
                    "namespace": table.namespace,
                    "state": table.state_at(now_ms).value,
                    "dialects": {dialect: listed(table) for dialect, listed in describers.items()},
                }
                for table in sorted(tables, key=lambda table: (table.namespace, table.name))
            ],
            "work": self.unfinished_work(),
        }

    def _tables(self) -> list[Table]:
        with self._store.read() as session:
            return [
                each for each in self._store.catalog.all(session) if not is_reserved_namespace(each.namespace)
            ]

    def unfinished_work(self) -> list[dict[str, Any]]:
        """Return the unfinished background work: its kind, the table or index, and the rows done and left."""
        tables = self._tables()
        with self._store.read() as session:
            pieces = progress.unfinished_work(session)
        names = {index.id: f"{table.name}/{index.name}" for table in tables for index in table.all_indexes}
        names |= {table.id: table.name for table in tables}
        return [
            {
                "work": piece.work,
                "name": names.get(piece.id, f"dropped, id {piece.id}"),
                "rows_done": piece.done,
                "rows_left": piece.left,
            }
            for piece in pieces
        ]

    def _sweep(self, given: dict[str, Any]) -> dict[str, Any]:
        """Do what is due now, beside the server's own threads, which fill indexes, purge tables and run jobs."""
        only(given)
        self._engine.background.catch_up()
        return {}

    # Audit log

    def audit_lines(self, settings: Settings, earliest_ms: int, latest_ms: int) -> Iterator[str]:
        """Yield lines of the audit log, newest first, of about a range of times."""
        return newest_lines(settings, self._store, earliest_ms, latest_ms)

    # Credentials

    def _list_credentials(self, given: dict[str, Any]) -> dict[str, Any]:
        only(given)
        return {"credentials": [_described(credential) for credential in self._credentials.stored()]}

    def _add_credential(self, given: dict[str, Any]) -> dict[str, Any]:
        """Store a credential. The reply has its secrets that were generated."""
        members = members_of(
            given, scheme=str, access_id=str, secrets=list, place=str, session_token=str, all=bool
        )  # fmt: skip
        scheme, access_id = _identity(members)
        secrets = _texts(members, "secrets")
        required = 2 if scheme is Scheme.AZURE else 1
        if len(secrets) > required:
            raise BadRequest(f"A credential of {scheme.value} has {required} secret(s), not {len(secrets)}.")
        generated = [new_secret(scheme) for _ in range(required - len(secrets))]
        credential = Credential(
            scheme,
            access_id,
            (*secrets, *generated),
            members.get("place", ""),
            members.get("session_token", ""),
        )
        self._credentials.add(credential, [ALL] if members.get("all") else [])
        return {**_described(credential), "secrets": generated}

    def _change_credential(self, given: dict[str, Any]) -> dict[str, Any]:
        """Set the place of a credential, or replace a secret. The reply to the latter has all its secrets."""
        members = members_of(given, scheme=str, access_id=str, place=str, key=int, secret=str)
        scheme, access_id = _identity(members)
        if ("place" in members) == ("key" in members):
            raise BadRequest("give either place or key")
        if "place" in members:
            return _described(self._credentials.bind(scheme, access_id, members["place"]))
        credential = self._credentials.find(scheme, access_id)
        secrets, key = list(credential.secrets), members["key"]
        if not 1 <= key <= len(secrets):
            raise BadCredential(f"{access_id} has no key {key}: only Azure accounts have a second key")
        secrets[key - 1] = members.get("secret") or new_secret(scheme)
        changed = dataclasses.replace(credential, secrets=tuple(secrets))
        self._credentials.replace(changed)
        return {**_described(changed), "secrets": secrets}

    def _remove_credential(self, given: dict[str, Any]) -> dict[str, Any]:
        self._credentials.remove(*_identity(members_of(given, scheme=str, access_id=str)))
        return {}

    # Grants

    def _list_grants(self, given: dict[str, Any]) -> dict[str, Any]:
        members = members_of(given, key=str, scheme=str)
        key = members.get("key")
        grantee = None if key is None else self._credentials.grantee(key, members.get("scheme"))
        return {
            "grants": [
                {"id": grant.id, "grantee": grant.grantee, "form": grant.form, "document": grant.document}
                for grant in self._credentials.grants.load()
                if grantee in (None, grant.grantee)
            ]
        }

    def _add_grant(self, given: dict[str, Any]) -> dict[str, Any]:
        members = members_of(given, key=str, scheme=str, form=str, document=str)
        grantee = self._credentials.grantee(required(members, "key"), members.get("scheme"))
        written = WrittenGrant(required(members, "form"), members.get("document", ""))
        return {"id": self._credentials.grant(grantee, written).id}

    def _remove_grant(self, given: dict[str, Any]) -> dict[str, Any]:
        self._credentials.grants.remove(required(members_of(given, id=str), "id"))
        return {}

    # Quotas

    def _list_quotas(self, given: dict[str, Any]) -> dict[str, Any]:
        only(given)
        with self._store.read() as session:
            return {
                "quotas": [
                    {"owner": owner, "document": document}
                    for owner, document, _ in accounts.all_quotas(session)
                ]
            }

    def _set_quota(self, given: dict[str, Any]) -> dict[str, Any]:
        members = members_of(
            given, scheme=str, access_id=str, namespace=str, requests=_NUMBER, read_units=_NUMBER, write_units=_NUMBER,
            bytes=int, tables=int,
        )  # fmt: skip
        limits = {name: members[name] for name in _LIMITS if name in members}
        if not limits:
            raise BadRequest(f"give at least one limit: {', '.join(_LIMITS)}")
        for name, limit in limits.items():
            if not 0 <= limit <= _LIMIT_MAX or (limit == 0 and name in RATES):
                raise BadRequest(f"{name} must be a positive number of at most {_LIMIT_MAX}")
        access_id = members.get("access_id", "")
        if access_id.startswith(ROLE):
            raise BadRequest(
                f"{access_id}: a role has no quota. Set one for a credential, entra/ID, group/ID or a namespace"
            )
        if access_id.startswith(NAMED_BY_TOKENS) and split_account(access_id)[1]:
            raise BadRequest(f"{access_id}: a quota counts in all accounts. Omit the account after the @")
        owner, document = _owner(members), Quota(**limits).document()
        with self._store.write() as session:
            accounts.save_quota(session, owner, document, time.time_ns() // 1_000_000)
        audit.record("quota set", owner=owner, quota=document)
        return {"owner": owner, "document": document}

    def _remove_quota(self, given: dict[str, Any]) -> dict[str, Any]:
        owner = _owner(members_of(given, scheme=str, access_id=str, namespace=str))
        with self._store.write() as session:
            if not accounts.remove_quota(session, owner):
                raise OperationRejected(404, f"{owner} has no quota. `tablegate quotas list` lists all.")
        audit.record("quota removed", owner=owner)
        return {"owner": owner}


def _checked(
    operation: Callable[[dict[str, Any]], dict[str, Any]],
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the operation with the errors of credentials and grants as BadRequest."""

    def run(given: dict[str, Any]) -> dict[str, Any]:
        try:
            return operation(given)
        except WrongKey as error:
            raise OperationRejected(409, str(error)) from None
        except (ValueError, RecursionError) as error:  # also BadCredential, BadGrant and BadPolicy
            raise BadRequest(str(error)) from None

    return run


def _described(credential: Credential) -> dict[str, Any]:
    return {
        "scheme": credential.scheme.value,
        "access_id": credential.access_id,
        "place": credential.place,
        "has_session_token": bool(credential.session_token),
    }


def _identity(members: Mapping[str, Any]) -> tuple[Scheme, str]:
    schemes = {scheme.value: scheme for scheme in Scheme}
    name = members.get("scheme", Scheme.AWS.value)
    if name not in schemes:
        raise BadRequest(f"scheme must be one of {', '.join(schemes)}")
    return schemes[name], required(members, "access_id")


def _owner(members: Mapping[str, Any]) -> str:
    if ("access_id" in members) == ("namespace" in members):
        raise BadRequest("give either access_id or namespace")
    if "namespace" in members:
        return namespace_owner(members["namespace"])
    scheme, access_id = _identity(members)
    return credential_owner(scheme.value, access_id)


def _texts(members: Mapping[str, Any], name: str) -> list[str]:
    values: list[str] = members.get(name, [])
    if not all(isinstance(value, str) for value in values):
        raise BadRequest(f"{name} must be a list of texts")
    return values
