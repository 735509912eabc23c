"""The pages of docs/reference are generated from the code, and are complete."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import click
import pytest

from tablegate.gateway.__main__ import main
from tablegate.gateway.configuration.settings import SETTINGS
from tests.support import public_interface, reference_pages
from tests.support.command_reference import COMMAND_PAGES
from tests.support.operations_by_feature import features_of
from tests.support.running import ROOT


@pytest.mark.parametrize("page", reference_pages.PAGES)
def test_a_page_is_generated_from_the_code(page: str) -> None:
    """If it is not: `make reference`."""
    assert (reference_pages.REFERENCE / page).read_text() == reference_pages.text_of(page)


def rows(pages: Iterable[str], pattern: str) -> list[str]:
    text = "".join((reference_pages.REFERENCE / page).read_text() for page in pages)
    return re.findall(pattern, text, re.MULTILINE)


def commands_below(group: click.Group, words: str) -> list[str]:
    context = click.Context(group)
    found: list[str] = []
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = f"{words} {name}"
        found += commands_below(command, inner) if isinstance(command, click.Group) else [inner]
    return found


def test_every_command_has_a_section() -> None:
    assert sorted(rows(COMMAND_PAGES, r"^## (.+)$")) == sorted(commands_below(main, "tablegate"))


def test_every_setting_has_a_row() -> None:
    flags = [field.metadata["flag"] or name.replace("_", "-") for name, field in SETTINGS.items()]
    assert sorted(rows(("settings.md", "settings-services.md"), r"^\| `--([\w-]+)`")) == sorted(flags)


def test_every_metric_has_a_row() -> None:
    """Each is named once in the module that defines them."""
    source = (ROOT / "tablegate/gateway/observability/prometheus.py").read_text()
    named = {name.removesuffix("_total") for name in re.findall(r'"(tablegate_\w+)"', source)}
    assert {name.removesuffix("_total") for name in rows(["metrics.md"], r"^\| `(\w+)`")} == named


def test_every_operation_of_the_control_api_has_a_row() -> None:
    paths = json.loads((ROOT / "tablegate/gateway/control/openapi.json").read_text())["paths"]
    described = {f"{method.upper()} {path}" for path, item in paths.items() for method in item}
    assert {name for name in described if not name.startswith("PARAMETERS")} == set(
        rows(["control-api.md"], r"^\| `(\w+ /[^`]*)`")
    )


def test_every_operation_of_a_dialect_belongs_to_one_feature_of_the_page() -> None:
    features = {
        (dialect, name): features_of(dialect, name)
        for dialect, names in reference_pages.operations().items()
        for name in names
    }
    assert {name: groups for name, groups in features.items() if len(groups) != 1} == {}
    text = (reference_pages.REFERENCE / "operations.md").read_text()
    cells = re.findall(r"`([^`]+)`", "".join(re.findall(r"^\| .*$", text, re.MULTILINE)))
    assert sorted(cells) == sorted(name.rpartition(".")[2] for _, name in features)


def test_the_public_interface_is_as_recorded() -> None:
    """If something is new: `make reference`. If something is gone, see docs/explain/compatibility.md."""
    now, before = {*public_interface.lines()}, {*public_interface.recorded()}
    assert sorted(now - before) == []
    assert sorted(before - now) == []


@pytest.mark.parametrize(
    "line",
    [
        "setting database_thread --database-thread auto or inline or thread or split auto",
        "option tablegate credentials add --scheme [aws|azure|tablestore]",
        "metric tablegate_requests_total counter dialect operation status",
        "route GET /readyz",
        "control POST /credentials `access_id`",
        "control GET /backups answers `backups[].is_available`",
        "operation tablestore PutRow",
        "python tablegate.testing.Server.url",
        "pytest fixture dynamodb_client",
        "extra chinese",
        "program tablegate",
    ],
)
def test_the_record_has_names_of_each_kind(line: str) -> None:
    """The parts that a release must not lose: choices, labels and members of answers too."""
    assert line in public_interface.recorded()
    assert line in public_interface.lines()


def test_a_removed_setting_is_not_removed_from_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "interface.txt"
    file.write_text("setting of_a_former_release --of-a-former-release text no default\n")
    monkeypatch.setattr(public_interface, "FILE", file)
    public_interface.add_new_lines()
    assert {*public_interface.recorded()} - {*public_interface.lines()} == {
        "setting of_a_former_release --of-a-former-release text no default"
    }
