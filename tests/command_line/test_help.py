"""Help texts, shell completion, and the command `config`."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tablegate.gateway.__main__ import main
from tablegate.gateway.configuration.loading import load
from tablegate.gateway.configuration.settings import SETTINGS
from tests.support import command_reference
from tests.support.running import ROOT
from tests.support.tables import each_row

GROUPS = {
    "Database", "Network", "Security", "DynamoDB", "Azure Table", "Table Store", "Background work", "Monitoring", "Test",
}  # fmt: skip
TYPE_NAMES = {"TEXT", "INTEGER", "FLOAT", "PATH", "FILENAME", "RANGE", "INTEGER RANGE", "FLOAT RANGE"}


def output(*arguments: str, code: int = 0, **variables: str) -> str:
    """Return what a command prints, at a width that wraps no line."""
    done = CliRunner().invoke(
        main, arguments, env=variables, prog_name="tablegate", terminal_width=400, max_content_width=400
    )
    assert done.exit_code == code, done.output
    return done.output


def test_every_setting_is_in_a_group() -> None:
    assert {field.metadata["group"] for field in SETTINGS.values()} == GROUPS


def test_help_has_a_section_for_each_group_of_settings() -> None:
    lines = output("serve", "--help").splitlines()
    titles = [line.removesuffix(" settings:") for line in lines if line.endswith(" settings:")]
    assert set(titles) == GROUPS
    assert len(titles) == len(GROUPS)
    dynamodb = lines.index("DynamoDB settings:")
    assert any("--throughput" in line for line in lines[dynamodb : lines.index("Azure Table settings:")])


@pytest.mark.parametrize(
    ("words", "forms"),
    [
        ("grants add", ["*", "role/NAME", "entra/OBJECT_ID", "group/ID", "entra/ID@azure/ACCOUNT"]),
        ("quotas set", ["entra/OBJECT_ID", "group/ID"]),
    ],
)
def test_help_lists_the_names_of_identities_that_a_command_accepts(
    tmp_path: Path, words: str, forms: list[str]
) -> None:
    told = [
        line.split()[0] for line in output(*words.split(), "--help").splitlines() if line.startswith("    ")
    ]
    database = f"sqlite:///{tmp_path}/x.sqlite"
    options = {"grants add": ("--read-only", "orders"), "quotas set": ("--requests", "2")}[words]
    output("migrate", "--database", database)
    for form in forms:
        assert form in told
        output(*words.split(), form, *options, "--database", database)


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        ("tables", ("--secret-key", "--port", "--log-level")),
        ("credentials add", ("--port", "--replica")),
        ("healthcheck", ("--database", "--sweep-period")),
        ("backup", ("--audit", "--secret-key", "--replica")),
        ("sweep", ("--secret-key", "--host")),
    ],
)
def test_a_command_shows_only_the_settings_that_it_uses(words: str, unused: tuple[str, ...]) -> None:
    shown = output(*words.split(), "--help").split()
    assert not {*unused} & {*shown}
    assert "--config" in shown


def test_a_command_accepts_the_settings_that_it_does_not_use(tmp_path: Path) -> None:
    """All commands of a deployment can get the same flags."""
    text = output("healthcheck", "--port", "1", "--secret-key", "a key that is long enough", code=1)
    assert "The server is not ready" in text


@each_row("words", command_reference.commands())
def test_placeholders_name_the_value(words: str) -> None:
    command = command_reference.commands()[words]
    context = click.Context(command)
    for option in command.params:
        if isinstance(option, click.Option) and not option.is_flag:
            assert option.make_metavar(context) not in TYPE_NAMES, option.opts


def test_the_first_help_lists_each_command_in_a_section_with_a_whole_sentence() -> None:
    text = output("--help")
    assert "..." not in text.partition("Options:")[2]
    assert "\nOther:" not in text
    names = [line.split()[0] for line in text.splitlines() if line.startswith("  ") and "  " in line.strip()]
    commands = {words.split()[1] for words in command_reference.commands()}
    assert commands <= {*names}
    assert (
        "verify     Check that table B holds the rows of table A, as the mapping between their services"
        in text
    )


def test_positional_arguments_without_a_text_are_not_listed() -> None:
    assert "\n  ACCESS_ID\n" not in output("credentials", "rotate", "--help")


def test_exit_statuses_are_documented() -> None:
    assert "Exit status of a command: 0 done, 1 failed, 2 wrong command line." in output("--help")
    special = {"serve", "doctor", "lint", "copy", "verify", "diff", "signature", "replay", "shadow"}
    for name in special:
        assert "Exit status: 0 " in output(name, "--help")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    script = output("completion", shell)
    assert "_TABLEGATE_COMPLETE" in script


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    program = tmp_path / "tablegate"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tablegate "$@"\n')
    program.chmod(0o755)
    (tmp_path / "script").write_text(output("completion", "bash"))
    line = """
        source script
        COMP_WORDS=(tablegate serve --audit-f); COMP_CWORD=2; _tablegate_completion tablegate
        echo "${COMPREPLY[@]}"
        COMPREPLY=(); COMP_WORDS=(tablegate cred); COMP_CWORD=1; _tablegate_completion tablegate
        echo "${COMPREPLY[@]}"
    """
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [bash, "-c", line], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["--audit-file-bytes --audit-files", "credentials"]


# config


def test_config_prints_each_setting_with_its_source(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('auth = "strict"\nport = 1\n')
    text = output(
        "config", "--config", str(file), "--port", "9", "--admin-token", "hunter2",
        TABLEGATE_SWEEP_PERIOD="5", TABLEGATE_DATABASE="postgresql://me:hunter2@db/x",
    )  # fmt: skip
    lines = {
        line.split(" ")[0]: line.partition("  # ")[2].strip() for line in text.splitlines() if " = " in line
    }
    assert lines["port"] == "--port"
    assert lines["auth"] == f"auth in {file}"
    assert lines["sweep_period"] == "TABLEGATE_SWEEP_PERIOD"
    assert lines["host"] == "default"
    assert "# admin_token is set" in text
    assert "hunter2" not in text
    named = {line.removeprefix("# ").split()[0] for line in text.splitlines() if line}
    assert {*SETTINGS} <= named


def test_the_output_of_config_is_a_file_for_config(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    arguments = ["--port", "9", "--cors-origin", "http://a", "--cors-origin", "http://b", "--tls-self-signed"]
    file.write_text(output("config", *arguments))
    assert load({}, {}, file) == load(
        {"port": 9, "cors_origin": ("http://a", "http://b"), "tls_self_signed": True}, {}
    )


def test_the_example_file_has_every_setting(tmp_path: Path) -> None:
    file = tmp_path / "example.toml"
    file.write_text(output("config", "--example"))
    assert load({}, {}, file) == load({}, {})
    lines = file.read_text().splitlines()
    assert {line.removeprefix("# ").partition(" =")[0] for line in lines if " =" in line} >= {*SETTINGS}
    # Each line is correct TOML without its #.
    values = [
        line.removeprefix("# ") for line in lines if line.partition(" =")[0].removeprefix("# ") in SETTINGS
    ]
    file.write_text("\n".join(line for line in values if not line.endswith(" =")))
    assert load({}, {}, file) == load({}, {})


def test_an_unknown_adapter_is_answered_with_those_there_are(tmp_path: Path) -> None:
    database = tmp_path / "new.sqlite"
    text = output("serve", "--database", str(database), "--port", "0", "--dialects", "dynamo", code=1)
    assert not database.exists()
    assert "Error: --dialects: there is no adapter dynamo. Adapters: azuretable, dynamodb, tablestore" in text
