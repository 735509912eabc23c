"""Encryption of secrets at rest: AES-256-GCM with a key that is not in the database.

HMAC schemes need the secret itself, so it cannot be hashed. With encryption, a copy of the database alone reveals no secret.
The key is TABLEGATE_SECRET_KEY, or the contents of its file. Without them, SQLite uses `<database>.key` beside the database.
That file is created when it is first needed, and only its owner can read it. PostgreSQL requires the setting.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

from tablegate.gateway.configuration.secrets import UnreadableText, read_text
from tablegate.gateway.configuration.settings import BadSetting, Settings

_NONCE_BYTES = 12
LEAST_KEY_CHARACTERS = 16


class WrongKey(Exception):
    """A secret that cannot be decrypted: it was altered, or encrypted with another key or for another credential."""


class SecretCipher:
    """A cipher for secrets. `owner` is authenticated: a text encrypted for one owner cannot be decrypted for another."""

    def __init__(self, key: str) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        # The documentation requires a random key, so a plain digest is enough to derive 32 bytes.
        self._cipher = AESGCM(hashlib.sha256(b"tablegate credentials\0" + key.encode()).digest())

    def encrypt(self, plain: bytes, owner: str) -> bytes:
        """Return the nonce and the encrypted text."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, plain, owner.encode())

    def decrypt(self, data: bytes, owner: str) -> bytes:
        """Return the plain text. Raises WrongKey."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], owner.encode())
        except (InvalidTag, ValueError):
            raise WrongKey(
                "the secret key cannot decrypt the stored credentials. Use the key that encrypted them: --secret-key-file FILE,"
                " or for SQLite the file DATABASE.key beside the database"
            ) from None


def find_key(settings: Settings) -> str:
    """Return the key of these settings. Creates the key file of a SQLite database if needed. Raises BadSetting."""
    if settings.secret_key:
        if len(settings.secret_key) < LEAST_KEY_CHARACTERS:
            raise BadSetting(
                f"{{}} is too short: use at least {LEAST_KEY_CHARACTERS} random characters", "secret_key"
            )
        return settings.secret_key
    if settings.memory:
        return secrets.token_urlsafe(32)
    database = settings.database_path
    if database is None:
        raise BadSetting(
            "stored credentials are encrypted with a key that is not in the database: set TABLEGATE_SECRET_KEY, "
            "or TABLEGATE_SECRET_KEY_FILE to a file that contains it"
        )
    return _key_file(database.with_name(database.name + ".key"))


def _key_file(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        try:
            return read_text(path).strip()
        except UnreadableText as error:
            raise BadSetting(f"the secret key: {error}") from None
    key = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w") as file:
        file.write(key + "\n")
        file.flush()
        os.fsync(file.fileno())
    return key
