"""The public interface of the product as lines of text, and docs/reference/interface.txt, which records it.

`make reference` adds new lines to the file. It removes none: a line that is no longer true fails a test until it is deleted
by hand, as docs/explain/compatibility.md permits.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import click

from tablegate import testing
from tablegate.gateway.configuration.settings import SETTINGS
from tablegate.gateway.control.health import PATHS
from tests.support import command_reference, reference_pages

FILE = reference_pages.REFERENCE / "interface.txt"


def lines() -> list[str]:
    """Return the public interface, one name a line."""
    kinds = (_settings, _commands, _metrics, _routes, _operations, _python, _pytest, _installation)
    return sorted({" ".join(line.split()) for kind in kinds for line in kind()})


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


def _commands() -> Iterator[str]:
    for words, command in command_reference.commands().items():
        context = click.Context(command)
        yield f"command {words} {' '.join(command.collect_usage_pieces(context))}"
        options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
        has_all_settings = {*SETTINGS} <= {each.name for each in options}
        for option in options:
            if not (has_all_settings and option.name in SETTINGS):
                names, value = (*option.opts, *option.secondary_opts), _value_of(option, context)
                yield f"option {words} {' '.join(names)} {value}"


def _value_of(option: click.Option, context: click.Context) -> str:
    """Return what an option takes: nothing, a type, or the choices."""
    value = "" if option.is_flag or option.count else option.make_metavar(context)
    return f"{value} required" if option.required else value


def _metrics() -> Iterator[str]:
    for metric in reference_pages.metrics():
        yield f"metric {metric.name} {metric.type} {' '.join(metric.labels)}"


def _routes() -> Iterator[str]:
    yield from (f"route GET {path}" for path in PATHS)
    for method, path, operation in reference_pages.control_operations():
        yield f"control {method} {path}"
        yield from (f"control {method} {path} {each}" for each in reference_pages.members(operation))
        yield from (f"control {method} {path} answers `{each}`" for each in _answered(operation))


def _answered(operation: Mapping[str, Any]) -> Iterator[str]:
    """Return the members of an operation's answer, with their paths."""
    for media in operation["responses"]["200"]["content"].values():
        yield from _members_of(media["schema"])


def _members_of(schema: Mapping[str, Any]) -> Iterator[str]:
    schema = reference_pages.resolved(schema)
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, Mapping):
            yield from (f"[].{each}" for each in _members_of(inner))
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from (f"{name}{'' if each.startswith('[') else '.'}{each}" for each in _members_of(inner))


def _installation() -> Iterator[str]:
    """The programs, the plugin and the extras of the wheel."""
    project = tomllib.loads((reference_pages.ROOT / "pyproject.toml").read_text())["project"]
    yield from (f"program {name}" for name in project["scripts"])
    yield from (f"extra {name}" for name in project["optional-dependencies"] if name != "dev")


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
        yield from (f"python tablegate.testing.{name}.{each}" for each in _attributes(exported))


def _attributes(value: Any) -> Iterator[str]:
    """Return the public attributes that a class sets in __init__."""
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(value)))):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            owner, _, name = ast.unparse(node).partition(".")
            if owner == "self" and not name.startswith("_"):
                yield name


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
    yield f"pytest marker {plugin._MARKER.partition(':')[0]}"
