"""Encrypting secrets at rest: AES-256-GCM under a key that is not in the database.

HMAC schemes need the secret itself, so it cannot be hashed; encrypted, a copy of the database alone gives nobody a key. Where
the key is: TABLEGATE_SECRET_KEY or a file of it; else, with SQLite, `<database>.key` beside the file, made when it is
first needed, readable by its owner only. With PostgreSQL it must be given.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

from tablegate.gateway.configuration.settings import BadSetting, Settings

_NONCE_BYTES = 12
LEAST_KEY_CHARACTERS = 16


class WrongKey(Exception):
    """A secret cannot be decrypted: it was encrypted under another key, or for another credential, or altered."""


class SecretCipher:
    """Encrypts and decrypts. `owner` is bound in: what was encrypted for one is not decrypted for another."""

    def __init__(self, key: str) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        # The key is random by the documentation's advice, so a plain digest is enough to make it 32 bytes.
        self._cipher = AESGCM(hashlib.sha256(b"tablegate credentials\0" + key.encode()).digest())

    def encrypt(self, plain: bytes, owner: str) -> bytes:
        """The nonce and the encrypted text."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plain, owner.encode())

    def decrypt(self, encrypted: bytes, owner: str) -> bytes:
        """What was encrypted. Raises WrongKey."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(encrypted[:_NONCE_BYTES], encrypted[_NONCE_BYTES:], owner.encode())
        except (InvalidTag, ValueError):
            raise WrongKey("the stored credentials do not open with this secret key") from None


def find_key(settings: Settings) -> str:
    """The key of these settings; makes the key file of a SQLite database that has none. Raises BadSetting."""
    if settings.secret_key:
        if len(settings.secret_key) < LEAST_KEY_CHARACTERS:
            raise BadSetting(f"secret_key: at least {LEAST_KEY_CHARACTERS} characters, best at random")
        return settings.secret_key
    if settings.memory:
        return secrets.token_urlsafe(32)
    database = settings.database_path
    if database is None:
        raise BadSetting(
            "stored credentials are sealed with a key that is not in the database: set TABLEGATE_SECRET_KEY, "
            "or TABLEGATE_SECRET_KEY_FILE to a file that holds it"
        )
    return _key_file(database.with_name(database.name + ".key"))


def _key_file(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    key = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w") as file:
        file.write(key + "\n")
        file.flush()
        os.fsync(file.fileno())
    return key
