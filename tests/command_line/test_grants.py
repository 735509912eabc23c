"""`tablegate grants`, `credentials add --all`, credentials of files, and what a database keeps of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.security.credential_store import CredentialStore
from tablegate.gateway.security.credentials import Credential, Scheme
from tablegate.gateway.security.grant_store import ALL, WrittenGrant
from tablegate.gateway.store.sql.databases import Database
from tablegate.gateway.store.store import Store

KEY = "a key that is long enough"
POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "*"}],
}


@pytest.fixture
def url(sqlite_template: Path, tmp_path: Path) -> str:
    path = tmp_path / "grants.sqlite"
    path.write_bytes(sqlite_template.read_bytes())
    return f"sqlite:///{path}"


def tablegate(url: str, *words: str, code: int = 0, typed: str | None = None) -> str:
    done = CliRunner().invoke(main, [*words, "--database", url, "--secret-key", KEY], input=typed)
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.output


def test_grants_are_added_listed_and_removed(url: str, tmp_path: Path) -> None:
    tablegate(url, "credentials", "add", "AKID")
    short = tablegate(
        url, "grants", "add", "AKID", "--read", "orders*", "--write", "orders", "--keys", "u1"
    ).strip()
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(POLICY))
    iam = tablegate(url, "grants", "add", "AKID", "--policy", str(file)).strip()
    tablegate(url, "grants", "add", "AKID", "--policy", "-", typed=json.dumps({**POLICY, "Id": "x"}))
    tablegate(url, "grants", "add", "role/clerk", "--all")
    tablegate(url, "grants", "add", "AKID", "--role", "clerk")
    listed = tablegate(url, "grants", "list").splitlines()
    assert listed[0].startswith(f"{short}\taws/AKID\tshort\t")
    assert json.loads(listed[0].split("\t")[3]) == {"keys": ["u1"], "read": ["orders*"], "write": ["orders"]}
    assert listed[1].startswith(f"{iam}\taws/AKID\tiam\t")
    assert [line.split("\t")[1] for line in listed] == ["aws/AKID"] * 3 + ["role/clerk", "aws/AKID"]
    assert tablegate(url, "grants", "list", "role/clerk").count("\n") == 1
    assert tablegate(url, "grants", "remove", iam) == f"removed {iam}\n"
    assert "there is no grant" in tablegate(url, "grants", "remove", iam, code=1)
    assert tablegate(url, "grants", "list", "AKID").count("\n") == 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("AKID",), "Give one of: actions"),
        (("AKID", "--all", "--read", "x"), "Give one of: actions"),
        (("AKID", "--all", "--deny"), "Use --deny with actions"),
        (("NOBODY", "--all"), "no credential NOBODY is stored"),
        (("AKID", "--scheme", "azure", "--all"), "no azure credential AKID is stored"),
        (("AKID", "--define", "x", "--keys", "u1"), "keys and attributes are allowed with"),
        (("*", "--role", "clerk"), "cannot give a role to *"),
        (("AKID", "--policy", "-"), "a grant must have at least one of"),
    ],
)
def test_an_invalid_grant_is_refused_and_not_stored(url: str, words: tuple[str, ...], told: str) -> None:
    tablegate(url, "credentials", "add", "AKID")
    done = CliRunner().invoke(
        main, ["grants", "add", *words, "--database", url, "--secret-key", KEY], input="{}"
    )
    assert done.exit_code != 0
    assert told in done.output
    assert tablegate(url, "grants", "list") == ""


def test_a_new_credential_may_do_nothing_unless_it_is_made_with_all(url: str) -> None:
    tablegate(url, "credentials", "add", "NONE")
    tablegate(url, "credentials", "add", "FULL", "--all")
    listed = tablegate(url, "grants", "list").splitlines()
    assert [line.split("\t")[1:] for line in listed] == [["aws/FULL", "all"]]
    tablegate(url, "credentials", "remove", "FULL")
    assert tablegate(url, "grants", "list") == ""


def test_grants_of_a_credential_its_roles_and_all_callers_add_up(database: Database) -> None:
    store = CredentialStore(Store(database), lambda: KEY)
    store.add(Credential(Scheme.AWS, "AKID", ("x",)))
    assert policies(store) == {"AKID": 0}
    store.grant("aws/AKID", WrittenGrant("iam", json.dumps(POLICY)))
    store.grant("*", WrittenGrant("iam", json.dumps(POLICY)))
    store.grant("role/clerk", WrittenGrant("iam", json.dumps(POLICY)))
    assert policies(store) == {"AKID": 2}
    store.grant("aws/AKID", WrittenGrant("role", "clerk"))
    assert policies(store) == {"AKID": 3}
    assert store.changes() is None
    store.grant("role/clerk", ALL)
    assert store.changes() is not None
    assert policies(store) == {"AKID": None}  # everything
    assert store.token_policies == {"role/clerk": None}


def policies(store: CredentialStore) -> dict[str, Any]:
    """Return the number of statements by access id. None marks an unrestricted caller."""
    return {
        each.access_id: None if each.policy is None else len(each.policy.statements) for each in store.load()
    }


def test_a_grant_that_cannot_be_read_any_more_refuses_everything(database: Database) -> None:
    store = CredentialStore(Store(database), lambda: KEY)
    store.add(Credential(Scheme.AWS, "AKID", ("x",)), [ALL])
    with Store(database).write() as session:
        session.execute("UPDATE grants SET form = 'of a later release'")
    [found] = store.load()
    assert found.policy is not None
    assert found.policy.statements[0].effect.value == "deny"


def test_credentials_of_a_file_show_their_grants(database: Database, tmp_path: Path) -> None:
    listed = [
        {"scheme": "aws", "access_id": "NONE", "secret": "x"},
        {"scheme": "aws", "access_id": "FULL", "secret": "x", "grants": "all"},
        {"scheme": "aws", "access_id": "SOME", "secret": "x", "grants": [{"read": ["T"]}, POLICY]},
    ]
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps(listed))
    store = CredentialStore(Store(database), lambda: KEY)
    assert store.add_first(file) == 3
    assert policies(store) == {"NONE": 0, "FULL": None, "SOME": 2}


def test_the_scheme_is_that_of_the_only_credential_of_the_name(url: str) -> None:
    tablegate(url, "credentials", "add", "shop", "--scheme", "azure")
    tablegate(url, "grants", "add", "shop", "--read", "orders")
    assert tablegate(url, "grants", "list", "shop").split("\t")[1] == "azure/shop"
    tablegate(url, "credentials", "add", "shop")
    told = tablegate(url, "grants", "add", "shop", "--read", "orders", code=1)
    assert "shop is a credential of aws and of azure. Choose one with --scheme" in told
    tablegate(url, "grants", "add", "shop", "--scheme", "aws", "--read", "orders")
    assert "no credential nobody is stored" in tablegate(url, "grants", "list", "nobody", code=1)


def test_the_two_grants_that_are_wanted_most(url: str) -> None:
    tablegate(url, "credentials", "add", "app")
    tablegate(url, "grants", "add", "app", "--read-only", "reports*", "--read-only", "news")
    tablegate(url, "grants", "add", "app", "--read-write", "drafts", "--stream", "drafts")
    first, second = (
        json.loads(line.split("\t")[3]) for line in tablegate(url, "grants", "list").splitlines()
    )
    assert first == {key: ["reports*", "news"] for key in ("read", "query", "scan")}
    assert second == {key: ["drafts"] for key in ("read", "query", "scan", "write", "delete", "stream")}
