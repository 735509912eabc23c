"""The public interface of the product as lines of text, and docs/reference/interface.txt, which records it.

`make reference` adds new lines to the file. It removes none: a line that is no longer true fails a test until it is deleted
by hand, as docs/explain/compatibility.md permits.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import click

from tablegate import testing
from tablegate.gateway.configuration.settings import FORMER_NAMES, SETTINGS
from tablegate.gateway.health import PATHS
from tests.support import reference_pages

FILE = reference_pages.REFERENCE / "interface.txt"


def lines() -> list[str]:
    """Return the public interface, one name a line."""
    found = {*_settings(), *_commands(), *_metrics(), *_routes(), *_operations(), *_python(), *_pytest()}
    return sorted(" ".join(line.split()) for line in found)


def recorded() -> list[str]:
    """Return the lines of the file."""
    return FILE.read_text().splitlines() if FILE.exists() else []


def add_new_lines() -> None:
    """Add what is new to the file."""
    FILE.write_text("\n".join(sorted({*recorded(), *lines()})) + "\n")


def _settings() -> Iterator[str]:
    for name in SETTINGS:
        flag, kind, default, _ = reference_pages.setting_row(name)
        shown = " ".join(f"{flag} {kind} {default or 'no default'}".replace("`", "").split())
        yield f"setting {name} {shown}"
    yield from (f"setting {former} deprecated, now {name}" for former, name in FORMER_NAMES.items())


def _commands() -> Iterator[str]:
    for words, command in reference_pages.commands().items():
        pieces = command.collect_usage_pieces(click.Context(command))
        yield f"command {words} {' '.join(pieces)}"
        options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
        has_all_settings = {*SETTINGS} <= {each.name for each in options}
        for option in options:
            if not (has_all_settings and option.name in SETTINGS):
                yield f"option {words} {' '.join((*option.opts, *option.secondary_opts))}"


def _metrics() -> Iterator[str]:
    for metric in reference_pages.metrics():
        yield f"metric {metric.name} {metric.type} {' '.join(metric.labels)}"


def _routes() -> Iterator[str]:
    yield from (f"route GET {path}" for path in PATHS)
    for method, path, operation in reference_pages.control_operations():
        yield f"control {method} {path}"
        yield from (f"control {method} {path} {each}" for each in reference_pages.members(operation))


def _operations() -> Iterator[str]:
    for dialect, names in reference_pages.operations().items():
        yield from (f"operation {dialect} {name}" for name in names)


def _python() -> Iterator[str]:
    for name in testing.__all__:
        exported = getattr(testing, name)
        yield f"python tablegate.testing.{name}{_parameters(exported)}"
        members = vars(exported) if inspect.isclass(exported) else {}
        for member, value in members.items():
            if not member.startswith("_"):
                yield f"python tablegate.testing.{name}.{member}{_parameters(value)}"


def _parameters(value: Any) -> str:
    """Return the parameters of a function or class, without types. "" for attributes and exceptions."""
    if not callable(value) or (inspect.isclass(value) and issubclass(value, Exception)):
        return ""
    given = inspect.signature(value).parameters.values()
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in given if each.name != "self"]
    return str(inspect.Signature(bare))


def _pytest() -> Iterator[str]:
    """The fixtures, options and the marker of the plugin."""
    plugin = importlib.import_module("tablegate.testing.pytest_plugin")
    for node in ast.walk(ast.parse(inspect.getsource(plugin))):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            if any("pytest.fixture" in ast.unparse(each) for each in node.decorator_list):
                yield f"pytest fixture {node.name}"
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "addini":
            yield f"pytest option {ast.literal_eval(node.args[0])}"
