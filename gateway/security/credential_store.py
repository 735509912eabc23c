"""Keeping credentials: rows of the database with encrypted secrets <-> Credential, and the file of the first start.

Knows the forms of keys of each scheme. How signatures use them is the dialects'.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from tablegate.gateway.model.authorization.authorizations import PoliciesOfTable
from tablegate.gateway.model.authorization.grants import Policy
from tablegate.gateway.model.tables.tables import RESOURCE_POLICIES
from tablegate.gateway.observability import audit
from tablegate.gateway.security import grant_store
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.secret_cipher import SecretCipher
from tablegate.gateway.store.accounts import credentials as rows
from tablegate.gateway.store.accounts import grants as grant_rows
from tablegate.gateway.store.accounts.credentials import StoredCredential
from tablegate.gateway.store.accounts.grants import StoredGrant
from tablegate.gateway.store.store import Store

_ACCESS_ID = re.compile(r"[\x21-\x7e]{1,128}")
# Storage accounts are named so: https://learn.microsoft.com/azure/storage/common/storage-account-overview
_AZURE_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_AWS_ACCOUNT = re.compile(r"\d{12}")
_KEY_BYTES = 64


class BadCredential(ValueError):
    """A credential that the scheme's clients could not use, or that is there already, or is not there."""


class CredentialStore:
    """The credentials of one database. `key` gives the secret key, and is called only when there is something to encrypt."""

    def __init__(self, store: Store, key: Callable[[], str]) -> None:
        self._store = store
        self._key = key
        self._known_cipher: SecretCipher | None = None
        self._seen: list[StoredCredential] | None = None
        self._seen_grants: list[StoredGrant] = []
        self._seen_policies: dict[tuple[str, str], PoliciesOfTable] = {}
        self.grants = grant_store.GrantStore(store)

    def load(self) -> list[Credential]:
        """All credentials, with what they may do. Raises WrongKey."""
        self._seen, self._seen_grants = self._rows(), self.grants.load()
        self._seen_policies = self._policies()
        found = [self._open(row) for row in self._seen]
        known = grant_store.policies(self._seen_grants, {each.grantee: each.identity for each in found})
        return [dataclasses.replace(each, policy=known[each.grantee]) for each in found]

    def changes(self) -> list[Credential] | None:
        """All credentials if they, grants, or policies of tables are not what they were when they were last loaded, else None."""
        is_same = self._rows() == self._seen and self.grants.load() == self._seen_grants
        return None if is_same and self._policies() == self._seen_policies else self.load()

    @property
    def resource_policies(self) -> Mapping[tuple[str, str], PoliciesOfTable]:
        """The policies of tables that have any, by namespace and table, as of the last load."""
        return self._seen_policies

    @property
    def roles(self) -> dict[str, Policy | None]:
        """What each role lets somebody do who has it by another's word than ours, as of the last load; None: everything."""
        names = {
            grant.grantee.removeprefix(grant_store.ROLE)
            for grant in self._seen_grants
            if grant.grantee.startswith(grant_store.ROLE)
        }
        return {name: grant_store.policy_of_role(self._seen_grants, name) for name in names}

    def add(self, credential: Credential, granted: Iterable[grant_store.WrittenGrant] = ()) -> None:
        """Keep a new credential, which may do what is granted with it. Raises BadCredential, BadGrant, BadPolicy."""
        checked(credential)
        with self._store.write() as session:
            if any(_is(row, credential) for row in rows.all_of(session)):
                raise BadCredential(f"{credential.scheme.value} {credential.access_id} is stored already")
            rows.save(session, self._encrypted(credential))
            grant_store.save_in(session, credential.grantee, granted)
        _record("added", credential.scheme, credential.access_id, credential.place)

    def grant(self, grantee: str, written: grant_store.WrittenGrant) -> StoredGrant:
        """Grant something to a stored credential, a role or everybody. Raises BadCredential, BadGrant, BadPolicy."""
        if grantee != grant_store.EVERYBODY and not grantee.startswith(grant_store.ROLE):
            scheme, _, access_id = grantee.partition("/")
            if all((row.scheme, row.access_id) != (scheme, access_id) for row in self._rows()):
                raise BadCredential(f"no {scheme} credential {access_id} is stored")
        return self.grants.add(grantee, written)

    def replace(self, credential: Credential) -> None:
        """Keep a credential instead of the one of its id. Raises BadCredential."""
        checked(credential)
        with self._store.write() as session:
            rows.save(session, self._encrypted(credential))
        _record("changed", credential.scheme, credential.access_id, credential.place)

    def find(self, scheme: Scheme, access_id: str) -> Credential:
        """The credential of that id. Raises BadCredential."""
        for row in self._rows():
            if (row.scheme, row.access_id) == (scheme.value, access_id):
                return self._open(row)
        raise BadCredential(f"no {scheme.value} credential {access_id} is stored")

    def bind(self, scheme: Scheme, access_id: str, place: str) -> Credential:
        """Give a credential a place, or another one, and keep its secrets. Raises BadCredential."""
        changed = dataclasses.replace(self.find(scheme, access_id), place=place)
        self.replace(changed)
        return changed

    def remove(self, scheme: Scheme, access_id: str) -> None:
        """Forget a credential. Raises BadCredential."""
        with self._store.write() as session:
            if not rows.remove(session, scheme.value, access_id):
                raise BadCredential(f"no {scheme.value} credential {access_id} is stored")
            grant_rows.remove_of(session, f"{scheme.value}/{access_id}")
        _record("removed", scheme, access_id)

    def reseal(self, key: str) -> int:
        """Encrypt all secrets under another key, all or none; how many credentials. Raises WrongKey."""
        cipher = SecretCipher(key)
        with self._store.write() as session:
            known = [self._open(row) for row in rows.all_of(session)]
            self._known_cipher = cipher
            for credential in known:
                rows.save(session, self._encrypted(credential))
        audit.record("credentials resealed", credentials=len(known))
        return len(known)

    def add_first(self, path: Path) -> int:
        """Store the credentials of a file if there are none yet; how many were stored. Raises BadCredential."""
        listed = read_file(path)
        if self._rows():
            return 0
        with self._store.write() as session:
            for credential, granted in listed:
                rows.save(session, self._encrypted(credential))
                grant_store.save_in(session, credential.grantee, granted)
        for credential, _ in listed:
            _record("added", credential.scheme, credential.access_id, credential.place)
        return len(listed)

    def _policies(self) -> dict[tuple[str, str], PoliciesOfTable]:
        with self._store.read() as session:
            return self._store.catalog.with_property(session, RESOURCE_POLICIES)

    def _rows(self) -> list[StoredCredential]:
        with self._store.read() as session:
            return rows.all_of(session)

    @property
    def _cipher(self) -> SecretCipher:
        if self._known_cipher is None:
            self._known_cipher = SecretCipher(self._key())
        return self._known_cipher

    def _encrypted(self, credential: Credential) -> StoredCredential:
        plain = orjson.dumps({"secrets": credential.secrets, "session_token": credential.session_token})
        encrypted = self._cipher.encrypt(plain, f"{credential.scheme.value}/{credential.access_id}")
        return StoredCredential(
            credential.scheme.value,
            credential.access_id,
            credential.place,
            encrypted,
            time.time_ns() // 1_000_000,
        )

    def _open(self, row: StoredCredential) -> Credential:
        plain = orjson.loads(
            self._cipher.decrypt(bytes(row.encrypted_secrets), f"{row.scheme}/{row.access_id}")
        )
        return Credential(
            Scheme(row.scheme), row.access_id, tuple(plain["secrets"]), row.place, plain["session_token"]
        )


def _record(what: str, scheme: Scheme, access_id: str, place: str = "") -> None:
    audit.record(f"credential {what}", scheme=scheme.value, access_id=access_id, place=place)


def checked(credential: Credential) -> Credential:
    """The credential, if clients of its scheme could use it. Raises BadCredential."""
    if not _ACCESS_ID.fullmatch(credential.access_id):
        raise BadCredential("an access id is 1 to 128 visible ASCII characters")
    if not credential.secrets or not all(credential.secrets):
        raise BadCredential(f"{credential.access_id}: the secret is empty")
    match credential.scheme:
        case Scheme.AZURE:
            if not _AZURE_ACCOUNT.fullmatch(credential.access_id):
                raise BadCredential("an Azure account is 3 to 24 lower-case letters and digits")
            if credential.place not in ("", credential.access_id):
                raise BadCredential("an Azure credential is the account itself, and has no other place")
            if len(credential.secrets) != 2:
                raise BadCredential("an Azure account has two keys")
            for key in credential.secrets:
                try:
                    base64.b64decode(key, validate=True)
                except binascii.Error:
                    raise BadCredential(f"{credential.access_id}: an Azure key is base64") from None
        case Scheme.AWS:
            if credential.place and not _AWS_ACCOUNT.fullmatch(credential.place):
                raise BadCredential("an AWS account is 12 digits")
        case Scheme.TABLESTORE:
            pass
    return credential


def new_secret(scheme: Scheme) -> str:
    """A secret of the form that the scheme's own service gives out."""
    if scheme is Scheme.AZURE:
        return base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()
    return base64.b64encode(secrets.token_bytes(30)).decode()


def read_file(path: Path) -> list[tuple[Credential, list[grant_store.WrittenGrant]]]:
    """Credentials of a TOML (`[[credentials]]`) or JSON (`{"credentials": [...]}`, or the list alone) file, with their grants.

    Each has `scheme` (aws, azure, tablestore), `access_id`, `secret` or `secrets`, and, if wanted, `place` ("*" for a Table
    Store key of all instances) and `session_token`; and `grants`: "all", or a list of short forms and of policies. Raises
    BadCredential.
    """
    import tomllib  # like a parser of JSON, but in Python: who has such a file loads it

    try:
        text = path.read_text()
        document: Any = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
        listed = document["credentials"] if isinstance(document, dict) else document
        return [_from_document(entry) for entry in listed]
    except OSError as error:
        raise BadCredential(f"cannot read {path}: {error.strerror}") from None
    except BadCredential as error:
        raise BadCredential(f"{path}: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadCredential(f"{path}: {error.__class__.__name__}: {error}") from None


def _from_document(entry: dict[str, Any]) -> tuple[Credential, list[grant_store.WrittenGrant]]:
    unknown = entry.keys() - {"scheme", "access_id", "secret", "secrets", "place", "session_token", "grants"}
    if unknown:
        raise BadCredential(f"a credential has no {', '.join(sorted(unknown))}")
    scheme = Scheme(entry["scheme"])
    given = list(entry["secrets"]) if "secrets" in entry else [entry["secret"]]
    if scheme is Scheme.AZURE and len(given) == 1:
        given.append(new_secret(scheme))
    credential = Credential(
        scheme, str(entry["access_id"]), tuple(map(str, given)), str(entry.get("place", "")),
        str(entry.get("session_token", "")),
    )  # fmt: skip
    granted = entry.get("grants", [])
    return checked(credential), [grant_store.ALL] if granted == "all" else [
        grant_store.written_of(each) for each in granted
    ]


def _is(row: StoredCredential, credential: Credential) -> bool:
    return row.scheme == credential.scheme.value and row.access_id == credential.access_id
