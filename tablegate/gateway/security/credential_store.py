"""Storage of credentials with encrypted secrets in the database, and the credentials file of the first start.

The forms of the keys of each scheme are checked here. The dialects compute signatures with them.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from tablegate.gateway.configuration.secrets import UnreadableText, read_text
from tablegate.gateway.model.authorization.authorizations import PoliciesOfTable
from tablegate.gateway.observability import audit
from tablegate.gateway.security import grant_store
from tablegate.gateway.security.credentials import Credential, Scheme, TokenPolicies
from tablegate.gateway.security.secret_cipher import SecretCipher
from tablegate.gateway.store import accounts
from tablegate.gateway.store.accounts import StoredCredential, StoredGrant
from tablegate.gateway.store.store import Store

_ACCESS_ID = re.compile(r"[\x21-\x7e]{1,128}")
# Names of storage accounts: https://learn.microsoft.com/azure/storage/common/storage-account-overview
_AZURE_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_AWS_ACCOUNT = re.compile(r"\d{12}")
_KEY_BYTES = 64


class BadCredential(ValueError):
    """A credential that is invalid for its scheme, exists already, or does not exist."""


class CredentialStore:
    """The credentials of one database. `key` returns the secret key and is called at the first encryption or decryption."""

    def __init__(self, store: Store, key: Callable[[], str]) -> None:
        self._store = store
        self._key = key
        self._known_cipher: SecretCipher | None = None
        self._seen: list[StoredCredential] | None = None
        self._seen_grants: list[StoredGrant] = []
        self._seen_policies: dict[tuple[str, str], PoliciesOfTable] = {}
        self.grants = grant_store.GrantStore(store)

    def stored(self) -> list[Credential]:
        """Return all credentials without their policies. Raises WrongKey."""
        return [self._decrypt(row) for row in self._rows()]

    def load(self) -> list[Credential]:
        """Return all credentials with their policies, to put them in force (`changes`). Raises WrongKey."""
        self._seen, self._seen_grants = self._rows(), self.grants.load()
        self._seen_policies = self._policies()
        credentials = [self._decrypt(row) for row in self._seen]
        policies = grant_store.policies(
            self._seen_grants, {credential.grantee: credential.identity for credential in credentials}
        )
        return [
            dataclasses.replace(credential, policy=policies[credential.grantee]) for credential in credentials
        ]

    def changes(self) -> list[Credential] | None:
        """Return all credentials if credentials, grants or policies of tables have changed since the last load. Else None."""
        is_same = self._rows() == self._seen and self.grants.load() == self._seen_grants
        return None if is_same and self._policies() == self._seen_policies else self.load()

    @property
    def resource_policies(self) -> Mapping[tuple[str, str], PoliciesOfTable]:
        """The resource policies of tables as of the last load, by namespace and table."""
        return self._seen_policies

    @property
    def token_policies(self) -> TokenPolicies:
        """The policies of roles, identities and groups as of the last load."""
        return grant_store.policies_of_tokens(self._seen_grants)

    def add(self, credential: Credential, grants: Iterable[grant_store.WrittenGrant] = ()) -> None:
        """Store a new credential with its grants. Raises BadCredential, BadGrant, BadPolicy."""
        check(credential)
        with self._store.write() as session:
            if any(_is(row, credential) for row in accounts.all_credentials(session)):
                raise BadCredential(f"{credential.scheme.value} {credential.access_id} is stored already")
            accounts.save_credential(session, self._encrypt(credential))
            grant_store.save_in(session, credential.grantee, grants)
        _record("added", credential.scheme, credential.access_id, credential.place)

    def grantee(self, key: str, scheme: str | None) -> str:
        """Return the grantee of a credential, or the key itself if it is not the name of a credential. Raises BadCredential.

        `scheme`: None if a credential of any scheme is meant, and only one scheme has the key.
        """
        if key == grant_store.EVERYBODY or key.startswith(grant_store.NAMED_BY_TOKENS):
            return key
        if scheme is None:
            schemes = [row.scheme for row in self._rows() if row.access_id == key]
            if not schemes:
                raise BadCredential(f"no credential {key} is stored. `tablegate credentials list` lists all")
            if len(schemes) > 1:
                raise BadCredential(
                    f"{key} is a credential of {' and of '.join(schemes)}. Choose one with --scheme"
                )
            [scheme] = schemes
        return f"{scheme}/{key}"

    def grant(self, grantee: str, document: grant_store.WrittenGrant) -> StoredGrant:
        """Add a grant to a grantee of grant_store.py. Raises BadCredential, BadGrant, BadPolicy."""
        if grantee != grant_store.EVERYBODY and not grantee.startswith(grant_store.NAMED_BY_TOKENS):
            scheme, _, access_id = grantee.partition("/")
            if all((row.scheme, row.access_id) != (scheme, access_id) for row in self._rows()):
                raise BadCredential(f"no {scheme} credential {access_id} is stored")
        return self.grants.add(grantee, document)

    def replace(self, credential: Credential) -> None:
        """Store a credential in place of the one with its id. Raises BadCredential."""
        check(credential)
        with self._store.write() as session:
            accounts.save_credential(session, self._encrypt(credential))
        _record("changed", credential.scheme, credential.access_id, credential.place)

    def find(self, scheme: Scheme, access_id: str) -> Credential:
        """Return the credential of that id. Raises BadCredential."""
        for row in self._rows():
            if (row.scheme, row.access_id) == (scheme.value, access_id):
                return self._decrypt(row)
        raise BadCredential(f"no {scheme.value} credential {access_id} is stored")

    def bind(self, scheme: Scheme, access_id: str, place: str) -> Credential:
        """Set the place of a credential. Raises BadCredential."""
        credential = dataclasses.replace(self.find(scheme, access_id), place=place)
        self.replace(credential)
        return credential

    def remove(self, scheme: Scheme, access_id: str) -> None:
        """Remove a credential and its grants. Raises BadCredential."""
        with self._store.write() as session:
            if not accounts.remove_credential(session, scheme.value, access_id):
                raise BadCredential(f"no {scheme.value} credential {access_id} is stored")
            accounts.remove_grants_of(session, f"{scheme.value}/{access_id}")
        _record("removed", scheme, access_id)

    def reseal(self, key: str) -> int:
        """Encrypt all secrets with another key, in one transaction. Returns the number of credentials. Raises WrongKey."""
        cipher = SecretCipher(key)
        with self._store.write() as session:
            credentials = [self._decrypt(row) for row in accounts.all_credentials(session)]
            self._known_cipher = cipher
            for credential in credentials:
                accounts.save_credential(session, self._encrypt(credential))
        audit.record("credentials resealed", credentials=len(credentials))
        return len(credentials)

    def add_first(self, path: Path) -> int:
        """Store the credentials of a file if there are none yet. Returns the number stored. Raises BadCredential."""
        entries = read_file(path)
        if self._rows():
            return 0
        with self._store.write() as session:
            for credential, grants in entries:
                accounts.save_credential(session, self._encrypt(credential))
                grant_store.save_in(session, credential.grantee, grants)
        for credential, _ in entries:
            _record("added", credential.scheme, credential.access_id, credential.place)
        return len(entries)

    def _policies(self) -> dict[tuple[str, str], PoliciesOfTable]:
        with self._store.read() as session:
            return self._store.catalog.resource_policies(session)

    def _rows(self) -> list[StoredCredential]:
        with self._store.read() as session:
            return accounts.all_credentials(session)

    @property
    def _cipher(self) -> SecretCipher:
        if self._known_cipher is None:
            self._known_cipher = SecretCipher(self._key())
        return self._known_cipher

    def _encrypt(self, credential: Credential) -> StoredCredential:
        plain = orjson.dumps({"secrets": credential.secrets, "session_token": credential.session_token})
        encrypted = self._cipher.encrypt(plain, f"{credential.scheme.value}/{credential.access_id}")
        return StoredCredential(
            credential.scheme.value,
            credential.access_id,
            credential.place,
            encrypted,
            time.time_ns() // 1_000_000,
        )

    def _decrypt(self, row: StoredCredential) -> Credential:
        plain = orjson.loads(
            self._cipher.decrypt(bytes(row.encrypted_secrets), f"{row.scheme}/{row.access_id}")
        )
        return Credential(
            Scheme(row.scheme), row.access_id, tuple(plain["secrets"]), row.place, plain["session_token"]
        )


def _record(change: str, scheme: Scheme, access_id: str, place: str = "") -> None:
    audit.record(f"credential {change}", scheme=scheme.value, access_id=access_id, place=place)


def check(credential: Credential) -> Credential:
    """Return the credential, if it is valid for its scheme. Raises BadCredential."""
    if not _ACCESS_ID.fullmatch(credential.access_id):
        raise BadCredential(
            f"{credential.access_id[:128]!r}: an access id is 1 to 128 visible ASCII characters"
        )
    if not credential.secrets or not all(credential.secrets):
        raise BadCredential(f"{credential.access_id}: the secret is empty")
    try:
        "".join([*credential.secrets, credential.session_token]).encode()
    except UnicodeEncodeError:
        raise BadCredential(f"{credential.access_id}: the secret or session token is not UTF-8") from None
    match credential.scheme:
        case Scheme.AZURE:
            if not _AZURE_ACCOUNT.fullmatch(credential.access_id):
                raise BadCredential(
                    f"{credential.access_id}: an Azure account is 3 to 24 lower-case letters and digits"
                )
            if credential.place not in ("", credential.access_id):
                raise BadCredential(f"{credential.access_id}: an Azure credential has no place: remove it")
            if len(credential.secrets) != 2:
                raise BadCredential(f"{credential.access_id}: an Azure account has two keys")
            for key in credential.secrets:
                try:
                    base64.b64decode(key, validate=True)
                except ValueError:
                    raise BadCredential(f"{credential.access_id}: an Azure key must be base64") from None
        case Scheme.AWS:
            if credential.place and not _AWS_ACCOUNT.fullmatch(credential.place):
                raise BadCredential(
                    f"{credential.place}: the place of an AWS credential is an account of 12 digits"
                )
        case Scheme.TABLESTORE:
            pass
    return credential


def new_secret(scheme: Scheme) -> str:
    """Return a random secret in the form of the scheme's service."""
    if scheme is Scheme.AZURE:
        return base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()
    return base64.b64encode(secrets.token_bytes(30)).decode()


def read_file(path: Path) -> list[tuple[Credential, list[grant_store.WrittenGrant]]]:
    """Return the credentials of a file with their grants. Raises BadCredential.

    The file is TOML (`[[credentials]]`) or JSON (`{"credentials": [...]}`, or the list alone). Members of a credential:
    - `scheme`: aws, azure or tablestore.
    - `access_id`, and `secret` or `secrets`.
    - `place` (optional): "*" makes a Table Store key valid in all instances.
    - `session_token` (optional).
    - `grants` (optional): "all", or a list of short forms and policies.
    """
    import tomllib  # loaded on demand, since it is slow to import

    try:
        text = read_text(path)
        document: Any = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
        entries = document["credentials"] if isinstance(document, dict) else document
        return [_from_document(entry) for entry in entries]
    except UnreadableText as error:
        raise BadCredential(str(error)) from None
    except BadCredential as error:
        raise BadCredential(f"{path}: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadCredential(f"{path}: {error.__class__.__name__}: {error}") from None


def _from_document(entry: dict[str, Any]) -> tuple[Credential, list[grant_store.WrittenGrant]]:
    unknown = entry.keys() - {"scheme", "access_id", "secret", "secrets", "place", "session_token", "grants"}
    if unknown:
        raise BadCredential(f"unknown members of a credential: {', '.join(sorted(unknown))}")
    scheme = Scheme(entry["scheme"])
    key_texts = list(entry["secrets"]) if "secrets" in entry else [entry["secret"]]
    if scheme is Scheme.AZURE and len(key_texts) == 1:
        key_texts.append(new_secret(scheme))
    credential = Credential(
        scheme, str(entry["access_id"]), tuple(map(str, key_texts)), str(entry.get("place", "")),
        str(entry.get("session_token", "")),
    )  # fmt: skip
    grants = entry.get("grants", [])
    return check(credential), [grant_store.ALL] if grants == "all" else [
        grant_store.written_of(grant) for grant in grants
    ]


def _is(row: StoredCredential, credential: Credential) -> bool:
    return row.scheme == credential.scheme.value and row.access_id == credential.access_id
