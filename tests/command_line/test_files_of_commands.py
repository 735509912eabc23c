"""Files that are not what a command expects, and malformed URLs: one clear line each."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tablegate.gateway.__main__ import main


def run(folder: Path, *words: str) -> Result:
    with contextlib.chdir(folder):
        return CliRunner().invoke(main, words)


@pytest.mark.parametrize(
    "words",
    [
        ("grants", "add", "KEY", "--policy", "binary"),
        ("credentials", "add", "OTHER", "--secret-file", "binary"),
        ("credentials", "add", "OTHER", "--session-token-file", "binary"),
        ("credentials", "rotate", "KEY", "--secret-file", "binary"),
        ("credentials", "reseal", "--new-secret-key-file", "binary"),
        ("config", "--config", "binary"),
        ("config", "--secret-key-file", "binary"),
        ("config", "--admin-token-file", "binary"),
        ("tables", "--database", "file:binary"),
        ("serve", "--credentials-file", "binary"),
    ],
    ids=" ".join,
)
def test_a_file_that_is_not_text_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert run(tmp_path, "migrate").exit_code == 0
    assert run(tmp_path, "credentials", "add", "KEY").exit_code == 0
    done = run(tmp_path, *words)
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    assert "annot read binary: it is not text in UTF-8" in done.stderr


def test_a_key_file_that_is_not_text_is_named(tmp_path: Path) -> None:
    assert run(tmp_path, "migrate").exit_code == 0
    (tmp_path / "tablegate.sqlite.key").write_bytes(b"\xff")
    done = run(tmp_path, "credentials", "add", "KEY")
    assert isinstance(done.exception, SystemExit)
    assert "tablegate.sqlite.key: it is not text in UTF-8" in done.stderr


def test_a_policy_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    assert run(tmp_path, "migrate").exit_code == 0
    (tmp_path / "deep.json").write_text("[" * 100_000)
    done = run(tmp_path, "grants", "add", "KEY", "--policy", "deep.json")
    assert isinstance(done.exception, SystemExit)
    assert "deep.json is nested too deeply" in done.stderr


@pytest.mark.parametrize("url", ["postgresql://me:hidden@[::1/db", "postgresql://me:hidden@a\u2100b/db"])
def test_a_malformed_database_url_is_refused_without_its_password(url: str, tmp_path: Path) -> None:
    done = run(tmp_path, "config", "--database", url)
    assert isinstance(done.exception, SystemExit)
    assert "the database URL is malformed" in done.stderr
    assert "hidden" not in done.output


def test_a_backup_of_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff" * 4096)
    done = run(tmp_path, "backup", "copy.sqlite", "--database", "sqlite:///binary")
    assert isinstance(done.exception, SystemExit)
    assert "file is not a database" in done.stderr
    assert not (tmp_path / "copy.sqlite").exists()
