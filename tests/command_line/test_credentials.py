"""Credentials: encrypted in the database, taken up by a running server, given by a file at the first start."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import BadSetting
from tablegate.gateway.security.credential_store import BadCredential, CredentialStore, new_secret
from tablegate.gateway.security.credentials import (
    ANY_PLACE,
    DEV_AZURE_ACCOUNT,
    Credential,
    Credentials,
    Scheme,
)
from tablegate.gateway.security.secret_cipher import SecretCipher, WrongKey, find_key
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store

KEY = "a key that is long enough"
AWS = Credential(Scheme.AWS, "AKIDEXAMPLE", ("swordfish",), "123456789012", "token")


@pytest.fixture
def credential_store(database: Database) -> CredentialStore:
    return CredentialStore(Store(database), lambda: KEY)


def test_stored_credentials_are_loaded_and_removed(credential_store: CredentialStore) -> None:
    azure = Credential(Scheme.AZURE, "account1", (new_secret(Scheme.AZURE), new_secret(Scheme.AZURE)))
    credential_store.add(AWS)
    credential_store.add(azure)
    assert credential_store.load() == [AWS, azure]
    credential_store.remove(Scheme.AWS, AWS.access_id)
    assert credential_store.load() == [azure]


def test_secrets_are_not_in_clear(credential_store: CredentialStore, database: Database) -> None:
    credential_store.add(AWS)
    with database.read() as session:
        [(encrypted,)] = session.query("SELECT encrypted_secrets FROM credentials")
    assert b"swordfish" not in bytes(encrypted)
    assert "swordfish" not in repr(AWS)


def test_another_secret_key_does_not_decrypt_credentials(
    credential_store: CredentialStore, database: Database
) -> None:
    credential_store.add(AWS)
    with pytest.raises(WrongKey):
        CredentialStore(Store(database), lambda: "another key, long enough").load()


def test_a_seal_is_bound_to_its_owner() -> None:
    encrypted = SecretCipher(KEY).encrypt(b"swordfish", "aws/one")
    with pytest.raises(WrongKey):
        SecretCipher(KEY).decrypt(encrypted, "aws/two")


def test_changes_are_noticed_once(credential_store: CredentialStore, database: Database) -> None:
    credential_store.load()
    assert credential_store.changes() is None
    CredentialStore(Store(database), lambda: KEY).add(AWS)
    assert credential_store.changes() == [AWS]
    assert credential_store.changes() is None


@pytest.mark.parametrize(
    ("credential", "words"),
    [
        (Credential(Scheme.AZURE, "Upper", ("eA==", "eA==")), "lower-case"),
        (Credential(Scheme.AZURE, "account1", ("eA==",)), "two keys"),
        (Credential(Scheme.AZURE, "account1", ("eA==", "not base64")), "base64"),
        (Credential(Scheme.AZURE, "account1", ("eA==", "not base64 é")), "base64"),
        (Credential(Scheme.AWS, "has space", ("x",)), "visible ASCII"),
        (Credential(Scheme.AWS, "a", ("\udcff",)), "not UTF-8"),
        (Credential(Scheme.AWS, "a", ("x",), session_token="\udcff"), "not UTF-8"),
        (Credential(Scheme.AWS, "a", ("x",), "12"), "12 digits"),
        (Credential(Scheme.AWS, "a", ("x",), ANY_PLACE), "12 digits"),
        (
            Credential(Scheme.AZURE, "account1", ("eA==", "eA=="), "account2"),
            "an Azure credential has no place",
        ),
        (
            Credential(Scheme.AZURE, "account1", ("eA==", "eA=="), ANY_PLACE),
            "an Azure credential has no place",
        ),
        (Credential(Scheme.TABLESTORE, "a", ("",)), "empty"),
        (AWS, "stored already"),
    ],
)
def test_a_credential_of_no_use_is_refused(
    credential_store: CredentialStore, credential: Credential, words: str
) -> None:
    credential_store.add(AWS)
    with pytest.raises(BadCredential, match=words):
        credential_store.add(credential)


def test_the_file_of_the_first_start_counts_only_then(
    credential_store: CredentialStore, tmp_path: Path
) -> None:
    toml, listed = tmp_path / "c.toml", tmp_path / "c.json"
    toml.write_text('[[credentials]]\nscheme = "aws"\naccess_id = "one"\nsecret = "x"\n')
    listed.write_text(
        json.dumps([{"scheme": "tablestore", "access_id": "two", "secret": "y", "place": "instance"}])
    )
    assert credential_store.add_first(toml) == 1
    assert credential_store.add_first(listed) == 0
    assert [item.access_id for item in credential_store.load()] == ["one"]


@pytest.mark.parametrize(
    "text", ["{", '[{"scheme": "aws"}]', '[{"scheme": "gcp", "access_id": "a", "secret": "b"}]', "7"]
)
def test_a_file_of_no_use_is_named(credential_store: CredentialStore, tmp_path: Path, text: str) -> None:
    file = tmp_path / "c.json"
    file.write_text(text)
    with pytest.raises(BadCredential, match=r"c\.json"):
        credential_store.add_first(file)


def test_the_key_of_a_sqlite_database_is_made_beside_it(tmp_path: Path) -> None:
    settings = load({"database": str(tmp_path / "a.sqlite")}, {})
    key = find_key(settings)
    assert find_key(settings) == key
    assert (tmp_path / "a.sqlite.key").stat().st_mode & 0o777 == 0o600


def test_postgresql_requires_a_given_key() -> None:
    with pytest.raises(BadSetting, match="TABLEGATE_SECRET_KEY"):
        find_key(load({"database": "postgresql://h/d"}, {}))
    with pytest.raises(BadSetting, match="at least 16"):
        find_key(load({"secret_key": "short"}, {}))


def test_dev_accepts_the_published_keys_and_strict_does_not() -> None:
    dev, strict = Credentials(load({}, {})), Credentials(load({"auth": "strict"}, {}))
    account = dev.find(Scheme.AZURE, DEV_AZURE_ACCOUNT)
    assert account is not None
    assert account.secrets[0].startswith("Eby8vdM0")
    assert dev.find(Scheme.TABLESTORE, "tablegate") is not None
    assert strict.find(Scheme.AZURE, DEV_AZURE_ACCOUNT) is None


def test_namespaces_are_shared_or_separate() -> None:
    shared = Credentials(load({}, {}))
    assert (
        shared.namespace(Scheme.AWS, "1", "us-east-1") == shared.namespace(Scheme.AZURE, "other") == "shared"
    )
    separate = Credentials(load({"namespaces": "separate"}, {}))
    assert separate.namespace(Scheme.AWS, "1", "us-east-1") == "aws/1/us-east-1"
    assert separate.namespace(Scheme.AZURE, "acca") == "azure/acca"
    assert separate.namespace(Scheme.TABLESTORE, "acca") == "tablestore/acca"
    assert separate.namespace(Scheme.TABLESTORE, "a/b") == "tablestore/a%2Fb"
    assert separate.namespace(Scheme.TABLESTORE, "a%2Fb") == "tablestore/a%252Fb"


@pytest.mark.parametrize("auth", ["dev", "strict"])
@pytest.mark.parametrize("namespaces", ["shared", "separate"])
def test_a_credential_without_a_place_enters_all_unless_tenants_are_kept_apart(
    auth: str, namespaces: str
) -> None:
    known = Credentials(load({"auth": auth, "namespaces": namespaces}, {}))
    unsaid = Credential(Scheme.TABLESTORE, "id", ("x",))
    assert known.is_valid_in(unsaid, "one") is ((auth, namespaces) != ("strict", "separate"))
    bound, of_all = dataclasses.replace(unsaid, place="one"), dataclasses.replace(unsaid, place=ANY_PLACE)
    assert [known.is_valid_in(bound, place) for place in ("one", "two", "One", "")] == [
        True,
        False,
        False,
        False,
    ]
    assert known.is_valid_in(of_all, "one")
    assert known.is_valid_in(of_all, "two")


def test_a_credential_without_access_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    stored = [
        Credential(Scheme.TABLESTORE, "unsaid", ("x",)),
        Credential(Scheme.TABLESTORE, "bound", ("x",), "one"),
        Credential(Scheme.AWS, "aws", ("x",)),
    ]
    Credentials(load({"auth": "strict"}, {}), stored)
    assert caplog.messages == []
    Credentials(load({"auth": "strict", "namespaces": "separate"}, {}), stored)
    [told] = caplog.messages
    assert "unsaid reaches no instance" in told


def test_a_place_can_be_given_later_and_the_secret_stays(credential_store: CredentialStore) -> None:
    credential_store.add(Credential(Scheme.TABLESTORE, "id", ("x",)))
    assert credential_store.bind(Scheme.TABLESTORE, "id", "one") == Credential(
        Scheme.TABLESTORE, "id", ("x",), "one"
    )
    credential_store.bind(Scheme.TABLESTORE, "id", ANY_PLACE)
    assert credential_store.load() == [Credential(Scheme.TABLESTORE, "id", ("x",), ANY_PLACE)]
    with pytest.raises(BadCredential, match="no tablestore credential other"):
        credential_store.bind(Scheme.TABLESTORE, "other", "one")
