"""Keeping grants: rows of the database <-> the policy of each credential.

    aws/ACCESS ID, azure/ACCOUNT, tablestore/ACCESS ID   one credential
    role/NAME                                             whoever has the role
    *                                                     everybody who has a stored credential

What a grantee may do is all its own grants, those of its roles, and those of everybody together. A grant that can no
longer be read (by an older release, say) refuses everything: nobody knows what it refused.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tablegate.gateway.model.authorization.authorizations import CallerIdentity
from tablegate.gateway.model.authorization.grants import DENY_ALL, EVERYTHING, Policy, Statement
from tablegate.gateway.model.errors import Busy
from tablegate.gateway.observability import audit
from tablegate.gateway.security.policies import iam_documents, ram_documents, short_forms
from tablegate.gateway.security.policies.errors import BadPolicy
from tablegate.gateway.store.accounts import grants as rows
from tablegate.gateway.store.accounts.grants import StoredGrant
from tablegate.gateway.store.sql.databases import RetryableFailure, Session
from tablegate.gateway.store.store import Store

_log = logging.getLogger(__name__)

EVERYBODY = "*"
ROLE = "role/"


class BadGrant(ValueError):
    """A grant that cannot be, or is not there. The text says why."""


class WrittenGrant(NamedTuple):
    """A grant as it is written: `form` is all, short, iam, ram or role."""

    form: str
    document: str = ""


ALL = WrittenGrant("all")


class GrantStore:
    """The grants of one database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def load(self) -> list[StoredGrant]:
        """All grants, oldest first."""
        with self._store.read() as session:
            return rows.all_of(session)

    def held_by(self, grantee: str) -> list[StoredGrant]:
        """The grants that say what a grantee may do: its own, those of its roles, those of everybody. All there are for "", who
        sees everything. Raises Busy if the database does not answer."""
        try:
            grants = self.load()
        except RetryableFailure as reason:
            raise Busy(str(reason)) from reason
        if not grantee:
            return grants
        roles = {ROLE + each.document for each in grants if each.grantee == grantee and each.form == "role"}
        return [each for each in grants if each.grantee in {grantee, EVERYBODY, *roles}]

    def add(self, grantee: str, written: WrittenGrant) -> StoredGrant:
        """Keep a new grant. Raises BadGrant, BadPolicy."""
        made = _new(grantee, written)
        with self._store.write() as session:
            rows.save(session, made)
        audit.record("grant added", id=made.id, grantee=grantee, form=made.form, document=made.document)
        return made

    def remove(self, grant_id: str) -> None:
        """Take a grant back. Raises BadGrant."""
        with self._store.write() as session:
            if not rows.remove(session, grant_id):
                raise BadGrant(f"there is no grant {grant_id}")
        audit.record("grant removed", id=grant_id)


def save_in(session: Session, grantee: str, written: Iterable[WrittenGrant]) -> None:
    """Keep grants of a grantee in a transaction that is open. Raises BadGrant, BadPolicy."""
    for each in written:
        rows.save(session, _new(grantee, each))


def _new(grantee: str, written: WrittenGrant) -> StoredGrant:
    if written.form == "role" and (grantee == EVERYBODY or grantee.startswith(ROLE) or not written.document):
        raise BadGrant("a role is given to a credential")
    policy_of(written, _ANYBODY)
    return StoredGrant(secrets.token_hex(6), grantee, *written, time.time_ns() // 1_000_000)


_ANYBODY = CallerIdentity("aws", "anybody", "000000000000", "arn:aws:iam::000000000000:user/anybody")


def policy_of(written: WrittenGrant, identity: CallerIdentity) -> Policy:
    """What a written grant is for a caller. Raises BadPolicy. (That of a role: nothing by itself.)"""
    try:
        return _READERS[written.form](written.document, identity)
    except KeyError:
        raise BadPolicy(f"there is no form of grants {written.form}") from None


def _short(document: str, identity: CallerIdentity) -> Policy:
    read: Any = json.loads(document)
    if not isinstance(read, dict):
        raise BadPolicy("a short form is an object")
    return short_forms.short_policy(read)


_READERS: Mapping[str, Callable[[str, CallerIdentity], Policy]] = {
    "all": lambda document, identity: EVERYTHING,
    "short": _short,
    "iam": iam_documents.identity_policy,
    "ram": lambda document, identity: ram_documents.ram_policy(document),
    "role": lambda document, identity: Policy(()),
}


def written_of(document: Any) -> WrittenGrant:
    """The form in which a grant is written: a policy of IAM or RAM by its Version, else a short form. Raises BadPolicy."""
    if not isinstance(document, dict):
        raise BadPolicy("a grant is an object")
    form = "short"
    if "Statement" in document:
        form = "ram" if document.get("Version") == "1" else "iam"
    return WrittenGrant(form, json.dumps(document))


def policies(
    stored: Iterable[StoredGrant], identities: Mapping[str, CallerIdentity]
) -> dict[str, Policy | None]:
    """Grantee -> what it may do; None: everything. `identities`: of all grantees that can ask."""
    of: dict[str, list[WrittenGrant]] = {}
    for grant in stored:
        of.setdefault(grant.grantee, []).append(WrittenGrant(grant.form, grant.document))
    return {grantee: _policy(of, grantee, identity) for grantee, identity in identities.items()}


def _policy(of: Mapping[str, list[WrittenGrant]], grantee: str, identity: CallerIdentity) -> Policy | None:
    own = of.get(grantee, [])
    roles = [each.document for each in own if each.form == "role"]
    written = [*own, *(each for role in roles for each in of.get(ROLE + role, [])), *of.get(EVERYBODY, [])]
    return _together(written, grantee, identity)


def policy_of_role(stored: Iterable[StoredGrant], role: str) -> Policy | None:
    """What a role lets somebody do who has no stored credential; None: everything."""
    written = [WrittenGrant(each.form, each.document) for each in stored if each.grantee == ROLE + role]
    return _together(written, ROLE + role, _ANYBODY)


def _together(written: Iterable[WrittenGrant], grantee: str, identity: CallerIdentity) -> Policy | None:
    statements: list[Statement] = []
    for each in written:
        try:
            statements += policy_of(each, identity).statements
        except ValueError as error:
            _log.error("a grant of %s cannot be read, so that nothing is granted: %s", grantee, error)
            statements += DENY_ALL.statements
    policy = Policy(tuple(statements))
    return None if policy.is_everything else policy
