"""Storage of grants, and the policies that follow from them. Grantees:

    aws/ACCESS ID, azure/ACCOUNT, tablestore/ACCESS ID   one credential
    role/NAME                                             all credentials and identities with the role
    entra/OBJECT_ID, group/GROUP                          identities of trusted tokens (identities.py)
    entra/OBJECT_ID@SCHEME/PLACE, also of groups, roles   the same in one account, where tenants are kept apart
    *                                                     all stored credentials. Its denials count for tokens, too

The policy of a credential is the union of its grants, those of its roles and those of `*`. A grant that cannot be read (an
older release after a newer one, for example) refuses everything, because it may contain a denial.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import orjson

from tablegate.gateway.model.authorization.authorizations import CallerIdentity
from tablegate.gateway.model.authorization.grants import DENY_ALL, EVERYTHING, Effect, Policy, Statement
from tablegate.gateway.model.errors import Busy
from tablegate.gateway.observability import audit
from tablegate.gateway.security import iam_policies, ram_policies, short_policies
from tablegate.gateway.security.credentials import CALLERS_KEPT, TokenPolicies
from tablegate.gateway.security.iam_conditions import BadPolicy
from tablegate.gateway.security.identities import ENTRA, GROUP, ROLE, caller_of, split_account
from tablegate.gateway.store import accounts
from tablegate.gateway.store.accounts import StoredGrant
from tablegate.gateway.store.sql.databases import RetryableFailure, Session
from tablegate.gateway.store.store import Store

_log = logging.getLogger(__name__)

EVERYBODY = "*"
NAMED_BY_TOKENS = (ROLE, ENTRA, GROUP)
"""The beginnings of grantees that are not stored."""


class BadGrant(ValueError):
    """A grant that is invalid or does not exist. The text gives the reason."""


class WrittenGrant(NamedTuple):
    """A grant as a document. `form` is all, short, iam, ram or role."""

    form: str
    document: str = ""


ALL = WrittenGrant("all")


class GrantStore:
    """The grants of one database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def load(self) -> list[StoredGrant]:
        """Return all grants, oldest first."""
        with self._store.read() as session:
            return accounts.all_grants(session)

    def held_by(self, grantee: str) -> list[StoredGrant]:
        """Return the grants that apply to a grantee: its own, those of its roles, and those of `*`.

        Returns all grants if `grantee` is "", the unrestricted caller. Raises Busy if the database does not answer.
        """
        try:
            grants = self.load()
        except RetryableFailure as reason:
            raise Busy(str(reason)) from reason
        if not grantee:
            return grants
        roles = {
            ROLE + grant.document for grant in grants if grant.grantee == grantee and grant.form == "role"
        }
        return [grant for grant in grants if grant.grantee in {grantee, EVERYBODY, *roles}]

    def add(self, grantee: str, document: WrittenGrant) -> StoredGrant:
        """Store a new grant. Raises BadGrant, BadPolicy."""
        grant = _new(grantee, document)
        with self._store.write() as session:
            accounts.save_grant(session, grant)
        audit.record("grant added", id=grant.id, grantee=grantee, form=grant.form, document=grant.document)
        return grant

    def remove(self, grant_id: str) -> None:
        """Remove a grant. Raises BadGrant."""
        with self._store.write() as session:
            if not accounts.remove_grant(session, grant_id):
                raise BadGrant(f"there is no grant {grant_id}. `tablegate grants list` lists all")
        audit.record("grant removed", id=grant_id)


def save_in(session: Session, grantee: str, documents: Iterable[WrittenGrant]) -> None:
    """Store grants of a grantee in an open transaction. Raises BadGrant, BadPolicy."""
    for document in documents:
        accounts.save_grant(session, _new(grantee, document))


def _new(grantee: str, document: WrittenGrant) -> StoredGrant:
    if document.form == "role" and (
        grantee == EVERYBODY or grantee.startswith(ROLE) or not document.document
    ):
        raise BadGrant(
            f"cannot give a role to {grantee}: give it to a credential (SCHEME/ACCESS_ID), entra/OBJECT_ID or group/GROUP"
        )
    if grantee.startswith(NAMED_BY_TOKENS) and _PLACE.search(grantee) and not split_account(grantee)[1]:
        raise BadGrant(
            f"{grantee} names no account: write @aws/ACCOUNT, @azure/ACCOUNT or @tablestore/INSTANCE, or * for all"
        )
    policy_of(document, _MEMBER if grantee.startswith(GROUP) else _ANY_IDENTITY)
    return StoredGrant(secrets.token_hex(6), grantee, *document, time.time_ns() // 1_000_000)


_PLACE = re.compile("@[^@]*/")
_ANY_IDENTITY = CallerIdentity("aws", "anybody", "000000000000", "arn:aws:iam::000000000000:user/anybody")
_MEMBER = CallerIdentity("entra", "", "000000000000", "")
"""An identity of a group or role of tokens. The policy is the same for all, so it has no variables of the caller."""


def policy_of(document: WrittenGrant, identity: CallerIdentity) -> Policy:
    """Return the policy of a grant for a caller. Raises BadPolicy. The policy of a role grant itself is empty."""
    try:
        return _READERS[document.form](document.document, identity)
    except KeyError:
        raise BadPolicy(f"there is no form of grants {document.form}") from None


def _short(document: str, identity: CallerIdentity) -> Policy:
    members: Any = orjson.loads(document)  # which refuses deep nesting without recursion in Python
    if not isinstance(members, dict):
        raise BadPolicy("a short form is an object")
    return short_policies.short_policy(members)


_READERS: Mapping[str, Callable[[str, CallerIdentity], Policy]] = {
    "all": lambda document, identity: EVERYTHING,
    "short": _short,
    "iam": iam_policies.identity_policy,
    "ram": lambda document, identity: ram_policies.ram_policy(document),
    "role": lambda document, identity: Policy(()),
}


def written_of(document: Any) -> WrittenGrant:
    """Return a grant with its form: a policy of IAM or RAM by its Version, else a short form. Raises BadPolicy."""
    if not isinstance(document, dict):
        raise BadPolicy("a grant is a JSON object")
    form = "short"
    if "Statement" in document:
        form = "ram" if document.get("Version") == "1" else "iam"
    return WrittenGrant(form, json.dumps(document))


def policies(
    grants: Iterable[StoredGrant], identities: Mapping[str, CallerIdentity]
) -> dict[str, Policy | None]:
    """Return grantee -> policy, None if it is unrestricted. `identities` has all grantees that send requests."""
    of = _by_grantee(grants)
    return {grantee: _policy(of, grantee, identity) for grantee, identity in identities.items()}


def _by_grantee(grants: Iterable[StoredGrant]) -> dict[str, list[WrittenGrant]]:
    of: dict[str, list[WrittenGrant]] = {}
    for grant in grants:
        of.setdefault(grant.grantee, []).append(WrittenGrant(grant.form, grant.document))
    return of


def _policy(of: Mapping[str, list[WrittenGrant]], grantee: str, identity: CallerIdentity) -> Policy | None:
    own_grants = of.get(grantee, [])
    roles = [grant.document for grant in own_grants if grant.form == "role"]
    grants = [
        *own_grants,
        *(grant for role in roles for grant in of.get(ROLE + role, [])),
        *of.get(EVERYBODY, []),
    ]
    return _union(grants, roles, grantee, identity)


def policies_of_tokens(grants: Iterable[StoredGrant]) -> TokenPolicies:
    """Return the policies of all roles, identities and groups that tokens name, and the denials to all.

    Allowances to `*` are not among them, because they are for stored credentials.
    """
    of = _by_grantee(grants)
    to_all = tuple(grant for grant in of.pop(EVERYBODY, ()) if _denials((grant,), _ANY_IDENTITY))
    policies = {
        grantee: _policy(of, grantee, _caller_of_token(grantee))
        for grantee in of
        if grantee.startswith(NAMED_BY_TOKENS)
    }
    return TokenPolicies(policies, partial(_denials, to_all)) if to_all else TokenPolicies(policies)


@lru_cache(CALLERS_KEPT)
def _denials(grants: tuple[WrittenGrant, ...], caller: CallerIdentity) -> tuple[Statement, ...]:
    """Return the denials in grants to `*`, which can have variables of the caller."""
    policy = _union(grants, (), EVERYBODY, caller)
    statements = () if policy is None else policy.statements
    return tuple(statement for statement in statements if statement.effect is Effect.DENY)


def _caller_of_token(grantee: str) -> CallerIdentity:
    if not grantee.startswith(ENTRA):
        return _MEMBER
    identity, scheme, place = split_account(grantee)
    return caller_of(identity, place) if scheme == "aws" and place != "*" else caller_of(identity)


def _union(
    grants: Iterable[WrittenGrant], roles: Iterable[str], grantee: str, identity: CallerIdentity
) -> Policy | None:
    statements = list(short_policies.policy_of_azure_roles(roles).statements)
    for grant in grants:
        try:
            statements += policy_of(grant, identity).statements
        except ValueError as error:
            _log.error("cannot read a grant of %s, so it is refused everything: %s", grantee, error)
            statements += DENY_ALL.statements
    policy = Policy(tuple(statements))
    return None if policy.is_everything else policy
